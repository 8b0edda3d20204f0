package compile_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

var (
	exampleExpects = regexp.MustCompile(`(?m)^# (native|responder): (.*)$`)
)

// Routes as people write them get the status that docs/gateway-api.md promises, without and with a responder. Each example says in
// its comment what it has to get.
func TestGateway_givesExamplesTheirStatus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/examples/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("no examples: %v", err)
	}
	base, err := os.ReadFile("testdata/examples/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "base.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		expects := exampleExpects.FindAllStringSubmatch(string(text), -1)
		if len(expects) != 2 {
			t.Errorf("%s says %d times what it gets, not for native and responder", file, len(expects))
		}
		for _, expect := range expects {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+"/"+expect[1], func(t *testing.T) {
				t.Parallel()
				snapshot, _ := parse(t, []byte(string(base)+"\n---\n"+string(text)))
				snapshot.Config = &v1alpha1.OpenStackGatewayClassConfig{}
				if expect[1] == "responder" {
					snapshot.Config.Spec.Responder = &v1alpha1.Responder{Service: v1alpha1.ServiceName{Namespace: "system", Name: "responder"}}
				}
				routes := 0
				for _, v := range compile.Gateway(snapshot).Verdicts {
					if v.Object.Kind != status.KindHTTPRoute {
						continue
					}
					routes++
					var got []string
					for _, c := range v.Conditions {
						got = append(got, c.Type+"="+string(c.Status)+"/"+c.Reason)
					}
					if strings.Join(got, " ") != expect[2] {
						t.Errorf("got  %s\nwant %s\n%+v", strings.Join(got, " "), expect[2], v.Conditions)
					}
				}
				if routes != 1 {
					t.Errorf("%d verdicts on routes", routes)
				}
			})
		}
	}
}
