package lb_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

func owners(t *rapid.T) lb.Owner {
	word := func(name string, most int) string {
		return rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,`+itoa(most-2)+`}[a-z0-9])?`).Draw(t, name)
	}
	return lb.Owner{
		ClusterID:  word("cluster", 63),
		Controller: word("domain", 200) + "/" + word("controller", 40),
		Namespace:  word("namespace", 63),
		Name:       word("name", 253),
		UID:        rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`).Draw(t, "uid"),
	}
}

func itoa(n int) string {
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

// Names and tags longer than the API allows: within the limits, stable, and told apart when they differ only behind
// the cut.
func TestOwner_fitsTheLimitsForAnyLegalName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := owners(t)
		key := rapid.StringN(0, 600, -1).Draw(t, "key")
		tags := o.Tags(lb.KindPolicy, key, lb.RouteTag(o.Namespace, o.Name), lb.RouteTag(o.Namespace, o.Name))
		for _, s := range append(slices.Clone(tags), o.Description(), o.LoadBalancerName()) {
			if n := utf8.RuneCountInString(s); n > lb.MaxLength || n == 0 {
				t.Fatalf("%d characters: %q", n, s)
			}
		}
		if !slices.IsSorted(tags) || len(slices.Compact(slices.Clone(tags))) != len(tags) {
			t.Fatalf("tags are not sorted and unique: %q", tags)
		}
		if !o.Owns(tags) || !o.OwnsDescription(o.Description()) {
			t.Fatal("does not own what it marked")
		}
		if got := lb.KeyFromTags(tags); got != lb.KeyTag(key) {
			t.Fatalf("key %q reads back as %q", key, got)
		}
		other := o
		other.Name = o.Name[:len(o.Name)-1] + "A"
		if other.LoadBalancerName() == o.LoadBalancerName() {
			t.Fatalf("two Gateways share the name %q", o.LoadBalancerName())
		}
	})
}

func TestOwner_doesNotOwnWhatIsMarkedForOthers(t *testing.T) {
	t.Parallel()
	o := lb.Owner{ClusterID: "blue", Controller: "gateway-api-openstack.dev/gateway-controller", Namespace: "infra", Name: "edge", UID: "u-1"}
	for name, change := range map[string]func(*lb.Owner){
		"another cluster":            func(o *lb.Owner) { o.ClusterID = "green" },
		"another controller":         func(o *lb.Owner) { o.Controller = "example.com/other" },
		"a Gateway of the same name": func(o *lb.Owner) { o.UID = "u-2" },
		"a longer UID":               func(o *lb.Owner) { o.UID = "u-11" },
	} {
		other := o
		change(&other)
		if o.Owns(other.Tags(lb.KindLoadBalancer, "lb")) || o.OwnsDescription(other.Description()) {
			t.Errorf("%s: owned", name)
		}
	}
	for name, tags := range map[string][]string{
		"half of the proof":   {o.Mark()},
		"the other half":      {o.ControllerTag()},
		"our name only":       {"gateway=infra/edge"},
		"a later format":      {strings.Replace(o.Mark(), "/1=", "/2=", 1), o.ControllerTag()},
		"nothing":             nil,
		"the mark in a value": {"x=" + o.Mark(), o.ControllerTag()},
	} {
		if o.Owns(tags) {
			t.Errorf("%s: owned", name)
		}
	}
	for _, tag := range []string{strings.Replace(o.Mark(), "/1=", "/2=", 1), strings.Replace(o.Mark(), "/1=", "/0=", 1)} {
		if !o.OwnsInOtherFormat([]string{tag}) {
			t.Errorf("%s is not seen as ours of another format", tag)
		}
		if o.OwnsInOtherFormat([]string{tag + "1"}) || o.OwnsInOtherFormat([]string{"x=" + tag}) {
			t.Errorf("what is like %s is seen as ours of another format", tag)
		}
	}
	if o.OwnsInOtherFormat(o.Tags(lb.KindLoadBalancer, "lb")) {
		t.Error("the format of now is taken for another one")
	}
	if o.OwnsDescription(o.Mark()) || o.OwnsDescription("") || o.OwnsDescription("see "+o.Description()) {
		t.Error("owns an incomplete description")
	}
}

func TestInfrastructureTags_cannotPassForOurs(t *testing.T) {
	t.Parallel()
	o := lb.Owner{ClusterID: "c", Controller: "gw.test/c", Namespace: "ns", Name: "gw", UID: "u"}
	got := lb.InfrastructureTags(
		map[string]string{"team": "shop", "Team": "shop", "controller": o.Controller},
		map[string]string{o.Mark(): "", "key": "other", "long": strings.Repeat("x", lb.MaxLength), "lines": "a\nb", "blank": "x ", "umlaut": "ä", "json": `{"a":[1,2]}`},
	)
	want := []string{
		"annotation=" + o.Mark() + "=", `annotation=json={"a":[1,2]}`, "annotation=key=other",
		"label=Team=shop", "label=controller=gw.test/c",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if o.Owns(got) || lb.KeyFromTags(got) != "" {
		t.Error("tags of a user prove ownership")
	}
	if decided, others := lb.SplitTags(append(o.Tags(lb.KindLoadBalancer, "loadbalancer"), got...)); !slices.Equal(decided, want) || len(others) > 0 {
		t.Errorf("%q and %q do not read back", decided, others)
	}
}

func TestExtraTags_areToldFromThoseOfOthers(t *testing.T) {
	t.Parallel()
	o := lb.Owner{ClusterID: "c", Controller: "gw.test/c", Namespace: "ns", Name: "gw", UID: "u"}
	got := lb.ExtraTags([]string{"cost centre=42", "Production", "production", "cost centre=42", "key=x", o.Mark(), "extra=1", strings.Repeat("x", lb.MaxLength+1)})
	if len(got) != 3 || got[0] != "cost centre=42" || got[1] != "Production" || !strings.HasPrefix(got[2], "extra=") || len(got[2]) != len("extra=")+2*10+1 {
		t.Fatalf("got %q", got)
	}
	label := lb.InfrastructureTags(map[string]string{"team": "shop"}, nil)
	decided, others := lb.SplitTags(slices.Concat([]string{"by hand"}, got, label, o.Tags(lb.KindLoadBalancer, "loadbalancer"), []string{"another"}))
	if want := slices.Sorted(slices.Values(slices.Concat(got, label))); !slices.Equal(decided, want) || !slices.Equal(others, []string{"by hand", "another"}) {
		t.Errorf("decided %q, others %q", decided, others)
	}
	if tags := lb.ExtraTags(nil); tags != nil {
		t.Errorf("none make %q", tags)
	}
	most := make([]string, 16)
	for i := range most {
		most[i] = strings.Repeat("y", i+1)
	}
	if tags := lb.ExtraTags(most); len(tags) != 17 || len(tags[16]) > lb.MaxLength {
		t.Errorf("got %q", tags)
	}
}

// What reads a mark for a report agrees with what writes it.
func TestReadTags_readsWhatTagsWrote(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := owners(t)
		want := lb.Mark{Version: "1", ClusterID: o.ClusterID, UID: o.UID, Controller: o.Controller, Gateway: o.Namespace + "/" + o.Name, Key: "k"}
		got, ok := lb.ReadTags(o.Tags(lb.KindPool, "k"))
		if len("gateway="+want.Gateway) > lb.MaxLength {
			got.Gateway = want.Gateway
		}
		if !ok || got != want || !got.Current() || !got.Of(o.ClusterID, o.Controller) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		for _, text := range []string{o.Description(), o.SecretName("tls-1")} {
			if got, ok := lb.ReadDescription(text); !ok || got.ClusterID != o.ClusterID || got.UID != o.UID || !got.Of(o.ClusterID, o.Controller) || got.Of(o.ClusterID, o.Controller+"2") {
				t.Fatalf("%q: got %+v, %v", text, got, ok)
			}
		}
	})
}

func TestReadTags_knowsWhatIsNoWholeMark(t *testing.T) {
	t.Parallel()
	o := lb.Owner{ClusterID: "blue", Controller: "example.com/c", Namespace: "infra", Name: "edge", UID: "u-1"}
	for name, tags := range map[string][]string{
		"half of the proof": {o.Mark()},
		"a later format":    {strings.Replace(o.Mark(), "/1=", "/2=", 1), o.ControllerTag()},
	} {
		if m, ok := lb.ReadTags(tags); !ok || m.Current() {
			t.Errorf("%s: %+v, %v", name, m, ok)
		}
	}
	for name, tags := range map[string][]string{"nothing": nil, "others' tags": {"a=b", "gateway=infra/edge"}} {
		if m, ok := lb.ReadTags(tags); ok {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for _, text := range []string{"", "see " + o.Description(), "made by hand"} {
		if m, ok := lb.ReadDescription(text); ok {
			t.Errorf("%q: %+v", text, m)
		}
	}
}

func TestReplacesTag_staysAndCannotBeGiven(t *testing.T) {
	t.Parallel()
	tag := lb.ReplacesTag("f3b0")
	if got := lb.ReplacesFromTags([]string{"a", tag}); got != "f3b0" {
		t.Errorf("read %q", got)
	}
	if extra := lb.ExtraTags([]string{tag}); len(extra) != 0 {
		t.Errorf("a class may give %q", extra)
	}
	if decided, stay := lb.SplitTags([]string{tag}); len(decided) != 0 || len(stay) != 1 {
		t.Errorf("%q are decided about, %q stay", decided, stay)
	}
}
