package plan

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

var update = flag.Bool("update", false, "rewrite the plans in testdata; commit only what you understand")

// TestFiles runs the stories in testdata. Each is an old tree, a new tree and the plan between them:
//
//	# what the story shows
//	old:
//	  listener 80 default=a
//	    key: host=foo path=/a -> pool a
//	    key: path==/exact header=X-V:v1 not path=/b -> redirect 301 https://x.test
//	  pool a: 10.0.0.1 10.0.0.2*3 monitor=HTTP
//	new:
//	  ...
//	plan: 2 Octavia calls
//	  ...
func TestFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			runStory(t, file)
		})
	}
}

func runStory(t *testing.T, file string) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	story, wantPlan, found := strings.Cut(string(content), "plan:")
	if !found {
		t.Fatal("no plan:")
	}
	trees := strings.SplitN(story, "\nnew:", 2)
	if len(trees) != 2 {
		t.Fatal("no new:")
	}
	_, old, found := strings.Cut(trees[0], "old:")
	if !found {
		t.Fatal("no old:")
	}
	have, want := &lb.Tree{}, parseTree(t, trees[1])
	observe(t, have, parseTree(t, old))
	p := New(want, have)
	gotPlan := printed(p)
	for _, k := range KeptBy(want, have) {
		gotPlan += fmt.Sprintf("  = the %s %q is kept, not %q\n", k.What, k.Have, k.Want)
	}
	if *update {
		if err := os.WriteFile(file, []byte(story+"plan:"+gotPlan), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if gotPlan != wantPlan {
		t.Errorf("got the plan:%s\nwant:%s", gotPlan, wantPlan)
	}
	applyAll(t, have, p)
	if again := New(want, have); len(again.Steps) > 0 {
		t.Errorf("a second plan does\n%s", again)
	}
}

// observe makes have what the cloud shows of a tree.
func observe(t *testing.T, have, described *lb.Tree) {
	if described.Empty() {
		have.FloatingIP, have.Asked, have.Secrets = described.FloatingIP, described.Asked, described.Secrets
		return
	}
	foreign, floating, asked := described.Foreign, described.FloatingIP, described.Asked
	described.Foreign, described.FloatingIP, described.Asked = nil, nil, nil
	applyAll(t, have, New(described, have))
	have.Foreign, have.FloatingIP, have.Asked = foreign, floating, asked
}

func printed(p Plan) string {
	calls := 0
	for _, s := range p.Steps {
		if s.Locks() {
			calls++
		}
	}
	text := fmt.Sprintf(" %d Octavia calls\n", calls)
	for line := range strings.Lines(p.String()) {
		text += "  " + line
	}
	return text
}

func parseTree(t *testing.T, text string) *lb.Tree {
	tree := &lb.Tree{Meta: lb.Meta{Name: "gw", Key: loadBalancerKey}}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		switch fields[0] {
		case "nothing":
			tree.Name, tree.Key = "", ""
		case "loadbalancer":
			parseLoadBalancer(t, tree, fields[1:])
		case "listener":
			tree.Listeners = append(tree.Listeners, parseListener(t, fields[1:]))
		case "pool":
			tree.Pools = append(tree.Pools, parsePool(t, fields[1:]))
		case "secret":
			for _, key := range fields[1:] {
				tree.Secrets = append(tree.Secrets, lb.Secret{Key: key, Name: "the mark of " + key})
			}
		case "floatingip":
			tree.FloatingIP = parseFloatingIP(t, fields[1:])
		case "asked":
			tree.Asked = parseFloatingIP(t, fields[1:])
		case "foreign":
			f := lb.Foreign{Kind: lb.Kind(fields[1]), ID: fields[2], Name: "by-hand"}
			switch {
			case len(fields) > 3 && f.Kind == lb.KindMonitor:
				f.Pool = fields[3]
			case len(fields) > 3:
				f.Port = number(t, fields[3])
			}
			tree.Foreign = append(tree.Foreign, f)
		default:
			if len(tree.Listeners) == 0 {
				t.Fatalf("no listener for %q", line)
			}
			l := &tree.Listeners[len(tree.Listeners)-1]
			l.Policies = append(l.Policies, parsePolicy(t, fields))
		}
	}
	return tree
}

func parseLoadBalancer(t *testing.T, tree *lb.Tree, fields []string) {
	for _, f := range fields {
		switch name, value, _ := strings.Cut(f, "="); name {
		case "disabled":
			tree.Disabled = true
		case "subnet":
			tree.VIP.SubnetID = value
		case "flavor":
			tree.FlavorID = value
		case "groups":
			tree.VIPSecurityGroupIDs = strings.Split(value, ",")
		case "more":
			for _, id := range strings.Split(value, ",") {
				tree.AdditionalVIPs = append(tree.AdditionalVIPs, lb.VIP{SubnetID: id})
			}
		case "extra":
			tree.Tags = append(tree.Tags, lb.ExtraTags(strings.Split(value, ","))...)
		case "tag":
			tree.Tags = append(tree.Tags, value)
		default:
			t.Fatalf("unknown %q", f)
		}
	}
}

func parseListener(t *testing.T, fields []string) lb.Listener {
	l := lb.Listener{Protocol: lb.HTTP, Port: number(t, fields[0])}
	l.Key = "http-" + fields[0]
	for _, f := range fields[1:] {
		switch name, value, _ := strings.Cut(f, "="); name {
		case "default":
			l.DefaultPool = value
		case "disabled":
			l.Disabled = true
		case "cert":
			certs := strings.Split(value, ",")
			l.Protocol, l.TLS = lb.TerminatedHTTPS, &lb.ListenerTLS{Default: certs[0], SNI: certs[1:]}
			l.Key = "https-" + fields[0]
		case "ca":
			l.TLS.ClientCA = value
		case "cidr":
			l.AllowedCIDRs = append(l.AllowedCIDRs, value)
		case "limit":
			l.ConnectionLimit = number(t, value)
		case "timeout":
			l.TimeoutClientData = number(t, value)
		case "connect":
			l.TimeoutMemberConnect = number(t, value)
		case "data":
			l.TimeoutMemberData = number(t, value)
		default:
			t.Fatalf("unknown %q", f)
		}
	}
	return l
}

func parsePolicy(t *testing.T, fields []string) lb.Policy {
	p := lb.Policy{Meta: lb.Meta{Key: strings.TrimSuffix(fields[0], ":")}}
	invert, off := false, false
	for i := 1; i < len(fields); i++ {
		name, value, _ := strings.Cut(fields[i], "=")
		var rules []lb.Rule
		switch name {
		case "not":
			invert = true
			continue
		case "off":
			off = true
			continue
		case "host":
			rules = hostRule(value)
		case "path":
			rules = pathRule(value)
		case "header":
			key, v, _ := strings.Cut(value, ":")
			rules = exactHeader(v)
			rules[0].Key, rules[1].Key = key, key
		case "all":
			rules = []lb.Rule{everything}
		case "disabled":
			p.Disabled = true
		case "->":
			return parseAction(t, p, fields[i+1:])
		default:
			t.Fatalf("unknown %q", fields[i])
		}
		for _, r := range rules {
			r.Invert, r.Disabled = r.Invert != invert, off
			p.Rules = append(p.Rules, r)
		}
		invert, off = false, false
	}
	t.Fatalf("policy %s has no action", p.Key)
	return p
}

func hostRule(value string) []lb.Rule {
	pattern := strings.ReplaceAll(value, ".", `\.`)
	pattern = strings.ReplaceAll(pattern, "*", "[^:]+")
	return []lb.Rule{{Type: lb.RuleHost, Compare: lb.Regex, Value: "^" + pattern + "(:[0-9]*)?$"}}
}

func pathRule(value string) []lb.Rule {
	if exact, ok := strings.CutPrefix(value, "="); ok {
		return []lb.Rule{path(lb.EqualTo, exact)}
	}
	return []lb.Rule{path(lb.Regex, "^"+value+"(/|$)")}
}

func parseAction(t *testing.T, p lb.Policy, fields []string) lb.Policy {
	switch fields[0] {
	case "pool":
		p.Action, p.Pool = lb.RedirectToPool, fields[1]
	case "reject":
		p.Action = lb.Reject
	case "redirect":
		p.Action, p.Code, p.URL = lb.RedirectPrefix, number(t, fields[1]), fields[2]
	case "url":
		p.Action, p.Code, p.URL = lb.RedirectToURL, number(t, fields[1]), fields[2]
	default:
		t.Fatalf("unknown action %q", fields)
	}
	return p
}

func parsePool(t *testing.T, fields []string) lb.Pool {
	key, weights := strings.TrimSuffix(fields[0], ":"), ""
	pool := lb.Pool{Meta: lb.Meta{Key: key, Name: key}, Protocol: lb.HTTP, Algorithm: "ROUND_ROBIN",
		Monitor: &lb.Monitor{Type: "TCP", Delay: 5, Timeout: 3, MaxRetries: 3, MaxRetriesDown: 3}}
	subnet := ""
	for _, f := range fields[1:] {
		name, value, found := strings.Cut(f, "=")
		switch {
		case name == "disabled":
			pool.Disabled = true
		case name == "monitor" && value == "none":
			pool.Monitor = nil
		case name == "monitor":
			pool.Monitor.Type = value
		case name == "delay":
			pool.Monitor.Delay = number(t, value)
		case name == "persistence":
			pool.Persistence = lb.HTTPCookie
		case name == "algorithm":
			pool.Algorithm = value
		case name == "tls":
			pool.TLS = &lb.PoolTLS{Versions: []string{"TLSv1.2", "TLSv1.3"}, ALPN: []string{"http/1.1"}}
			pool.TLS.CA, pool.TLS.Certificate, _ = strings.Cut(value, ",")
		case name == "ciphers":
			pool.TLS.Ciphers = value
		case name == "subnet":
			subnet = value
		case found:
			t.Fatalf("unknown %q", f)
		default:
			m := lb.Member{Port: 80, Weight: 1, SubnetID: subnet}
			m.Address, weights, found = strings.Cut(f, "*")
			if found {
				m.Weight = number(t, weights)
			}
			pool.Members = append(pool.Members, m)
		}
	}
	return pool
}

func parseFloatingIP(t *testing.T, fields []string) *lb.FloatingIP {
	floating := &lb.FloatingIP{}
	for _, f := range fields {
		switch name, value, _ := strings.Cut(f, "="); name {
		case "id":
			floating.ID = value
		case "network":
			floating.NetworkID = value
		case "address":
			floating.Address = value
		case "attached":
			floating.PortID = "new:vip"
		case "supplied":
			floating.Supplied = true
		case "other":
			floating.OfOther = true
		case "port":
			floating.PortID = value
		default:
			t.Fatalf("unknown %q", f)
		}
	}
	return floating
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
