package plan

import "github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"

// notAsWanted is the reason of an update in place.
const notAsWanted = "not as wanted"

// ruleText names a rule for people: rules have no keys.
func ruleText(r lb.Rule) string {
	text := string(r.Type)
	if r.Key != "" {
		text += " " + r.Key
	}
	if r.Invert {
		text += " not"
	}
	return text + " " + string(r.Compare) + " " + r.Value + disabled(r.Disabled)
}
