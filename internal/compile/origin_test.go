package compile

import "testing"

func TestOriginOf_readsTheKeysOfPolicies(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]Origin{
		"shop/shop/0/0":              {Route: "shop/shop"},
		"shop/shop/2/13":             {Route: "shop/shop", Rule: 2, Match: 13},
		"shop/shop/2/1/3":            {Route: "shop/shop", Rule: 2, Match: 1},
		"shop/shop/2/1~2":            {Route: "shop/shop", Rule: 2, Match: 1},
		"isolation:web":              {Listener: "web"},
		"isolation:web/2":            {Listener: "web"},
		"isolation:shop/extra/web":   {Listener: "shop/extra/web"},
		"isolation:shop/extra/web/2": {Listener: "shop/extra/web"},
	} {
		if got, ok := OriginOf(key); !ok || got != want {
			t.Errorf("%s: got %+v, %v", key, got, ok)
		}
	}
	for _, key := range []string{"", "stray/1234", "a/b/c/d", "a/b/1/x"} {
		if got, ok := OriginOf(key); ok {
			t.Errorf("%q: got %+v", key, got)
		}
	}
}
