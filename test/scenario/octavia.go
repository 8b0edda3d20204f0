package scenario

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/inspect"
)

// taken is the time of a picture, which has a part of a random pause in it.
var taken = regexp.MustCompile(`taken: "[^"]*"`)

// octavia runs kubectl octavia over the world as it is.
func octavia(ctx context.Context, w *world, c *command) (string, error) {
	for name := range c.options {
		c.used[name] = true
	}
	// A person who chose no cloud.
	chosen := "story"
	if slices.Contains(c.words, "--cloud=") {
		chosen = ""
	}
	var out bytes.Buffer
	code := inspect.Run(ctx, slices.Concat(c.words, []string{
		"--clouds-file=" + filepath.Join(w.dir, "clouds.yaml"), "--cluster-id=" + clusterID,
	}), inspect.Options{
		In: strings.NewReader(c.input), Out: &out, Err: &out, Clock: w.clock,
		Cluster: &inspect.Cluster{Live: w.kube.admin, Served: served, Namespace: "infra"},
		Getenv:  func(name string) string { return map[string]string{"OS_CLOUD": chosen}[name] },
	})
	if code != 0 {
		fmt.Fprintf(&out, "exit code %d\n", code)
	}
	return taken.ReplaceAllString(strings.ReplaceAll(out.String(), w.cloud.URL(), "http://cloud"), "taken: <time>"), nil
}
