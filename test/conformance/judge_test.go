package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

func claimsOf(c configuration) []string {
	var r *status.Responder
	if c == responder {
		r = &status.Responder{Service: "system/responder"}
	}
	var claims []string
	for _, f := range status.SupportedFeatures(r) {
		claims = append(claims, string(f.Name))
	}
	return claims
}

// perfect is the run in which each test ends as gaps.go says.
func perfect(c configuration) run {
	r := run{Configuration: c, Claims: claimsOf(c), Outcomes: map[string]outcome{}, Seconds: map[string]float64{}}
	for _, t := range profileTests() {
		_, fails := gapOf(t.name, c)
		r.Outcomes[t.name] = outcome{Passed: !fails, Seconds: 1}
	}
	return r
}

func TestGaps_nameTestsOfTheProfileOnce(t *testing.T) {
	var names, seen []string
	for _, p := range profileTests() {
		names = append(names, p.name)
	}
	for _, g := range gaps {
		if !slices.Contains(names, g.test) {
			t.Errorf("%s is no test of the profile", g.test)
		}
		if slices.Contains(seen, g.test) {
			t.Errorf("%s is there twice", g.test)
		}
		seen = append(seen, g.test)
	}
}

// What the GatewayClass claims follows from gaps.go, without a run.
func TestSupportedFeatures_areThoseWithoutAGap(t *testing.T) {
	for _, c := range []configuration{native, responder} {
		for _, wrong := range judge(perfect(c), profileTests()) {
			t.Errorf("%s: %s", c, wrong)
		}
	}
}

// The gate is worth its time: at least 30 tests that have to pass, and one for each feature that is claimed.
func TestSample_hasEachClaimedFeature(t *testing.T) {
	claims := claimsOf(responder)
	seen := map[string]bool{}
	tests := testsOfRun(run{Configuration: responder, Claims: claims}, sample, true)
	for _, p := range tests {
		for _, f := range p.extended {
			seen[f] = true
		}
	}
	if len(tests) != len(sample) || len(tests) < 30 {
		t.Errorf("%d of the %d tests of the sample have to pass with a responder; want all, and at least 30", len(tests), len(sample))
	}
	for _, f := range claims {
		if isExtended(f) && !seen[f] {
			t.Errorf("no test of the sample needs %s", f)
		}
	}
}

func TestJudge_findsEachKindOfWrongRun(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*run)
		want   string
	}{
		"a test that must pass fails":         {func(r *run) { r.Outcomes["HTTPRouteWeight"] = outcome{} }, "HTTPRouteWeight fails, and gaps.go has no reason for it"},
		"a test that must fail passes":        {func(r *run) { r.Outcomes["HTTPRouteCORS"] = outcome{Passed: true} }, "HTTPRouteCORS passes, though gaps.go says"},
		"a test was not run":                  {func(r *run) { delete(r.Outcomes, "HTTPRouteWeight") }, "HTTPRouteWeight was not run"},
		"a feature is claimed without reason": {func(r *run) { r.Claims = append(r.Claims, "HTTPRouteCORS") }, "HTTPRouteCORS is claimed, and no test that needs it passes"},
		"a feature is not claimed": {func(r *run) {
			r.Claims = slices.DeleteFunc(r.Claims, func(f string) bool { return f == "GatewayPort8080" })
		}, "GatewayPort8080 is not claimed, though all"},
	} {
		t.Run(name, func(t *testing.T) {
			r := perfect(responder)
			test.change(&r)
			if wrong := strings.Join(judge(r, profileTests()), "\n"); !strings.Contains(wrong, test.want) {
				t.Errorf("got %q, want something with %q", wrong, test.want)
			}
		})
	}
}

func TestPlanFor_putsEachTestIntoOnePart(t *testing.T) {
	for _, c := range []configuration{native, responder} {
		p := planFor(c, claimsOf(c), nil)
		for _, test := range profileTests() {
			if slices.Contains(p.skipClaimed, test.name) == slices.Contains(p.skipUnclaimed, test.name) {
				t.Errorf("%s: %s is in no part or in both", c, test.name)
			}
		}
	}
	p := planFor(native, claimsOf(native), []string{"HTTPRouteWeight"})
	if slices.Contains(p.skipClaimed, "HTTPRouteWeight") || len(p.skipClaimed) != len(profileTests())-1 || len(p.skipUnclaimed) != len(profileTests()) {
		t.Error("not only the named test is run")
	}
}

func TestReadLog_takesTheTestsOfBothParts(t *testing.T) {
	log := "\x16=== PAUSE TestConformance/claimed/HTTPRouteWeight/At once\n\x16--- PASS: TestConformance/claimed/HTTPRouteWeight/At once (4.00s)\n" +
		"\x16=== RUN   TestConformance/claimed\n    suite_test.go:38: claimed features: HTTPRoute Gateway\n" +
		"\x16    --- PASS: TestConformance/claimed/HTTPRouteWeight/Requests (2.00s)\n\x16    --- PASS: TestConformance/claimed/HTTPRouteWeight (3.50s)\n" +
		"\x16    --- SKIP: TestConformance/claimed/HTTPRouteCORS (0.00s)\n\x16--- PASS: TestConformance/claimed (10.00s)\n" +
		"\x16    --- FAIL: TestConformance/unclaimed/HTTPRouteCORS (20.10s)\n\x16--- FAIL: TestConformance/unclaimed (21.00s)\n"
	r, err := readLog(native, strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Outcomes) != 2 || r.Outcomes["HTTPRouteWeight"] != (outcome{Passed: true, Seconds: 7.5}) || r.Outcomes["HTTPRouteCORS"].Passed {
		t.Errorf("outcomes %v", r.Outcomes)
	}
	if !slices.Equal(r.Claims, []string{"Gateway", "HTTPRoute"}) || r.Seconds[phaseClaimed] != 10 || r.Seconds[phaseUnclaimed] != 21 {
		t.Errorf("claims %v, seconds %v", r.Claims, r.Seconds)
	}
	if _, err := readLog(native, strings.NewReader("panic: no cluster\n")); err == nil {
		t.Error("a log without a run is taken")
	}
}

func TestWriteReport_hasEachTestAndEachReason(t *testing.T) {
	var b bytes.Buffer
	if err := writeReport(&b, []run{perfect(native), perfect(responder)}); err != nil {
		t.Fatal(err)
	}
	for _, p := range profileTests() {
		if !strings.Contains(b.String(), "| "+p.name+" |") {
			t.Errorf("%s is not in the report", p.name)
		}
	}
	for _, g := range gaps {
		if !strings.Contains(b.String(), g.reason.title) {
			t.Errorf("the reason %q is not in the report", g.reason.title)
		}
	}
}
