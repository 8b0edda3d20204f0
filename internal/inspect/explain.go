package inspect

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/route"
)

// Explanation is what one Gateway does with a request.
type Explanation struct {
	Gateway string `json:"gateway"`
	// Wanted says that the answer is that of the wanted load balancer, because none is there or was seen.
	Wanted bool `json:"wanted"`
	// Listener is the listener of the Gateway that the host belongs to; "" when none takes it.
	Listener string       `json:"listener,omitempty"`
	Kind     route.Kind   `json:"kind"`
	Answer   string       `json:"answer"`
	Policy   string       `json:"policy,omitempty"`
	From     string       `json:"from,omitempty"`
	Match    string       `json:"match,omitempty"`
	Pool     string       `json:"pool,omitempty"`
	Members  []MemberTree `json:"members,omitempty"`
	// Others are the policies that did not answer, in the order in which HAProxy asks them.
	Others []OtherPolicy `json:"others,omitempty"`
	// Soon is the answer after the calls that the controller has to make, when it is another one.
	Soon   string `json:"soon,omitempty"`
	Unseen string `json:"unseen,omitempty"`
}

// OtherPolicy is a policy that did not answer.
type OtherPolicy struct {
	Policy string `json:"policy"`
	From   string `json:"from"`
	Why    string `json:"why"`
}

func (t *tool) explainCommand() *cobra.Command {
	var headers, gateways []string
	c := &cobra.Command{
		Use:   "explain [METHOD] URL",
		Short: "Say which listener, route, rule and pool answer a request, and why the others do not",
		Long: "Say which listener, route, rule, policy and pool of which Gateway answer a request, and why the other policies do not, as HAProxy would decide. " +
			"Nothing is sent: the configuration is evaluated.\n\n" +
			"Exit codes: 0 a pool or a redirect answers, 1 failed, 2 nothing answers but 503, 403 or nobody, 3 the cloud could not be seen.",
		Example: "  kubectl octavia explain GET https://shop.example.com/cart -H 'X-Canary: yes'\n  kubectl octavia explain route shop/cart",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			all, err := t.explain(c.Context(), args, headers, gateways)
			if err != nil {
				return err
			}
			if err := t.print(all, func(p *printer) {
				for i := range all {
					if i > 0 {
						p.line("")
					}
					all[i].text(p)
				}
			}); err != nil {
				return err
			}
			answered := slices.ContainsFunc(all, func(x Explanation) bool { return x.Kind == route.Pool || x.Kind == route.Redirect })
			switch {
			case slices.ContainsFunc(all, func(x Explanation) bool { return x.Unseen != "" && !x.Wanted }):
				return &exitError{exitUnseen}
			case !answered:
				return &exitError{exitFindings}
			}
			return nil
		},
	}
	c.Flags().StringArrayVarP(&headers, "header", "H", nil, "a header, as for curl: 'Name: value'")
	c.Flags().StringSliceVar(&gateways, "gateway", nil, "only these Gateways, [NAMESPACE/]NAME")
	c.AddCommand(t.explainRouteCommand())
	return c
}

func (t *tool) explain(ctx context.Context, args, headers, gateways []string) ([]Explanation, error) {
	request, scheme, err := requestOf(args[len(args)-1], headers)
	if err != nil {
		return nil, err
	}
	views, err := t.views(ctx, gateways)
	if err != nil {
		return nil, err
	}
	var out []Explanation
	for _, v := range views {
		tree, _ := v.tree()
		at := tree != nil && slices.ContainsFunc(tree.Listeners, func(l lb.Listener) bool {
			return l.Port == request.Port && (l.Protocol == lb.TerminatedHTTPS) == (scheme == "https")
		})
		listener := listenerFor(v, request)
		if len(gateways) == 0 && (!at || listener == "") {
			continue
		}
		x, err := t.explainOne(v, request, listener)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no Gateway has a listener for %s on port %d with host %q; --gateway asks a certain one", scheme, request.Port, hostOnly(request.Host))
	}
	return out, nil
}

// requestOf reads what curl would send.
func requestOf(text string, headers []string) (route.Request, string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return route.Request{}, "", fmt.Errorf("%q is not an http or https URL", text)
	}
	r := route.Request{Port: 80, Host: u.Host, Path: u.RequestURI(), Header: map[string][]string{}}
	if u.Scheme == "https" {
		r.Port = 443
	}
	if p := u.Port(); p != "" {
		if r.Port, err = strconv.Atoi(p); err != nil {
			return route.Request{}, "", fmt.Errorf("%q has no usable port", text)
		}
	}
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return route.Request{}, "", fmt.Errorf("header %q is not 'Name: value'", h)
		}
		name, value = http.CanonicalHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(value)
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header[name] = append(r.Header[name], value)
	}
	return r, u.Scheme, nil
}

func hostOnly(host string) string {
	if i := strings.LastIndex(host, ":"); i >= 0 && !strings.HasSuffix(host, "]") {
		return strings.ToLower(host[:i])
	}
	return strings.ToLower(host)
}

// listenerFor is the most specific listener of the Gateway and its ListenerSets that takes a host on a port.
func listenerFor(v *view, r route.Request) string {
	best, found := -1, ""
	consider := func(name string, port gwv1.PortNumber, host *gwv1.Hostname) {
		pattern := ""
		if host != nil {
			pattern = string(*host)
		}
		if n, ok := compile.HostMatches(pattern, hostOnly(r.Host)); ok && int(port) == r.Port && n > best {
			best, found = n, name
		}
	}
	for _, l := range v.snapshot.Gateway.Spec.Listeners {
		consider(listenerName(l.Name, l.Hostname), l.Port, l.Hostname)
	}
	for _, set := range v.snapshot.ListenerSets {
		for _, l := range set.Spec.Listeners {
			consider(set.Namespace+"/"+set.Name+"/"+listenerName(l.Name, l.Hostname), l.Port, l.Hostname)
		}
	}
	return found
}

func (t *tool) explainOne(v *view, r route.Request, listener string) (Explanation, error) {
	tree, wanted := v.tree()
	x := Explanation{Gateway: v.key.String(), Wanted: wanted, Listener: listener}
	shown := t.tree(v)
	x.Unseen = shown.Unseen
	if tree == nil {
		tree = &lb.Tree{}
	}
	evaluator, err := route.New(tree)
	if err != nil {
		return x, fmt.Errorf("HAProxy would not take the configuration of Gateway %s: %w", v.key, err)
	}
	routes := routesOf(v.snapshot)
	told := evaluator.Explain(r)
	x.Kind, x.Answer, x.Policy, x.Pool = told.Answer.Kind, told.Answer.String(), told.Answer.Policy, told.Answer.Pool
	for _, p := range told.Policies {
		origin, _ := compile.OriginOf(p.Policy.Key)
		from := (&PolicyTree{Key: p.Policy.Key, Origin: origin}).from()
		if p.Decided {
			x.From, x.Match = from, matchText(routes[origin.Route], origin)
			continue
		}
		x.Others = append(x.Others, OtherPolicy{p.Policy.Key, from, whyNot(p)})
	}
	for _, p := range shown.Pools {
		if p.Key == x.Pool && x.Pool != "" {
			x.Members = p.Members
		}
	}
	if !wanted && len(v.todo.Steps) > 0 && v.want != nil {
		if soon, err := route.New(v.want); err == nil {
			if a := soon.Route(r).String(); a != x.Answer {
				x.Soon = a
			}
		}
	}
	return x, nil
}

// whyNot says why a policy did not answer.
func whyNot(p route.PolicyExplanation) string {
	switch {
	case p.NotRendered != "":
		return "not in effect: " + p.NotRendered
	case p.Matched:
		return "it matches too, and comes later"
	}
	var failed []string
	for _, r := range p.Rules {
		if !r.Holds {
			failed = append(failed, ruleText(r.Rule))
		}
	}
	return "no: " + strings.Join(failed, ", ")
}

func (x *Explanation) text(p *printer) {
	w := words{{"Gateway " + x.Gateway, bold}}
	if x.Listener != "" {
		w = w.and(plain, ", listener %s", x.Listener)
	} else {
		w = w.and(yellow, ", no listener takes this host on this port")
	}
	if x.Wanted {
		w = w.and(yellow, " (as wanted, not as in the cloud)")
	}
	p.words(w)
	mark := words{{"→ ", green}}
	if x.Kind != route.Pool && x.Kind != route.Redirect {
		mark = words{{"→ ", red}}
	}
	p.words(mark.and(bold, "%s", x.Answer))
	if x.From != "" {
		p.words(say("  from ").and(cyan, "%s", x.From).and(plain, "%s", map[bool]string{true: " [" + x.Match + "]"}[x.Match != ""]))
	}
	for _, m := range x.Members {
		p.words(statuses(say("  %s weight %d", m.Address, m.Weight), "", cmp.Or(m.OperatingStatus, "")).and(dim, " %s", m.what()))
	}
	if x.Kind == route.Pool && len(x.Members) == 0 {
		p.words(words{{"  the pool has no members: the answer is 503", yellow}})
	}
	if x.Soon != "" {
		p.words(words{{"  soon: " + x.Soon + ", once the controller has made its calls (kubectl octavia plan " + x.Gateway + ")", yellow}})
	}
	if len(x.Others) > 0 {
		p.say("Others, in the order in which HAProxy asks:")
		for _, o := range x.Others {
			p.words(words{{"  " + o.From, cyan}}.and(dim, " %s", o.Why))
		}
	}
	if x.Unseen != "" {
		p.words(words{{"Not seen: " + x.Unseen, yellow}})
	}
}
