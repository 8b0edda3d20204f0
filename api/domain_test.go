package api

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestFinalizerFor_tellsInstallationsApart(t *testing.T) {
	t.Parallel()
	if got := FinalizerFor(DefaultControllerName); got != Finalizer {
		t.Errorf("the default installation has %q", got)
	}
	a, b := FinalizerFor("example.test/a"), FinalizerFor("example.test/b")
	if a == b || a == Finalizer || a != FinalizerFor("example.test/a") {
		t.Errorf("%q and %q", a, b)
	}
	for _, name := range []string{DefaultControllerName, "example.test/a", strings.Repeat("x", 253)} {
		if errs := validation.IsQualifiedName(FinalizerFor(name)); len(errs) > 0 {
			t.Errorf("%s: %v", FinalizerFor(name), errs)
		}
	}
}
