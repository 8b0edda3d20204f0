package status

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

const controller = "gateway-api-openstack.dev/gateway-controller"

func testGateway() *gwv1.Gateway {
	return &gwv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", Generation: 3},
		Spec: gwv1.GatewaySpec{Listeners: []gwv1.Listener{
			{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType},
			{Name: "alt", Port: 8080, Protocol: gwv1.HTTPProtocolType},
		}},
	}
}

func object(kind Kind, name string, generation int64) Object {
	return Object{Kind: kind, Namespace: "infra", Name: name, Generation: generation}
}

func listenerVerdict(name gwv1.SectionName, attached int32, conditions ...Condition) Verdict {
	return Verdict{
		Object: object(KindGateway, "edge", 3), Listener: name, AttachedRoutes: attached,
		SupportedKinds: []gwv1.RouteGroupKind{{Kind: "HTTPRoute"}}, Conditions: conditions,
	}
}

func goodVerdicts() []Verdict {
	return []Verdict{
		listenerVerdict("http", 2, ListenerAccepted(), ListenerResolvedRefs(), ListenerNoConflicts()),
		listenerVerdict("alt", 0, ListenerAccepted(), ListenerResolvedRefs(), ListenerNoConflicts()),
	}
}

func tree(status lb.ProvisioningStatus, ports ...int) lb.Tree {
	t := lb.Tree{Meta: lb.Meta{ID: "lb-1", Name: "gw", ProvisioningStatus: status}, VIP: lb.VIP{Address: "10.0.0.5", PortID: "port-1"}}
	for _, p := range ports {
		t.Listeners = append(t.Listeners, lb.Listener{Meta: lb.Meta{ID: "l", ProvisioningStatus: lb.Active}, Port: p})
	}
	return t
}

func withFloating(t lb.Tree, address, port string) lb.Tree {
	t.FloatingIP = &lb.FloatingIP{Address: address, PortID: port}
	return t
}

func input(outcome OutcomeKind, have *lb.Tree) Input {
	return Input{
		Controller: controller, Gateway: testGateway(), Compiled: true, Verdicts: goodVerdicts(),
		Want: tree("", 80, 8080), Have: have, Outcome: Outcome{Kind: outcome, Message: "Because."},
	}
}

// brief prints a condition list as "Type=Status/Reason ...".
func brief(conditions []metav1.Condition) string {
	var out []string
	for _, c := range conditions {
		out = append(out, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return strings.Join(out, " ")
}

func conditionOf(t *testing.T, conditions []metav1.Condition, conditionType string) metav1.Condition {
	t.Helper()
	for _, c := range conditions {
		if c.Type == conditionType {
			return c
		}
	}
	t.Fatalf("no condition %s in %s", conditionType, brief(conditions))
	return metav1.Condition{}
}

func addresses(s Statuses) string {
	var out []string
	for _, a := range s.Gateway.Addresses {
		out = append(out, string(*a.Type)+" "+a.Value)
	}
	return strings.Join(out, ", ")
}

func TestFor_aProgrammedGateway(t *testing.T) {
	t.Parallel()
	have := tree(lb.Active, 80, 8080)
	s := For(input(Programmed, &have))
	if got, want := brief(s.Gateway.Conditions), "Accepted=True/Accepted Programmed=True/Programmed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := addresses(s); got != "IPAddress 10.0.0.5" {
		t.Errorf("addresses %s", got)
	}
	if len(s.Gateway.Listeners) != 2 || s.Gateway.Listeners[0].AttachedRoutes != 2 {
		t.Fatalf("listeners %+v", s.Gateway.Listeners)
	}
	for _, l := range s.Gateway.Listeners {
		if got, want := brief(l.Conditions), "Accepted=True/Accepted Programmed=True/Programmed ResolvedRefs=True/ResolvedRefs Conflicted=False/NoConflicts"; got != want {
			t.Errorf("%s: got %s, want %s", l.Name, got, want)
		}
		for _, c := range l.Conditions {
			if c.ObservedGeneration != 3 || c.Message == "" {
				t.Errorf("%s: %+v", l.Name, c)
			}
		}
	}
	if !reflect.DeepEqual(s.Gateway.Remove, []string{"ResolvedRefs"}) {
		t.Errorf("remove %v", s.Gateway.Remove)
	}
}

func TestFor_programmedFollowsOutcomeAndObservation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind     OutcomeKind
		have     lb.Tree
		reason   string
		gateway  string
		listener [2]string
	}{
		"create under way":          {Pending, tree(lb.PendingCreate, 80, 8080), "", "False/Pending", [2]string{"False/Pending", "False/Pending"}},
		"nothing there yet":         {Pending, lb.Tree{}, "", "False/Pending", [2]string{"False/Pending", "False/Pending"}},
		"members change":            {Pending, tree(lb.PendingUpdate, 80, 8080), "", "True/Programmed", [2]string{"True/Programmed", "True/Programmed"}},
		"a listener is to be added": {Pending, tree(lb.PendingUpdate, 80), "", "False/Pending", [2]string{"True/Programmed", "False/Pending"}},
		"throttled while serving":   {Retry, tree(lb.Active, 80, 8080), "", "True/Programmed", [2]string{"True/Programmed", "True/Programmed"}},
		"throttled at create":       {Retry, lb.Tree{}, "", "False/Pending", [2]string{"False/Pending", "False/Pending"}},
		"quota":                     {OperatorFault, tree(lb.Active, 80), "NoResources", "False/NoResources", [2]string{"True/Programmed", "False/Pending"}},
		"address in use":            {UserFault, lb.Tree{}, "AddressNotUsable", "False/AddressNotUsable", [2]string{"False/Pending", "False/Pending"}},
		"conflict":                  {Conflict, tree(lb.Active, 80, 8080), "", "False/Invalid", [2]string{"True/Programmed", "True/Programmed"}},
		"load balancer in ERROR":    {Broken, tree(lb.Errored, 80, 8080), "", "False/Invalid", [2]string{"False/Pending", "False/Pending"}},
	} {
		in := input(c.kind, &c.have)
		in.Outcome.Reason = c.reason
		s := For(in)
		got := conditionOf(t, s.Gateway.Conditions, "Programmed")
		if g := string(got.Status) + "/" + got.Reason; g != c.gateway {
			t.Errorf("%s: Gateway %s, want %s", name, g, c.gateway)
		}
		if got.Status == metav1.ConditionFalse && !strings.Contains(got.Message, "Because.") {
			t.Errorf("%s: message %q does not say why", name, got.Message)
		}
		if a := conditionOf(t, s.Gateway.Conditions, "Accepted"); a.Status != metav1.ConditionTrue {
			t.Errorf("%s: the cloud changed Accepted: %+v", name, a)
		}
		for i, want := range c.listener {
			l := conditionOf(t, s.Gateway.Listeners[i].Conditions, "Programmed")
			if g := string(l.Status) + "/" + l.Reason; g != want {
				t.Errorf("%s: listener %d %s, want %s", name, i, g, want)
			}
		}
	}
}

func TestFor_membersChangingWritesNothing(t *testing.T) {
	t.Parallel()
	before, during := tree(lb.Active, 80, 8080), tree(lb.PendingUpdate, 80, 8080)
	a, b := For(input(Programmed, &before)), For(input(Pending, &during))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("statuses differ while members change:\n%+v\n%+v", a, b)
	}
}

// Two load balancers with one mark, and one in ERROR, are no outage of the API: they are told, though nothing else is known. The address
// is still the one that is known to the world.
func TestFor_whatIsFoundBrokenOrDoubleIsNotProgrammed(t *testing.T) {
	t.Parallel()
	have := tree(lb.Active, 80, 8080)
	good := For(input(Programmed, &have))
	for _, kind := range []OutcomeKind{Conflict, Broken} {
		in := input(kind, nil)
		in.Gateway.Status = gwv1.GatewayStatus{Conditions: good.Gateway.Conditions, Addresses: good.Gateway.Addresses, Listeners: good.Gateway.Listeners}
		s := For(in)
		if c := conditionOf(t, s.Gateway.Conditions, "Programmed"); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "Because.") {
			t.Errorf("%s: Programmed is %s: %s", kind, c.Status, c.Message)
		}
		if c := conditionOf(t, s.Gateway.Listeners[0].Conditions, "Programmed"); c.Status != metav1.ConditionFalse {
			t.Errorf("%s: the listener's Programmed is %s", kind, c.Status)
		}
		if addresses(s) != addresses(good) {
			t.Errorf("%s: addresses %s", kind, addresses(s))
		}
	}
}

// An outage of the cloud API does not look like an outage of the Gateway: external-dns would remove records.
func TestFor_anUnreadableCloudKeepsAddressesAndProgrammed(t *testing.T) {
	t.Parallel()
	have := tree(lb.Active, 80, 8080)
	good := For(input(Programmed, &have))
	for _, kind := range []OutcomeKind{Pending, Retry, OperatorFault} {
		in := input(kind, nil)
		in.Gateway.Status = gwv1.GatewayStatus{Conditions: good.Gateway.Conditions, Addresses: good.Gateway.Addresses, Listeners: good.Gateway.Listeners}
		for range 10 {
			s := For(in)
			if brief(s.Gateway.Conditions) != brief(good.Gateway.Conditions) || addresses(s) != addresses(good) {
				t.Fatalf("%s: %s, addresses %s", kind, brief(s.Gateway.Conditions), addresses(s))
			}
			if c := conditionOf(t, s.Gateway.Conditions, "Programmed"); !strings.Contains(c.Message, "Because.") {
				t.Errorf("%s: the outage is not told: %q", kind, c.Message)
			}
			if brief(s.Gateway.Listeners[0].Conditions) != brief(good.Gateway.Listeners[0].Conditions) {
				t.Errorf("%s: listener %s", kind, brief(s.Gateway.Listeners[0].Conditions))
			}
			in.Gateway.Status.Conditions = s.Gateway.Conditions
		}
		// A newer generation was never programmed, as far as anybody knows.
		in.Gateway.Generation++
		s := For(in)
		if c := conditionOf(t, s.Gateway.Conditions, "Programmed"); c.Status != metav1.ConditionFalse || addresses(s) != addresses(good) {
			t.Errorf("%s: new generation: %+v, addresses %s", kind, c, addresses(s))
		}
	}
}

func TestFor_addresses(t *testing.T) {
	t.Parallel()
	want := tree("", 80, 8080)
	want.VIP = lb.VIP{}
	wantFloating := withFloating(want, "", "")
	wantBoth := wantFloating
	wantBoth.VIP.Address = "10.0.0.5"
	for name, c := range map[string]struct {
		want, have lb.Tree
		unread     bool
		published  string
		override   []string
		addresses  string
	}{
		"VIP":                                {want: want, have: tree(lb.Active), addresses: "10.0.0.5"},
		"VIP while it is created":            {want: want, have: tree(lb.PendingCreate), addresses: ""},
		"floating IP only":                   {want: wantFloating, have: withFloating(tree(lb.Active), "203.0.113.5", "port-1"), addresses: "203.0.113.5"},
		"both asked for":                     {want: wantBoth, have: withFloating(tree(lb.Active), "203.0.113.5", "port-1"), addresses: "203.0.113.5, IPAddress 10.0.0.5"},
		"floating IP not attached":           {want: wantFloating, have: withFloating(tree(lb.Active), "203.0.113.5", ""), addresses: ""},
		"floating IP on another port":        {want: wantFloating, have: withFloating(tree(lb.Active), "203.0.113.5", "port-9"), addresses: ""},
		"floating IP not there":              {want: wantFloating, have: tree(lb.Active), published: "10.0.0.5", addresses: "10.0.0.5"},
		"load balancer lost, floating kept":  {want: wantFloating, have: lb.Tree{FloatingIP: &lb.FloatingIP{Address: "203.0.113.5"}}, published: "203.0.113.5", addresses: "203.0.113.5"},
		"load balancer lost, VIP gone":       {want: want, have: lb.Tree{}, published: "10.0.0.5", addresses: ""},
		"not read":                           {want: want, unread: true, published: "10.0.0.5", addresses: "10.0.0.5"},
		"being deleted":                      {want: lb.Tree{}, have: tree(lb.Active), published: "10.0.0.5", addresses: "10.0.0.5"},
		"ERROR":                              {want: want, have: tree(lb.Errored), published: "10.0.0.5", addresses: "10.0.0.5"},
		"update":                             {want: want, have: tree(lb.PendingUpdate), addresses: "10.0.0.5"},
		"given by the outcome":               {want: want, have: tree(lb.Active), override: []string{"192.0.2.1"}, addresses: "192.0.2.1"},
		"floating IP not wanted any more":    {want: want, have: withFloating(tree(lb.Active), "203.0.113.5", "port-1"), published: "203.0.113.5", addresses: "10.0.0.5"},
		"floating IP wanted, VIP published ": {want: wantFloating, have: withFloating(tree(lb.Active), "203.0.113.5", "port-1"), published: "10.0.0.5", addresses: "203.0.113.5"},
	} {
		in := input(Pending, &c.have)
		in.Want, in.Outcome.Addresses = c.want, c.override
		if c.unread {
			in.Have = nil
		}
		if c.published != "" {
			in.Gateway.Status.Addresses = []gwv1.GatewayStatusAddress{{Value: c.published}}
		}
		if got := strings.TrimPrefix(addresses(For(in)), "IPAddress "); got != c.addresses {
			t.Errorf("%s: got %q, want %q", name, got, c.addresses)
		}
	}
}

func TestFor_withoutAnAddressIsNotProgrammed(t *testing.T) {
	t.Parallel()
	have := tree(lb.Active, 80, 8080)
	in := input(Programmed, &have)
	in.Want = withFloating(in.Want, "", "")
	if c := conditionOf(t, For(in).Gateway.Conditions, "Programmed"); c.Status != metav1.ConditionFalse || c.Reason != "AddressNotAssigned" {
		t.Errorf("%+v", c)
	}
}

func TestFor_refusedListeners(t *testing.T) {
	t.Parallel()
	have := tree(lb.Active, 80)
	in := input(Programmed, &have)
	in.Verdicts[1] = listenerVerdict("alt", 1, ListenerUnsupportedProtocol("TLS"))
	s := For(in)
	if got, want := brief(s.Gateway.Conditions), "Accepted=True/ListenersNotValid Programmed=True/Programmed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := brief(s.Gateway.Listeners[1].Conditions), "Accepted=False/UnsupportedProtocol Programmed=False/Invalid ResolvedRefs=True/ResolvedRefs Conflicted=False/NoConflicts"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s.Gateway.Listeners[1].AttachedRoutes != 1 {
		t.Error("a refused listener still counts its routes")
	}
	in.Verdicts[0] = listenerVerdict("http", 0, ListenerUnsupportedProtocol("TLS"))
	if got, want := brief(For(in).Gateway.Conditions), "Accepted=False/ListenersNotValid Programmed=False/Invalid"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A listener whose certificate does not exist yet must not keep the others from having an address: the certificate may depend on it.
func TestFor_aMissingCertificateHitsItsListenerOnly(t *testing.T) {
	t.Parallel()
	have := tree(lb.Active, 80)
	in := input(Programmed, &have)
	in.Verdicts[1] = listenerVerdict("alt", 1, ListenerAccepted(),
		condition(gwv1.ListenerConditionResolvedRefs, metav1.ConditionFalse, gwv1.ListenerReasonInvalidCertificateRef, "Secret infra/tls does not exist."))
	s := For(in)
	if got, want := brief(s.Gateway.Conditions), "Accepted=True/Accepted Programmed=True/Programmed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := conditionOf(t, s.Gateway.Listeners[1].Conditions, "Programmed"); got.Reason != "Invalid" || !strings.Contains(got.Message, "infra/tls") {
		t.Errorf("%+v", got)
	}
	if conditionOf(t, s.Gateway.Listeners[1].Conditions, "Accepted").Status != metav1.ConditionTrue {
		t.Error("the listener is accepted all the same")
	}
}

func TestFor_unknownRouteKindsBesideHTTPRouteKeepTheListener(t *testing.T) {
	t.Parallel()
	have := tree(lb.Active, 80, 8080)
	in := input(Programmed, &have)
	in.Verdicts[1] = listenerVerdict("alt", 0, ListenerAccepted(), ListenerInvalidRouteKinds([]string{"TCPRoute"}))
	if got := conditionOf(t, For(in).Gateway.Listeners[1].Conditions, "Programmed"); got.Status != metav1.ConditionTrue {
		t.Errorf("%+v", got)
	}
	in.Verdicts[1].SupportedKinds = nil
	s := For(in)
	if got := conditionOf(t, s.Gateway.Listeners[1].Conditions, "Programmed"); got.Status != metav1.ConditionFalse {
		t.Errorf("%+v", got)
	}
	if s.Gateway.Listeners[1].SupportedKinds == nil {
		t.Error("supportedKinds must be a list")
	}
}

func TestFor_withoutCompileKeepsListenersAndRoutes(t *testing.T) {
	t.Parallel()
	in := input(OperatorFault, nil)
	in.Compiled, in.Verdicts = false, nil
	s := For(in)
	if !s.KeepRoutes || !s.Gateway.KeepListeners || s.Routes != nil || s.Gateway.Listeners != nil || s.Gateway.Remove != nil {
		t.Errorf("%+v", s)
	}
	if got, want := brief(s.Gateway.Conditions), "Programmed=False/NoResources"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	in.Verdicts = []Verdict{{Object: object(KindGateway, "edge", 3), Conditions: []Condition{GatewayInvalidParameters("openstack", "no subnet")}}}
	if got, want := brief(For(in).Gateway.Conditions), "Accepted=False/InvalidParameters Programmed=False/Invalid"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFor_gatewayVerdictsWin(t *testing.T) {
	t.Parallel()
	have := tree(lb.Active, 80, 8080)
	in := input(Programmed, &have)
	in.Verdicts = append(in.Verdicts, Verdict{Object: object(KindGateway, "edge", 3), Conditions: []Condition{
		GatewayUnsupportedAddress("Hostname is not supported."),
		condition(gwv1.GatewayConditionResolvedRefs, metav1.ConditionFalse, gwv1.GatewayReasonRefNotPermitted, "x"),
	}})
	s := For(in)
	if got, want := brief(s.Gateway.Conditions), "Accepted=False/UnsupportedAddress Programmed=False/Invalid ResolvedRefs=False/RefNotPermitted"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(s.Gateway.Remove) != 0 {
		t.Errorf("remove %v", s.Gateway.Remove)
	}
}

func TestFor_routesHaveOneEntryPerParentAsWritten(t *testing.T) {
	t.Parallel()
	refs := []gwv1.ParentReference{
		{Name: "edge", SectionName: new(gwv1.SectionName("https-www"))},
		{Name: "edge", SectionName: new(gwv1.SectionName("https-api"))},
		{Name: "edge", SectionName: new(gwv1.SectionName("gone"))},
	}
	route := object(KindHTTPRoute, "www", 9)
	have := tree(lb.Active, 80, 8080)
	in := input(Programmed, &have)
	in.Verdicts = append(in.Verdicts,
		Verdict{Object: route, Parent: &refs[0], Conditions: []Condition{RouteAccepted(), RouteResolvedRefs()}},
		Verdict{Object: object(KindHTTPRoute, "another", 1), Parent: &refs[0], Conditions: []Condition{RouteAccepted(), RouteResolvedRefs()}},
		Verdict{Object: route, Parent: &refs[1], Conditions: []Condition{RouteNoMatchingListenerHostname([]string{"https-api"}), RouteResolvedRefs()}},
		Verdict{Object: route, Parent: &refs[2], Conditions: []Condition{RouteNoMatchingParent("name gone"), RouteResolvedRefs()}},
	)
	s := For(in)
	if len(s.Routes) != 2 || s.Routes[0].Object.Name != "another" || s.Routes[1].Object != route {
		t.Fatalf("routes %+v", s.Routes)
	}
	for i, want := range []string{"True/Accepted", "False/NoMatchingListenerHostname", "False/NoMatchingParent"} {
		p := s.Routes[1].Parents[i]
		c := conditionOf(t, p.Conditions, "Accepted")
		if !reflect.DeepEqual(p.ParentRef, refs[i]) || p.ControllerName != controller || string(c.Status)+"/"+c.Reason != want || c.ObservedGeneration != 9 {
			t.Errorf("parent %d: %+v", i, p)
		}
	}
}

func TestFor_aBrokenRouteChangesOnlyItself(t *testing.T) {
	t.Parallel()
	have := tree(lb.Active, 80, 8080)
	in := input(Programmed, &have)
	ref := gwv1.ParentReference{Name: "edge"}
	good := Verdict{Object: object(KindHTTPRoute, "good", 1), Parent: &ref, Conditions: []Condition{RouteAccepted(), RouteResolvedRefs()}}
	in.Verdicts = append(in.Verdicts, good)
	before := For(in)
	in.Verdicts = append(in.Verdicts, Verdict{Object: object(KindHTTPRoute, "zz-bad", 1), Parent: &ref, Conditions: []Condition{
		RouteNotAccepted(gwv1.RouteReasonUnsupportedValue, []string{"x"}),
	}})
	after := For(in)
	if !reflect.DeepEqual(before.Gateway, after.Gateway) || !reflect.DeepEqual(before.Routes[0], after.Routes[0]) {
		t.Error("another route's fault is seen elsewhere")
	}
}

func TestStamp_keepsMessagesWithinTheLimit(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("x", MaxMessage+1), strings.Repeat("é", MaxMessage+1), strings.Repeat("\xffx", MaxMessage)} {
		got := Stamp([]Condition{{Message: text}}, 1)[0].Message
		if n := len([]rune(got)); n != MaxMessage || !utf8.ValidString(got) {
			t.Errorf("%d characters", n)
		}
	}
	if got := Stamp([]Condition{{Message: strings.Repeat("é", MaxMessage)}}, 1)[0].Message; len([]rune(got)) != MaxMessage || strings.Contains(got, "...") {
		t.Error("a message that fits was cut")
	}
}

func TestClass_conditions(t *testing.T) {
	t.Parallel()
	of := func(versions ...string) []CRD {
		var bundle []CRD
		for i, v := range versions {
			bundle = append(bundle, CRD{Resource: []string{"gatewayclasses", "gateways", "httproutes"}[i], Version: v})
		}
		return bundle
	}
	for name, c := range map[string]struct {
		bundle    []CRD
		supported bool
		says      string
	}{
		"as tested":           {of("v1.6.3", "v1.6.3", "v1.6.3"), true, "The Gateway API CRDs are v1.6.3."},
		"a candidate":         {of("v1.6.0-rc.1"), true, "v1.6.0-rc.1"},
		"no patch number":     {of("v1.6"), true, "v1.6"},
		"a prefix":            {of("v1.60.0"), false, "are v1.60.0; "},
		"old":                 {of("v1.5.1", "v1.5.1"), false, "are v1.5.1; "},
		"newer":               {of("v1.7.0", "v1.7.0"), false, "are v1.7.0; "},
		"silent":              {of("", ""), false, "do not say their version; "},
		"mixed":               {of("v1.6.3", "v1.2.0", "v1.6.3"), false, "are of different versions: v1.2.0 (gateways), v1.6.3 (gatewayclasses, httproutes); "},
		"mixed, both minor 6": {of("v1.6.2", "v1.6.3"), false, "are of different versions: v1.6.2 (gatewayclasses), v1.6.3 (gateways); "},
		"one silent":          {of("v1.6.3", "", "v1.6.3"), false, "are v1.6.3 and do not all say their version: gateways does not; "},
		"one missing":         {append(of("v1.6.3"), CRD{Resource: "httproutes", Missing: true}), false, "are v1.6.3 and are not complete: httproutes is missing; "},
		"nothing":             {nil, false, ""},
	} {
		got := ClassSupportedVersion(c.bundle...)
		want := "UnsupportedVersion"
		if c.supported {
			want = "SupportedVersion"
		}
		if got.Reason != want || (got.Status == metav1.ConditionTrue) != c.supported || !strings.Contains(got.Message, c.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, r := range []*Responder{nil, {Service: "system/responder", Missing: true}, {Service: "system/responder"}} {
		features := SupportedFeatures(r)
		for i := 1; i < len(features); i++ {
			if features[i-1].Name >= features[i].Name {
				t.Errorf("%s does not sort before %s", features[i-1].Name, features[i].Name)
			}
		}
		if redirects := slices.ContainsFunc(features, func(f gwv1.SupportedFeature) bool { return f.Name == "HTTPRouteSchemeRedirect" }); redirects != (r != nil && !r.Missing) {
			t.Errorf("with %+v: redirects are supported: %v", r, redirects)
		}
		if c := ClassAccepted(r); strings.Contains(c.Message, "503") == (r != nil && !r.Missing) || (r != nil) != strings.Contains(c.Message, "system/responder") {
			t.Errorf("with %+v: %s", r, c.Message)
		}
	}
}
