package main

import (
	"slices"
	"strings"

	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// The two parts of a run, as subtests of TestConformance.
const (
	phaseClaimed   = "claimed"
	phaseUnclaimed = "unclaimed"
)

// configuration is how the class under test is configured.
type configuration string

const (
	native    configuration = "native"
	responder configuration = "responder"
)

// profileTest is a test of the profile.
type profileTest struct {
	name string
	// extended are the features beyond the core of the profile that it needs, sorted.
	extended []string
}

// profileTests are the tests of the profile GATEWAY-HTTP, by name.
func profileTests() []profileTest {
	profile := suite.GatewayHTTPConformanceProfile
	all := profile.CoreFeatures.Union(profile.ExtendedFeatures)
	var out []profileTest
	for _, t := range tests.ConformanceTests {
		if !all.HasAll(t.Features...) {
			continue
		}
		p := profileTest{name: t.ShortName}
		for _, f := range t.Features {
			if !profile.CoreFeatures.Has(f) {
				p.extended = append(p.extended, string(f))
			}
		}
		slices.Sort(p.extended)
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b profileTest) int { return strings.Compare(a.name, b.name) })
	return out
}

// profileFeatures are all features of the profile, sorted.
func profileFeatures() []string {
	profile := suite.GatewayHTTPConformanceProfile
	var out []string
	for f := range profile.CoreFeatures.Union(profile.ExtendedFeatures) {
		out = append(out, string(f))
	}
	slices.Sort(out)
	return out
}

// claimedBy says whether all that a test needs is claimed.
func (p profileTest) claimedBy(claims []string) bool {
	return !slices.ContainsFunc(p.extended, func(f string) bool { return !slices.Contains(claims, f) })
}

// runPlan says what each part of a run leaves out.
type runPlan struct {
	skipClaimed, skipUnclaimed []string
}

// planFor puts each test of the profile into one part of the run: the claimed ones into the first, but for those that are known to
// fail; the others into the second. only, when it is not empty, names the tests to run at all.
func planFor(c configuration, claims, only []string) runPlan {
	var p runPlan
	for _, t := range profileTests() {
		_, fails := gapOf(t.name, c)
		first := t.claimedBy(claims) && !fails
		wanted := len(only) == 0 || slices.Contains(only, t.name)
		if !first || !wanted {
			p.skipClaimed = append(p.skipClaimed, t.name)
		}
		if first || !wanted {
			p.skipUnclaimed = append(p.skipUnclaimed, t.name)
		}
	}
	return p
}

func splitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// isExtended says whether a feature is beyond the core of the profile.
func isExtended(f string) bool {
	return !suite.GatewayHTTPConformanceProfile.CoreFeatures.Has(features.FeatureName(f))
}
