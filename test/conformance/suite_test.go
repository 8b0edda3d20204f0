//go:build conformance

package main

import (
	"flag"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

var (
	configurationFlag = flag.String("configuration", "", "native or responder: what the class of -gateway-class is")
	onlyFlag          = flag.String("only", "", "tests to run, separated by commas; all without it")
	claimedOnlyFlag   = flag.Bool("claimed-only", false, "leave out the tests that have to fail")
)

// TestConformance runs the published suite: the tests of what the class claims, but for those that gaps.go knows to fail, and then
// all others of the profile.
func TestConformance(t *testing.T) {
	opts := conformance.DefaultOptions(t)
	opts.ConformanceProfiles = []suite.ConformanceProfileName{suite.GatewayHTTPConformanceProfileName}
	class := &gwv1.GatewayClass{}
	if err := opts.Client.Get(t.Context(), client.ObjectKey{Name: opts.GatewayClassName}, class); err != nil {
		t.Fatal(err)
	}
	var claims []string
	for _, f := range class.Status.SupportedFeatures {
		claims = append(claims, string(f.Name))
	}
	plan := planFor(configuration(*configurationFlag), claims, splitList(*onlyFlag))
	t.Run(phaseClaimed, func(t *testing.T) {
		t.Logf("claimed features: %s", strings.Join(claims, " "))
		o := opts
		o.TimeoutConfig = claimedTimeouts()
		o.SkipTests = plan.skipClaimed
		o.CleanupBaseResources = *claimedOnlyFlag
		conformance.RunConformanceWithOptions(t, o)
	})
	if *claimedOnlyFlag {
		return
	}
	t.Run(phaseUnclaimed, func(t *testing.T) {
		o := opts
		o.TimeoutConfig = unclaimedTimeouts()
		o.ReportOutputPath = ""
		o.SupportedFeatures = nil
		for _, f := range profileFeatures() {
			o.SupportedFeatures = append(o.SupportedFeatures, features.FeatureName(f))
		}
		o.SkipTests = plan.skipUnclaimed
		conformance.RunConformanceWithOptions(t, o)
	})
}
