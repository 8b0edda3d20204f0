package status

import (
	"fmt"
	"strings"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func TestRouteConditions_keepMessagesShort(t *testing.T) {
	t.Parallel()
	var names, why []string
	var rules []int
	for i := range 64 {
		names = append(names, fmt.Sprintf("%d-%s", i, strings.Repeat("n", 500)))
		why = append(why, fmt.Sprintf("rule %d: %s\n\x00", i, strings.Repeat("x", 5000)))
		rules = append(rules, i)
	}
	for _, c := range []Condition{
		RouteNotAllowedByListeners(names, "ns"),
		RouteNoMatchingListenerHostname(names),
		RouteNotAccepted(gwv1.RouteReasonUnsupportedValue, why),
		RoutePartiallyInvalid(rules, why),
		ListenerProtocolConflict(80, names),
		ListenerInvalidRouteKinds(names),
	} {
		if len(c.Message) > 8000 || strings.ContainsAny(c.Message, "\n\x00") {
			t.Errorf("%s: a message of %d bytes", c.Reason, len(c.Message))
		}
	}
}

func TestRoutePartiallyInvalid_startsAsGatewayAPIAsks(t *testing.T) {
	t.Parallel()
	if got := RoutePartiallyInvalid([]int{1, 3}, []string{"rule 1: a", "rule 3: b", "rule 1: a"}).Message; got != "Dropped Rules 1, 3: rule 1: a; rule 3: b." {
		t.Errorf("got %q", got)
	}
	if got := RoutePartiallyInvalid([]int{1}, []string{"a"}).Message; !strings.HasPrefix(got, "Dropped Rule 1: ") {
		t.Errorf("got %q", got)
	}
}
