package compile

import (
	"strings"
	"testing"
)

func TestExplosive_refusesWhatRepeatsAmbiguity(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]bool{
		`/.*`:                         false,
		`/.*\.html`:                   false,
		`(?:/[^/]+)*`:                 false,
		`(foo|bar)+`:                  false,
		`([0-9]{1,3}\.){3}[0-9]{1,3}`: false,
		`([a-z]+-)*[a-z]+`:            false,
		`(?:p/)*q`:                    false,
		`(ab)*(cd)+e{2,5}`:            false,
		`[a-z]+(,[a-z]+)*`:            false,
		`(a*b)*`:                      false,
		`(a?)*`:                       false,
		`(a+)+`:                       true,
		`(a*)*`:                       true,
		`(a|a)*`:                      true,
		`(a|ab)*`:                     false,
		`(a|[a-z])+`:                  true,
		`(a?b?)*`:                     true,
		`(\w{1,2})*`:                  true,
		`(\w{1,2})+$`:                 true,
		`(\w+\s?)*`:                   true,
		`(.*/)*`:                      true,
		`(.*a){5}`:                    false,
		`((a{1,8}){1,8}){1,8}`:        true,
		`(?:\W{1,2}|[^\w/]{1,2}~)+`:   true,
		`x(y(z|zz)+)?`:                true,
		`(a{1000})*`:                  true,
		strings.Repeat("(a", 50) + strings.Repeat(")*", 50): true,
	} {
		if got := explosive(expression); got != want {
			t.Errorf("%s: got %t, want %t", expression, got, want)
		}
	}
}
