package scenario

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
	"github.com/gateway-api-openstack/gateway-api-openstack/test/draw"
)

// command is one line of a story, split into words; words with a = are options.
type command struct {
	name string
	// words is the line as it was written, without the name.
	words   []string
	args    []string
	options map[string]string
	input   string
	used    map[string]bool
}

func parse(line, input string) *command {
	c := &command{options: map[string]string{}, input: input, used: map[string]bool{}}
	words := strings.Fields(line)
	c.name, c.words = words[0], words[1:]
	for _, w := range words[1:] {
		if name, value, ok := strings.Cut(w, "="); ok && !strings.Contains(name, "/") {
			c.options[name] = value
		} else {
			c.args = append(c.args, w)
		}
	}
	return c
}

func (c *command) arg(i int) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return ""
}

func (c *command) option(name string) string {
	c.used[name] = true
	return c.options[name]
}

func (c *command) number(name string) (int, error) {
	text := c.option(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("option %s: %w", name, err)
	}
	return n, nil
}

func (c *command) duration(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.name, err)
	}
	return d, nil
}

// run executes a command in a world. Commands and what they print:
//
//	apply FILE... | apply + YAML     objects as kubectl apply would; files are in testdata/manifests
//	certificate NAMESPACE/NAME names=A,B   a new Secret, or a renewed one, of type kubernetes.io/tls; options: key=RSA, fault=mismatched
//	edit KIND/NAMESPACE/NAME + YAML  a merge patch, which can also stand in the line; <NAME> is the id of the object with this name in the cloud
//	delete KIND/NAMESPACE/NAME
//	reconcile                        a pass for everything, as after an event, and the passes that follow within seconds
//	tick DURATION                    time passes, with the passes that are due
//	restart                          a new process of the controller; handover=DURATION: beside a former leader
//	status KIND/NAMESPACE/NAME       addresses, conditions, finalizers
//	addresses                        which addresses each Gateway had in its status, one after the other
//	events                           Events since the last look
//	tree                             all load balancers
//	cloud                            what there is beyond the seeded networks, counted
//	calls                            calls since the last look: those that may change something in order, the others counted
//	latency DURATION                 how long each write leaves a load balancer PENDING from now on
//	fault METHOD PATH OPTIONS        path: a regular expression below the API version; options: service, status, times (-1: always),
//	                                 skip, cut=before|after, retry-after, message, body, echo (the answer repeats the request), revoke, stuck, error=KIND
//	heal                             ends all faults and what is stuck
//	quota KIND LIMIT
//	tokens                           all tokens become invalid
//	unlist SERVICE-TYPE...           the service catalog has these services no more, and all others, from the next token on
//	credential                       a new application credential, in the file too
//	revoke                           the application credential is not accepted any more
//	clouds + TEXT                    somebody writes this into clouds.yaml
//	force KIND/NAMESPACE/NAME        an object is deleted without its finalizers
//	crd RESOURCE VERSION             the version of the bundle that a Gateway API CRD is from; none: it is deleted
//	outside SERVICE METHOD PATH + YAML   what an administrator does; <NAME> in the path is the id of the object with this name
//	vanish NAME                      a load balancer is purged without a trace
//	when METHOD PATH + commands      the commands, just before the next such call is acted on
//	world OPTIONS                    begins anew with another cloud: broken-create=yes (Octavia 11.0.0), choose-address=yes, api=v2.26, page=10 (objects in a list)
//	crash OPTIONS + commands         the commands in fresh worlds; in the last command the process dies, each time after another call;
//	                                 with the options of world
//	lose OPTIONS + commands          the same, but the process lives on: each time another call is done and its answer is lost
//	octavia ARGUMENTS + STDIN        kubectl octavia, with the credentials of the controller
func (w *world) run(ctx context.Context, c *command) (string, error) {
	do, ok := commands[c.name]
	if !ok {
		return "", fmt.Errorf("there is no command %q; there are %s", c.name, strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
	}
	out, err := do(ctx, w, c)
	if err != nil {
		return "", err
	}
	for name := range c.options {
		if !c.used[name] {
			return "", fmt.Errorf("%s has no option %q", c.name, name)
		}
	}
	return anonymous(out), nil
}

var commands map[string]func(context.Context, *world, *command) (string, error)

func init() {
	commands = map[string]func(context.Context, *world, *command) (string, error){
		"apply":       apply,
		"certificate": certificate,
		"authority":   authority,
		"edit": func(ctx context.Context, w *world, c *command) (string, error) {
			patch := c.input + strings.Join(c.args[min(1, len(c.args)):], " ")
			patch, err := w.named(patch)
			if err != nil {
				return "", err
			}
			return w.kube.edit(ctx, c.arg(0), []byte(patch))
		},
		"delete": func(ctx context.Context, w *world, c *command) (string, error) { return w.kube.remove(ctx, c.arg(0)) },
		"reconcile": func(ctx context.Context, w *world, _ *command) (string, error) {
			err := w.reconcile(ctx)
			return w.news(), err
		},
		"tick": func(ctx context.Context, w *world, c *command) (string, error) {
			d, err := c.duration(c.arg(0))
			if err != nil {
				return "", err
			}
			w.tick(ctx, d)
			return w.news(), nil
		},
		"restart": func(ctx context.Context, w *world, c *command) (string, error) {
			var err error
			if w.handover, err = c.duration(c.option("handover")); err != nil {
				return "", err
			}
			return "", w.restart(ctx)
		},
		"status": func(ctx context.Context, w *world, c *command) (string, error) {
			return w.kube.status(ctx, c.arg(0))
		},
		"addresses": func(_ context.Context, w *world, _ *command) (string, error) {
			return strings.Join(w.kube.published, "\n"), nil
		},
		"events": func(_ context.Context, w *world, _ *command) (string, error) {
			out := strings.Join(w.events.list, "\n")
			w.events.list = nil
			return out, nil
		},
		"tree":    func(_ context.Context, w *world, _ *command) (string, error) { return w.trees(), nil },
		"cloud":   func(_ context.Context, w *world, _ *command) (string, error) { return w.inventory(), nil },
		"calls":   func(_ context.Context, w *world, _ *command) (string, error) { return w.calls(), nil },
		"latency": latency,
		"fault":   fault,
		"heal": func(_ context.Context, w *world, _ *command) (string, error) {
			w.cloud.ClearFaults()
			for id := range w.cloud.Snapshot()["loadbalancers"] {
				w.cloud.Unstick(id, "ACTIVE") //nolint:contextcheck // the cloud has a life of its own
			}
			return "", nil
		},
		"quota": func(_ context.Context, w *world, c *command) (string, error) {
			limit, err := strconv.Atoi(c.arg(1))
			if err != nil {
				return "", fmt.Errorf("quota: %w", err)
			}
			w.cloud.SetQuota(c.arg(0), limit)
			return "", nil
		},
		"tokens": func(_ context.Context, w *world, _ *command) (string, error) {
			w.cloud.RevokeTokens()
			return "", nil
		},
		"unlist": func(_ context.Context, w *world, c *command) (string, error) {
			w.cloud.Unlist(c.args...)
			return "", nil
		},
		"credential": func(_ context.Context, w *world, _ *command) (string, error) {
			w.cloud.RotateCredential()
			return "", w.credentials()
		},
		"revoke": func(_ context.Context, w *world, _ *command) (string, error) {
			w.cloud.RotateCredential()
			return "", nil
		},
		"clouds": func(_ context.Context, w *world, c *command) (string, error) {
			return "", w.writeClouds([]byte(c.input))
		},
		"force": func(ctx context.Context, w *world, c *command) (string, error) { return w.kube.force(ctx, c.arg(0)) },
		"crd": func(ctx context.Context, w *world, c *command) (string, error) {
			return "", w.kube.crd(ctx, c.arg(0), c.arg(1))
		},
		"outside": outside,
		"vanish": func(_ context.Context, w *world, c *command) (string, error) {
			id, err := w.id(c.arg(0))
			if err == nil {
				w.cloud.Vanish(id) //nolint:contextcheck // the cloud has a life of its own
			}
			return "", err
		},
		"when":    when,
		"world":   another,
		"crash":   crash,
		"lose":    lose,
		"octavia": octavia,
	}
}

func apply(ctx context.Context, w *world, c *command) (string, error) {
	if len(c.args) == 0 {
		return w.kube.apply(ctx, []byte(c.input))
	}
	var out strings.Builder
	for _, name := range c.args {
		text, err := manifest(name)
		if err != nil {
			return "", err
		}
		said, err := w.kube.apply(ctx, text)
		if err != nil {
			return "", err
		}
		out.WriteString(said)
	}
	return out.String(), nil
}

func latency(_ context.Context, w *world, c *command) (string, error) {
	d, err := c.duration(c.arg(0))
	*w.latency = d
	return "", err
}

func fault(_ context.Context, w *world, c *command) (string, error) {
	f := sim.Fault{Method: c.arg(0), Path: c.arg(1), Service: c.option("service"), Message: strings.ReplaceAll(c.option("message"), "_", " "), Body: c.option("body")}
	var err error
	for name, to := range map[string]*int{"status": &f.Status, "times": &f.Times, "skip": &f.Skip} {
		if *to, err = c.number(name); err != nil {
			return "", err
		}
	}
	switch c.option("cut") {
	case "before":
		f.Cut = sim.CutBefore
	case "after":
		f.Cut = sim.CutAfter
	}
	if after := c.option("retry-after"); after != "" {
		f.Header = http.Header{"Retry-After": {after}}
	}
	if kind := c.option("error"); kind != "" {
		f.Error = strings.Split(kind, ",")
	}
	f.Revoke, f.Stuck, f.Echo = c.option("revoke") != "", c.option("stuck") != "", c.option("echo") != ""
	w.cloud.Inject(f)
	return "", nil
}

// when runs commands in the middle of a pass. What they print is said by the next command that prints news.
func when(ctx context.Context, w *world, c *command) (string, error) {
	script := strings.Split(strings.TrimSpace(c.input), "\n")
	w.cloud.Inject(sim.Fault{Method: c.arg(0), Path: c.arg(1), Before: func() {
		for _, l := range script {
			out, err := w.run(ctx, parse(l, ""))
			if err != nil {
				out = "error: " + err.Error()
			}
			w.say(key{kind: "meanwhile"}, "meanwhile: "+strings.TrimSpace(out))
		}
	}})
	return "", nil
}

// cloudOptions are the options of a command that makes a cloud.
func cloudOptions(c *command) (sim.Options, error) {
	page, err := c.number("page")
	return sim.Options{BrokenCreate: c.option("broken-create") != "", ChooseAddress: c.option("choose-address") != "",
		MaxAPIVersion: c.option("api"), PageLimit: page}, err
}

// another replaces the world by a new one.
func another(ctx context.Context, w *world, c *command) (string, error) {
	o, err := cloudOptions(c)
	if err != nil {
		return "", err
	}
	fresh, err := newWorld(ctx, w.dir, o)
	if err != nil {
		return "", err
	}
	w.close()
	*w = *fresh
	return "", nil
}

func outside(_ context.Context, w *world, c *command) (string, error) {
	path, err := w.named(c.arg(2))
	if err != nil {
		return "", err
	}
	var body any
	if c.input != "" {
		input := c.input
		for _, name := range []struct{ word, id string }{{"$VIP_SUBNET", w.cloud.VIPSubnetID()}, {"$VIP_NETWORK", w.cloud.VIPNetworkID()}, {"$PUBLIC", w.cloud.PublicNetworkID()}} {
			input = strings.ReplaceAll(input, name.word, name.id)
		}
		if input, err = w.named(input); err != nil {
			return "", err
		}
		if err := unmarshal(input, &body); err != nil {
			return "", err
		}
	}
	if _, err := w.cloud.Do(c.arg(0), c.arg(1), path, body); err != nil { //nolint:contextcheck // the cloud has a life of its own
		return "", fmt.Errorf("%s %s: %w", c.arg(1), path, err)
	}
	return "", nil
}

// named puts the ids of the objects that are named in <> into a text.
func (w *world) named(text string) (string, error) {
	for strings.Contains(text, "<") {
		before, rest, _ := strings.Cut(text, "<")
		name, after, _ := strings.Cut(rest, ">")
		id, err := w.id(name)
		if err != nil {
			return "", err
		}
		text = before + id + after
	}
	return text, nil
}

// id finds the Octavia object or the floating IP with a name. A floating IP's is its address, a rule's its value, a member's its
// address and port; monitor:POOL is the health monitor of a pool, port:LOADBALANCER the port of the VIP.
func (w *world) id(name string) (string, error) {
	if pool, ok := strings.CutPrefix(name, "monitor:"); ok {
		id, err := w.id(pool)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(w.cloud.Snapshot()["pools"][id]["healthmonitor_id"]), nil
	}
	if balancer, ok := strings.CutPrefix(name, "port:"); ok {
		id, err := w.id(balancer)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(w.cloud.Snapshot()["loadbalancers"][id]["vip_port_id"]), nil
	}
	found := ""
	for _, collection := range []string{"loadbalancers", "listeners", "pools", "l7policies", "rules", "members", "floatingips", "flavors", "flavorprofiles"} {
		for id, o := range w.cloud.Snapshot()[collection] {
			called := o["name"]
			switch collection {
			case "floatingips":
				called = o["floating_ip_address"]
			case "rules":
				called = o["value"]
			case "members":
				called = fmt.Sprintf("%v:%v", o["address"], o["protocol_port"])
			}
			if called != name {
				continue
			}
			if found != "" {
				return "", fmt.Errorf("several objects are named %q", name)
			}
			found = id
		}
	}
	if found == "" {
		return "", fmt.Errorf("nothing is named %q", name)
	}
	return found, nil
}

// trees draws all load balancers, and floating IPs that are not attached to one.
func (w *world) trees() string {
	var b strings.Builder
	state := draw.State(w.cloud.Snapshot())
	ids := state.LoadBalancers()
	ports := map[any]bool{}
	for _, id := range ids {
		b.WriteString(state.LoadBalancer(id).String())
		ports[state["loadbalancers"][id]["vip_port_id"]] = true
	}
	var free []string
	for _, f := range state["floatingips"] {
		if !ports[f["port_id"]] {
			free = append(free, fmt.Sprintf("floating IP %v, not attached\n", f["floating_ip_address"]))
		}
	}
	slices.Sort(free)
	b.WriteString(strings.Join(free, ""))
	if b.Len() == 0 {
		return "no load balancer"
	}
	return b.String()
}

// inventory counts what was not there in the beginning.
func (w *world) inventory() string {
	after := w.cloud.Snapshot()
	var lines []string
	for collection, objects := range after {
		n := 0
		for id := range objects {
			if _, ok := w.before[collection][id]; !ok {
				n++
			}
		}
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%s %d", collection, n))
		}
	}
	slices.Sort(lines)
	if len(lines) == 0 {
		return "nothing"
	}
	return strings.Join(lines, "\n")
}

// calls prints and forgets the recorded calls.
func (w *world) calls() string {
	var b strings.Builder
	reads := map[string]int{}
	for _, call := range w.cloud.Calls() {
		switch {
		case call.Mutating():
			fmt.Fprintf(&b, "%s %s %s", call.Service, call.Method, anonymous(call.Path))
			switch {
			case call.Status == 0:
				b.WriteString(" cut")
			case call.Status >= 300:
				fmt.Fprintf(&b, " %d", call.Status)
			}
			b.WriteString("\n")
		case call.Service == sim.Keystone:
			reads["keystone tokens"]++
		default:
			reads[call.Service+" reads"]++
		}
	}
	w.cloud.ResetCalls()
	for _, name := range slices.Sorted(maps.Keys(reads)) {
		fmt.Fprintf(&b, "%s %d\n", name, reads[name])
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}
