package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// String prints a plan for people: one line per step, conflicts last.
func (p Plan) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintln(&b, s)
	}
	for _, c := range p.Conflicts {
		fmt.Fprintf(&b, "! %s %s: %s\n", c.Kind, c.Key, c.Reason)
	}
	if b.Len() == 0 {
		return "nothing to do\n"
	}
	return b.String()
}

// JSON prints a plan for programs.
func (p Plan) JSON() ([]byte, error) { return json.MarshalIndent(p, "", "  ") }

// String is one line: + creates, ~ updates, - deletes.
func (s Step) String() string {
	sign := map[Verb]string{Create: "+", Update: "~", Delete: "-"}[s.Verb]
	text := fmt.Sprintf("%s %s %s", sign, s.Kind, s.Ref.Key)
	if s.Parent != (Ref{}) && s.Kind != lb.KindMonitor {
		text += " of " + s.Parent.Key
	}
	if s.Verb != Delete {
		if what := s.what(); what != "" {
			text += ": " + what
		}
	}
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}

// what describes the object after the step; for an update, only what changes.
func (s Step) what() string {
	switch s.Kind {
	case lb.KindLoadBalancer:
		if s.Verb == Create && s.Tree != nil {
			policies := 0
			for _, l := range s.Tree.Listeners {
				policies += len(l.Policies)
			}
			return fmt.Sprintf("%d listeners, %d policies, %d pools", len(s.Tree.Listeners), policies, len(s.Tree.Pools))
		}
	case lb.KindSecret:
		if s.Secret != nil && s.Secret.Certificate != nil {
			return strings.Join(s.Secret.Certificate.Names, " ")
		}
	case lb.KindMembers:
		var members []string
		for _, m := range s.Members {
			members = append(members, fmt.Sprintf("%s:%d*%d", m.Address, m.Port, m.Weight))
		}
		return strings.Join(members, " ")
	case lb.KindListener:
		if s.Verb == Create {
			return fmt.Sprintf("%s %d", s.ListenerTo.Protocol, s.ListenerTo.Port) + disabled(s.ListenerTo.Disabled)
		}
	case lb.KindPool:
		if s.Verb == Create {
			return fmt.Sprintf("%s %s", s.Pool.Protocol, s.Pool.Algorithm) + overTLS(s.Pool.TLS) + disabled(s.Pool.Disabled)
		}
	case lb.KindMonitor:
		if s.Verb == Create {
			return s.Monitor.Type
		}
	case lb.KindPolicy:
		if s.Verb == Create {
			return fmt.Sprintf("at %d, %s", s.Position, target(s.Policy)) + disabled(s.Policy.Disabled)
		}
	case lb.KindRule:
		if s.Verb == Update && !slices.Equal(s.Fields, []string{"admin_state_up"}) {
			return ruleText(*s.Rule)
		}
	}
	if s.Verb != Update {
		return ""
	}
	var changes []string
	for _, f := range s.Fields {
		changes = append(changes, s.change(f))
	}
	return strings.Join(changes, ", ")
}

// change describes one field of an update.
func (s Step) change(field string) string {
	switch {
	case field == "position":
		return fmt.Sprintf("position %d", s.Position)
	case field == "redirect_pool_id":
		return "pool " + s.Policy.Pool
	case field == "default_pool_id":
		return "default pool " + s.ListenerTo.DefaultPool
	case field == "tags" && s.Pool != nil:
		return "key " + s.Pool.Key
	case field == "admin_state_up":
		if s.disabledAfter() {
			return "disable"
		}
		return "enable"
	}
	return field
}

func (s Step) disabledAfter() bool {
	switch s.Kind {
	case lb.KindLoadBalancer:
		return s.Tree.Disabled
	case lb.KindListener:
		return s.ListenerTo.Disabled
	case lb.KindPool:
		return s.Pool.Disabled
	case lb.KindMonitor:
		return s.Monitor.Disabled
	case lb.KindPolicy:
		return s.Policy.Disabled
	case lb.KindRule:
		return s.Rule.Disabled
	}
	return false
}

func overTLS(tls *lb.PoolTLS) string {
	if tls == nil {
		return ""
	}
	return " over TLS"
}

func disabled(is bool) string {
	if is {
		return ", disabled"
	}
	return ""
}

func target(p *lb.Policy) string {
	switch p.Action {
	case lb.RedirectToPool:
		return "pool " + p.Pool
	case lb.Reject:
		return "reject"
	}
	return fmt.Sprintf("%s %d %s", strings.ToLower(string(p.Action)), p.Code, p.URL)
}
