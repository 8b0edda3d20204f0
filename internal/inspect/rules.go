package inspect

import (
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

var (
	subjects = map[lb.RuleType]string{lb.RuleHost: "host", lb.RulePath: "path", lb.RuleHeader: "header"}
	compares = map[lb.Compare]string{lb.EqualTo: "is", lb.StartsWith: "starts with", lb.EndsWith: "ends with", lb.Contains: "contains", lb.Regex: "matches"}
)

// ruleText says what an L7 rule asks for.
func ruleText(r lb.Rule) string {
	list := []string{subjects[r.Type]}
	if list[0] == "" {
		list[0] = string(r.Type)
	}
	if r.Key != "" {
		list = append(list, r.Key)
	}
	if r.Invert {
		list = append(list, "not:")
	}
	compare := compares[r.Compare]
	if compare == "" {
		compare = string(r.Compare)
	}
	list = append(list, compare, r.Value)
	if r.Disabled {
		list = append(list, "(disabled)")
	}
	return strings.Join(list, " ")
}
