package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// outcome is how a test ended.
type outcome struct {
	Passed  bool    `json:"passed"`
	Seconds float64 `json:"seconds"`
}

// run is what one run of the suite gave.
type run struct {
	Configuration configuration `json:"configuration"`
	// Ground is what the run stood on: versions and the date, by what they are of.
	Ground map[string]string `json:"ground"`
	// Claims are the features of the GatewayClass, as the run saw them.
	Claims []string `json:"claims"`
	// Outcomes are those of the tests that were run, by name.
	Outcomes map[string]outcome `json:"outcomes"`
	// Seconds are those of each part of the run.
	Seconds map[string]float64 `json:"seconds"`
	// Pending is the share of the run in which Octavia was at work on a load balancer.
	Pending float64 `json:"pending"`
}

// shareOf reads one number a line, and says how many of them are not zero.
func shareOf(samples string) float64 {
	all, busy := 0, 0
	for _, s := range strings.Fields(samples) {
		all++
		if s != "0" {
			busy++
		}
	}
	if all == 0 {
		return 0
	}
	return float64(busy) / float64(all)
}

var (
	endOfTest  = regexp.MustCompile(`^\x16?\s*--- (PASS|FAIL): TestConformance/(claimed|unclaimed)(?:/([^/ ]+))? \(([0-9.]+)s\)`)
	endOfPart  = regexp.MustCompile(`^\x16?\s*--- (?:PASS|FAIL): (TestConformance/(?:claimed|unclaimed)/([^/ ]+)/.+) \(([0-9.]+)s\)`)
	pausedPart = regexp.MustCompile(`^\x16?=== PAUSE (TestConformance/.+)`)
	claimsLine = regexp.MustCompile(`claimed features: (.*)$`)
)

// readLog reads the log of a run with -test.v=test2json.
func readLog(c configuration, log io.Reader) (run, error) {
	r := run{Configuration: c, Outcomes: map[string]outcome{}, Seconds: map[string]float64{}}
	// The time of a test is without that of its parts that run at once.
	paused, parts := map[string]bool{}, map[string]float64{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if m := claimsLine.FindStringSubmatch(lines.Text()); m != nil {
			r.Claims = splitList(m[1])
			slices.Sort(r.Claims)
		}
		if m := pausedPart.FindStringSubmatch(lines.Text()); m != nil {
			paused[m[1]] = true
		}
		if m := endOfPart.FindStringSubmatch(lines.Text()); m != nil && paused[m[1]] {
			seconds, err := strconv.ParseFloat(m[3], 64)
			if err != nil {
				return r, err
			}
			parts[m[2]] = max(parts[m[2]], seconds)
		}
		m := endOfTest.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		seconds, err := strconv.ParseFloat(m[4], 64)
		if err != nil {
			return r, err
		}
		if m[3] == "" {
			r.Seconds[m[2]] = seconds
			continue
		}
		if _, ok := r.Outcomes[m[3]]; ok {
			return r, fmt.Errorf("the log has two results of %s", m[3])
		}
		r.Outcomes[m[3]] = outcome{Passed: m[1] == "PASS", Seconds: seconds + parts[m[3]]}
	}
	if err := lines.Err(); err != nil {
		return r, err
	}
	if len(r.Claims) == 0 || len(r.Seconds) == 0 {
		return r, fmt.Errorf("the log is not that of a whole run: the suite did not come to its end, or the class claims nothing")
	}
	return r, nil
}

// judge says what is wrong with a run of the named tests; nothing when each test ended as gaps.go says and the claims are exactly what
// passed. Claims are judged by what was run.
func judge(r run, tests []profileTest) []string {
	var wrong []string
	for _, t := range tests {
		o, ran := r.Outcomes[t.name]
		g, fails := gapOf(t.name, r.Configuration)
		switch {
		case !ran:
			wrong = append(wrong, fmt.Sprintf("%s was not run", t.name))
		case !o.Passed && !fails:
			wrong = append(wrong, fmt.Sprintf("%s fails, and gaps.go has no reason for it", t.name))
		case o.Passed && fails:
			wrong = append(wrong, fmt.Sprintf("%s passes, though gaps.go says: %s", t.name, g.reason.title))
		case !o.Passed && t.claimedBy(r.Claims) && len(t.extended) > 0:
			wrong = append(wrong, fmt.Sprintf("%s fails, and the GatewayClass claims all that it needs: %v", t.name, t.extended))
		}
	}
	for _, f := range profileFeatures() {
		claimed := slices.Contains(r.Claims, f)
		needing, passing := 0, 0
		for _, t := range tests {
			if !slices.Contains(t.extended, f) {
				continue
			}
			needing++
			if r.Outcomes[t.name].Passed {
				passing++
			}
		}
		switch {
		case !claimed && needing > 0 && passing == needing:
			wrong = append(wrong, fmt.Sprintf("%s is not claimed, though all %d tests that need it pass", f, needing))
		case claimed && isExtended(f) && needing > 0 && passing == 0:
			wrong = append(wrong, fmt.Sprintf("%s is claimed, and no test that needs it passes", f))
		}
	}
	return wrong
}

// testsOfRun are the tests that a run had to run.
func testsOfRun(r run, only []string, claimedOnly bool) []profileTest {
	return slices.DeleteFunc(profileTests(), func(t profileTest) bool {
		if len(only) > 0 && !slices.Contains(only, t.name) {
			return true
		}
		_, fails := gapOf(t.name, r.Configuration)
		return claimedOnly && (fails || !t.claimedBy(r.Claims))
	})
}
