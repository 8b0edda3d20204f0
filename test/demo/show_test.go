package main

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

func TestShow_isPlainWithoutATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &show{w: &out, started: time.Now()}
	s.good("%d requests", 3)
	s.table([][]string{{"site", "██"}, {"site-next", bar(0.5, 4)}})
	want := " ✓ 3 requests\n   site       ██\n   site-next  ██░░\n"
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

func TestManifests_holdOnlyWhatTheAPIKnows(t *testing.T) {
	t.Parallel()
	scheme, err := kube.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(manifests, "manifests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, name := range files {
		text, err := manifests.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(text), "---\n") {
			var kind struct {
				APIVersion, Kind string
			}
			if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			known := false
			for gvk, goType := range scheme.AllKnownTypes() {
				if gvk.GroupVersion().String() != kind.APIVersion || gvk.Kind != kind.Kind {
					continue
				}
				known = true
				object, err := scheme.New(gvk)
				if err != nil {
					t.Fatalf("%s: %s: %v", name, goType, err)
				}
				if err := yaml.UnmarshalStrict([]byte(doc), object); err != nil {
					t.Errorf("%s: %s: %v", name, kind.Kind, err)
				}
			}
			if !known {
				t.Errorf("%s: there is no kind %s %s", name, kind.APIVersion, kind.Kind)
			}
		}
	}
}
