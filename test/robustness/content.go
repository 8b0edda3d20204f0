package robustness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
)

// content compares the wanted tree with the observed one without the planner: what each object says, by value, and where requests go.
func (v *verdict) content() (out []string) {
	want, have := contents(&v.compiled.Tree), contents(&v.have)
	for _, line := range want {
		if !slices.Contains(have, line) {
			out = append(out, "the cloud lacks "+line)
		}
	}
	for _, line := range have {
		if !slices.Contains(want, line) {
			out = append(out, "the cloud has too much: "+line)
		}
	}
	if len(out) > 0 || len(v.have.Foreign) > 0 {
		return out
	}
	before, errWant := route.New(&v.compiled.Tree)
	after, errHave := route.New(&v.have)
	if errWant != nil || errHave != nil {
		return append(out, fmt.Sprintf("the trees cannot be asked: %v, %v", errWant, errHave))
	}
	for _, port := range []int{80, 443, 8080, 8081, 8443} {
		for _, host := range []string{"shop.example.com", "www.example.org:8080", "blog.example.org", "other.test"} {
			for _, path := range []string{"/", "/cart", "/cart/items", "/cartoon", "/blog/1", "/%C3%BC", "/handmade"} {
				for _, version := range []string{"", "1", "2"} {
					r := route.Request{Port: port, Host: host, Path: path, Header: map[string][]string{}}
					if version != "" {
						r.Header["X-Version"] = []string{version}
					}
					a, b := before.Route(r), after.Route(r)
					pool := func(t *lb.Tree, key string) string {
						if p := t.PoolByKey(key); p != nil {
							return poolText(p)
						}
						return key
					}
					if a.Kind != b.Kind || a.Code != b.Code || a.Location != b.Location || pool(&v.compiled.Tree, a.Pool) != pool(&v.have, b.Pool) {
						out = append(out, fmt.Sprintf("%d %s%s is answered %+v and should be %+v", port, host, path, b, a))
					}
				}
			}
		}
	}
	return out
}

// contents is a tree as lines, one for each object, without ids, names and order.
func contents(t *lb.Tree) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	decided, _ := lb.SplitTags(t.Tags)
	slices.Sort(decided)
	add("load balancer disabled %v, tags %v", t.Disabled, decided)
	pool := func(key string) string {
		if p := t.PoolByKey(key); p != nil {
			return poolText(p)
		}
		return key
	}
	for i := range t.Listeners {
		l := &t.Listeners[i]
		tls := ""
		if l.TLS != nil {
			tls = fmt.Sprintf("%+v", *l.TLS)
		}
		// Limits and timeouts that we do not ask for are the operator's.
		add("listener %d %s disabled %v cidrs %v headers %v tls %s default %s", l.Port, l.Protocol, l.Disabled, l.AllowedCIDRs, l.InsertHeaders, tls, pool(l.DefaultPool))
		for j := range l.Policies {
			p := &l.Policies[j]
			var rules []string
			for _, r := range p.Rules {
				r.ID = ""
				rules = append(rules, fmt.Sprintf("%+v", r))
			}
			slices.Sort(rules)
			add("policy on %d: %s %s %d disabled %v to %s, rules %s", l.Port, p.Action, p.URL, p.Code, p.Disabled, pool(p.Pool), strings.Join(rules, ", "))
		}
	}
	for i := range t.Pools {
		add("%s", poolText(&t.Pools[i]))
	}
	if f := t.FloatingIP; f != nil {
		add("floating IP of network %s, supplied %v", f.NetworkID, f.Supplied)
	}
	for _, s := range t.Secrets {
		add("secret %s", s.Key)
	}
	slices.Sort(out)
	return out
}

func poolText(p *lb.Pool) string {
	var members []string
	for _, m := range p.Members {
		members = append(members, fmt.Sprintf("%s:%d weight %d subnet %s monitor %d disabled %v", m.Address, m.Port, m.Weight, m.SubnetID, m.MonitorPort, m.Disabled))
	}
	slices.Sort(members)
	monitor := "none"
	if m := p.Monitor; m != nil {
		monitor = fmt.Sprintf("%s %d %d %d %d %s %s %s disabled %v", m.Type, m.Delay, m.Timeout, m.MaxRetries, m.MaxRetriesDown, m.HTTPMethod, m.URLPath, m.ExpectedCodes, m.Disabled)
	}
	return fmt.Sprintf("pool %s %s %s disabled %v monitor %s members %s", p.Protocol, p.Algorithm, p.Persistence, p.Disabled, monitor, strings.Join(members, ", "))
}
