package robustness

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// strangers is everybody else in the project: what they have, and what they do to what is ours.
type strangers struct {
	w *world
	// have is what is theirs, by id.
	have map[string]*strange
}

// strange is an object of somebody else.
type strange struct {
	collection string
	text       string
	// inside says that it is below a load balancer of ours, or on its port: Octavia changes some of it by itself.
	inside bool
	// obstacle says that we cannot have what we want while it is there.
	obstacle bool
	// copies is the UID of the Gateway whose load balancer it is in all that counts: ours, once it is the only one.
	copies string
	// excused says that it may have been lost with what it hangs below.
	excused bool
	// made is at which call.
	made int
}

func newStrangers(w *world) *strangers { return &strangers{w: w, have: map[string]*strange{}} }

// mark is how the tags, descriptions and names of our objects begin; said here again, so that a mistake in the contract is one.
const mark = "gateway-api-openstack.dev/1=" + clusterID + "/"

// ids of a collection, sorted.
func (w *world) ids(collection string) []string {
	return slices.Sorted(maps.Keys(w.cloud.Snapshot()[collection]))
}

func tagsOf(o map[string]any) []string {
	var out []string
	list, _ := o["tags"].([]any)
	for _, t := range list {
		out = append(out, fmt.Sprint(t))
	}
	return out
}

// ownerIn is the UID of the Gateway that an object says it belongs to, "" for none of this cluster and controller.
func ownerIn(collection string, o map[string]any) string {
	switch collection {
	case "floatingips":
		text := fmt.Sprint(o["description"])
		uid, rest, ok := strings.Cut(strings.TrimPrefix(text, mark), " ")
		if strings.HasPrefix(text, mark) && ok && strings.HasPrefix(rest+" ", "controller="+controllerName+" ") {
			return uid
		}
	case "secrets":
		text := fmt.Sprint(o["name"])
		uid, rest, ok := strings.Cut(strings.TrimPrefix(text, mark), " ")
		if strings.HasPrefix(text, mark) && ok && strings.HasPrefix(rest, "controller="+controllerName+" key=") {
			return uid
		}
	default:
		tags := tagsOf(o)
		for _, t := range tags {
			if uid, ok := strings.CutPrefix(t, mark); ok && slices.Contains(tags, "controller="+controllerName) {
				return uid
			}
		}
	}
	return ""
}

// collections that we make objects in.
var collections = []string{"loadbalancers", "listeners", "pools", "l7policies", "rules", "members", "healthmonitors", "floatingips", "secrets"}

// form is an object without what changes by itself.
func (s *strange) form(o map[string]any) string {
	o = maps.Clone(o)
	if s.inside {
		for _, k := range []string{"provisioning_status", "operating_status", "updated_at", "position", "port_id", "status", "router_id", "fixed_ip_address", "port_details", "revision_number",
			"listeners", "pools", "l7policies", "l7policy_id"} {
			delete(o, k)
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// intact fails when something of others is not as they left it.
func (s *strangers) intact(when string) {
	if len(s.have) == 0 {
		return
	}
	now := s.w.cloud.Snapshot()
	for _, id := range slices.Sorted(maps.Keys(s.have)) {
		one := s.have[id]
		if one.copies != "" {
			claimed := 0
			for _, o := range now["loadbalancers"] {
				if ownerIn("loadbalancers", o) == one.copies {
					claimed++
				}
			}
			if claimed == 1 {
				delete(s.have, id)
				continue
			}
		}
		o := now[one.collection][id]
		switch {
		case one.excused:
		case o == nil:
			s.w.fail("%s: %s %s, which is not ours, is gone: %s", when, one.collection, id, one.text)
		case one.form(o) != one.text:
			s.w.fail("%s: %s %s, which is not ours, was changed\nfrom %s\nto   %s", when, one.collection, id, one.text, one.form(o))
		}
	}
}

// look takes what others have now for what it shall be.
func (s *strangers) look() {
	now := s.w.cloud.Snapshot()
	for id, one := range s.have {
		if o := now[one.collection][id]; o == nil {
			delete(s.have, id)
		} else {
			one.text = one.form(o)
		}
	}
}

// excuse lets go of what came below a load balancer of ours after the pass had begun that now deletes there, or replaces members: Octavia
// has no way to say "if nobody else is there".
func (s *strangers) excuse(began int) {
	for _, one := range s.have {
		one.excused = one.excused || one.inside && one.made >= began
	}
}

// do makes a call of somebody else. A write of Octavia takes an amphora more than a second, so no two end in the same one: updated_at tells them apart.
func (s *strangers) do(service, method, path string, body any) (map[string]any, error) {
	if service == sim.Octavia && method != http.MethodGet {
		s.w.clock.Advance(time.Second)
	}
	return s.w.cloud.Do(service, method, path, body)
}

// add makes an object of somebody else.
func (s *strangers) add(service, path, singular, collection string, body map[string]any, one strange) (string, error) {
	made, err := s.do(service, "POST", path, map[string]any{singular: body})
	if err != nil {
		return "", err
	}
	o, _ := made[singular].(map[string]any)
	id, _ := o["id"].(string)
	if ref, ok := made["secret_ref"].(string); ok {
		id = ref[strings.LastIndex(ref, "/")+1:]
	}
	if id == "" {
		return "", fmt.Errorf("no id in %v", made)
	}
	one.collection, one.made = collection, s.w.ever
	s.have[id] = &one
	// Whatever is created above it shows it too.
	s.look()
	return id, nil
}

// settleIn makes objects of others: beside ours, like ours, below ours.
func (s *strangers) settleIn(r *rand.Rand) string {
	s.intact("before others made something")
	what := one(r, "occm", "ingress", "copy", "other", "format", "whole", "fip", "half-fip", "group", "secret", "on-port", "listener", "pool", "policy", "rule", "member", "monitor", "pool", "member")
	if err := s.make(r, what); err != nil {
		return what + ": " + err.Error()
	}
	return what
}

func (s *strangers) make(r *rand.Rand, what string) error {
	w := s.w
	var uid, gateway string
	k := w.kube.kind(&gwv1.Gateway{})
	if keys := k.keys(); len(keys) > 0 {
		key := one(r, keys...)
		uid, gateway = string(k.objects[key].GetUID()), key.String()
	}
	lb := func(name string, copies string, tags ...string) error {
		body := map[string]any{"name": name, "vip_subnet_id": w.cloud.VIPSubnetID(), "description": "somebody else's", "tags": tags}
		id, err := s.add(sim.Octavia, "/loadbalancers", "loadbalancer", "loadbalancers", body, strange{obstacle: copies != "", copies: copies})
		if err != nil {
			return err
		}
		if copies == "" && perhaps(r, 2) {
			if _, err = s.add(sim.Octavia, "/listeners", "listener", "listeners", map[string]any{"name": name, "loadbalancer_id": id, "protocol": "TCP", "protocol_port": 80}, strange{}); err != nil {
				return err
			}
			_, err = s.add(sim.Octavia, "/pools", "pool", "pools", map[string]any{"name": name, "loadbalancer_id": id, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}, strange{})
		}
		return err
	}
	if uid == "" {
		return nil
	}
	ourName := "gw_" + clusterID + "_" + strings.ReplaceAll(gateway, "/", "_")
	ourName = ourName[:min(len(ourName), 200)]
	controller := "controller=" + controllerName
	switch what {
	case "occm":
		return lb("kube_service_kubernetes_shop_site", "", "kube_service_kubernetes_shop_site")
	case "ingress":
		return lb("k8s_ingress_kubernetes_shop_site", "")
	case "copy":
		return lb(ourName, "", one(r, [][]string{{mark + uid}, {controller, "gateway=" + gateway[:min(len(gateway), 200)], "key=loadbalancer", "role=loadbalancer"}, {mark + uid, "controller=example.com/another"}}...)...)
	case "format":
		// Of another version of the controller: it is left alone, and nothing is made beside it.
		return lb(ourName, "another format", "gateway-api-openstack.dev/2="+clusterID+"/"+uid, controller)
	case "other":
		return lb(ourName, "", one(r, "gateway-api-openstack.dev/1=green/"+uid, mark+uid+"0"), controller)
	case "whole":
		claimed := 0
		for _, o := range w.cloud.Snapshot()["loadbalancers"] {
			if ownerIn("loadbalancers", o) == uid {
				claimed++
			}
		}
		if claimed != 1 {
			return errors.New("there is nothing to copy")
		}
		return lb(ourName, uid, mark+uid, controller, "key=loadbalancer", "role=loadbalancer")
	case "fip", "half-fip":
		text := "somebody else's"
		if what == "half-fip" {
			text = one(r, mark+uid, mark+uid+" controller=example.com/another gateway="+gateway, mark+uid+" controller="+controllerName+"x")
			text = text[:min(len(text), 250)]
		}
		_, err := s.add(sim.Neutron, "/floatingips", "floatingip", "floatingips", map[string]any{"floating_network_id": w.cloud.PublicNetworkID(), "description": text}, strange{})
		return err
	case "group":
		_, err := s.add(sim.Neutron, "/security-groups", "security_group", "security_groups", map[string]any{"name": "lb-sg-" + uid, "description": "Security Group for shop/site"}, strange{})
		return err
	case "secret":
		made, err := s.do(sim.Barbican, "POST", "/secrets", map[string]any{"name": one(r, mark+uid, mark+uid+" controller=example.com/another key=tls-0", mark+uid+"0 controller="+controllerName+" key=tls-0"),
			"payload": "something", "payload_content_type": "text/plain", "secret_type": "opaque"})
		if err != nil {
			return err
		}
		ref := fmt.Sprint(made["secret_ref"])
		s.have[ref[strings.LastIndex(ref, "/")+1:]] = &strange{collection: "secrets", made: w.ever}
		s.look()
		return nil
	}
	return s.below(r, what)
}

// below makes something below a load balancer of ours.
func (s *strangers) below(r *rand.Rand, what string) error {
	all := s.w.cloud.Snapshot()
	ours := func(collection string) (map[string]any, error) {
		var ids []string
		for id, o := range all[collection] {
			if ownerIn(collection, o) != "" && s.have[id] == nil {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			return nil, fmt.Errorf("there are no %s of ours", collection)
		}
		slices.Sort(ids)
		return all[collection][one(r, ids...)], nil
	}
	parent, err := ours(map[string]string{"on-port": "loadbalancers", "listener": "loadbalancers", "pool": "loadbalancers", "policy": "listeners", "rule": "l7policies", "member": "pools", "monitor": "pools"}[what])
	if err != nil {
		return err
	}
	id := fmt.Sprint(parent["id"])
	inside := strange{inside: true, obstacle: true}
	switch what {
	case "on-port":
		_, err = s.add(sim.Neutron, "/floatingips", "floatingip", "floatingips", map[string]any{"floating_network_id": s.w.cloud.PublicNetworkID(), "port_id": parent["vip_port_id"], "description": "mine"}, inside)
	case "listener":
		_, err = s.add(sim.Octavia, "/listeners", "listener", "listeners", map[string]any{"name": "handmade", "loadbalancer_id": id, "protocol": "HTTP", "protocol_port": one(r, 8080, 8081, 9999)}, inside)
	case "pool":
		_, err = s.add(sim.Octavia, "/pools", "pool", "pools", map[string]any{"name": "handmade", "loadbalancer_id": id, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}, inside)
	case "policy":
		_, err = s.add(sim.Octavia, "/l7policies", "l7policy", "l7policies", map[string]any{"name": "handmade", "listener_id": id, "action": "REJECT", "position": 1 + r.IntN(3)}, inside)
	case "rule":
		_, err = s.add(sim.Octavia, "/l7policies/"+id+"/rules", "rule", "rules", map[string]any{"type": "PATH", "compare_type": "EQUAL_TO", "value": "/handmade"}, inside)
	case "member":
		_, err = s.add(sim.Octavia, "/pools/"+id+"/members", "member", "members", map[string]any{"name": "handmade", "address": "10.1.0.99", "protocol_port": 80}, inside)
	case "monitor":
		_, err = s.add(sim.Octavia, "/healthmonitors", "healthmonitor", "healthmonitors", map[string]any{"name": "handmade", "pool_id": id, "type": "TCP", "delay": 10, "timeout": 5, "max_retries": 3}, inside)
	}
	return err
}

// leave takes everything away that is in our way.
func (s *strangers) leave() {
	for _, id := range slices.Sorted(maps.Keys(s.have)) {
		one := s.have[id]
		if one == nil || !one.obstacle {
			continue
		}
		s.w.trace("others take away %s %s", one.collection, id)
		if err := s.delete(one.collection, id); err != nil {
			s.w.trace("that fails: %v", err)
		}
		s.look()
	}
}

func (s *strangers) delete(collection, id string) error {
	o := s.w.cloud.Snapshot()[collection][id]
	if o == nil {
		return nil
	}
	service, path := sim.Octavia, "/"+collection+"/"+id
	switch collection {
	case "loadbalancers":
		path += "?cascade=true"
	case "members":
		path = fmt.Sprintf("/pools/%v/members/%s", o["pool_id"], id)
	case "rules":
		path = fmt.Sprintf("/l7policies/%v/rules/%s", o["l7policy_id"], id)
	case "floatingips":
		service = sim.Neutron
	case "secrets":
		service = sim.Barbican
	}
	_, err := s.do(service, "DELETE", path, nil)
	return err
}

// interfere does something to an object of ours.
func (s *strangers) interfere(r *rand.Rand) string {
	s.intact("before others interfered")
	// What is small is many; each kind shall be met.
	collection := one(r, collections...)
	all := s.w.cloud.Snapshot()[collection]
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if s.have[id] == nil && ownerIn(collection, all[id]) != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return "there are no " + collection
	}
	id := one(r, ids...)
	defer s.look()
	if collection == "loadbalancers" && perhaps(r, 6) {
		s.w.cloud.Vanish(id)
		return "load balancer " + id + " vanishes"
	}
	if perhaps(r, 3) {
		return fmt.Sprintf("deletes %s %s: %v", collection, id, s.delete(collection, id))
	}
	if perhaps(r, 6) && collection != "floatingips" && collection != "secrets" {
		s.w.cloud.SetStatus(id, "ERROR", "ERROR")
		return fmt.Sprintf("%s %s is in ERROR", collection, id)
	}
	return s.edit(r, collection, all[id])
}

func (s *strangers) edit(r *rand.Rand, collection string, o map[string]any) string {
	type m = map[string]any
	edits := map[string][]m{
		"loadbalancers":  {{"name": "edited"}, {"admin_state_up": false}, {"description": "edited"}},
		"listeners":      {{"name": "edited"}, {"admin_state_up": false}, {"connection_limit": 7}, {"default_pool_id": nil}, {"timeout_client_data": 1000}, {"allowed_cidrs": []string{"10.0.0.0/8"}}, {"insert_headers": m{"X-Forwarded-For": "false"}}},
		"pools":          {{"admin_state_up": false}, {"lb_algorithm": "LEAST_CONNECTIONS"}, {"session_persistence": m{"type": "SOURCE_IP"}}},
		"l7policies":     {{"position": 1}, {"position": 3}, {"admin_state_up": false}, {"action": "REJECT"}},
		"rules":          {{"value": "/edited", "type": "PATH", "compare_type": "EQUAL_TO"}, {"invert": true}, {"admin_state_up": false}},
		"members":        {{"weight": 7}, {"admin_state_up": false}, {"monitor_port": 99}},
		"healthmonitors": {{"delay": 33}, {"max_retries": 7}, {"admin_state_up": false}},
		"floatingips":    {{"port_id": nil}},
	}[collection]
	if len(edits) == 0 {
		return "nothing"
	}
	body := one(r, edits...)
	id := fmt.Sprint(o["id"])
	service, path, singular := sim.Octavia, "/"+collection+"/"+id, strings.TrimSuffix(collection, "s")
	switch collection {
	case "l7policies":
		singular = "l7policy"
	case "members":
		path = fmt.Sprintf("/pools/%v/members/%s", o["pool_id"], id)
	case "rules":
		path = fmt.Sprintf("/l7policies/%v/rules/%s", o["l7policy_id"], id)
	case "floatingips":
		service = sim.Neutron
	}
	_, err := s.do(service, "PUT", path, m{singular: body})
	return fmt.Sprintf("edits %s %s %v: %v", collection, id, body, err)
}
