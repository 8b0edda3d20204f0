package scenario

import (
	"context"
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// hung is when a story is given up: far beyond what the longest takes with the race detector on a machine that does much else.
const hung = 8 * time.Minute

var update = flag.Bool("update", false, "rewrite the expected outputs of the stories")

func TestStories_endAsWritten(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			tell(t, path)
		})
	}
}

func tell(t *testing.T, path string) {
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	defer cancel()
	f, err := readFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(ctx, t.TempDir(), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { w.close() }()
	outputs := make([]string, len(f.steps))
	for i, s := range f.steps {
		out, err := w.run(ctx, parse(s.command, s.input))
		if err != nil {
			out = "error: " + anonymous(err.Error())
		}
		outputs[i] = printable(out)
		if outputs[i] != s.want && !*update {
			t.Errorf("%s:%d: %s\ngot:\n%swant:\n%s", path, s.line, s.command, outputs[i], s.want)
		}
	}
	if *update {
		if err := f.write(outputs); err != nil {
			t.Fatal(err)
		}
	}
}
