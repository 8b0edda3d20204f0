package monitoring

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	root    = "../.."
	pageURL = "https://github.com/gateway-api-openstack/gateway-api-openstack/blob/main/"
)

// metrics are the names that the sources of the controller register.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`"(gateway_api_openstack_[a-z_]+)"`)
	known := map[string]bool{}
	for _, dir := range []string{"internal/controller", "internal/cloud"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				known[m[1]] = true
			}
		}
	}
	if len(known) == 0 {
		t.Fatal("the sources register no metric")
	}
	return known
}

// unknown returns the metrics of an expression that the controller does not have.
func unknown(t *testing.T, expr string, known map[string]bool) []string {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return nil
	}
	var names []string
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		selector, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		for _, m := range selector.LabelMatchers {
			if m.Name != model.MetricNameLabel || m.Type != labels.MatchEqual {
				continue
			}
			base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(m.Value, "_bucket"), "_count"), "_sum")
			if !known[m.Value] && !known[base] {
				names = append(names, m.Value)
			}
		}
		return nil
	})
	return names
}

func TestAlerts_areValidAndHavePages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "config/monitoring/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.Fatal("no rules")
	}
	known := metrics(t)
	var pages []string
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if names := unknown(t, r.Expr, known); len(names) > 0 {
				t.Errorf("%s: the controller has no metric %s", r.Alert, names)
			}
			page, ok := strings.CutPrefix(r.Annotations["runbook_url"], pageURL)
			if !ok || filepath.Base(page) != r.Alert+".md" {
				t.Errorf("%s: runbook_url is %q", r.Alert, r.Annotations["runbook_url"])
			}
			if _, err := os.Stat(filepath.Join(root, page)); err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			if r.Annotations["summary"] == "" || r.Labels["severity"] == "" {
				t.Errorf("%s: needs a summary and a severity", r.Alert)
			}
			pages = append(pages, filepath.Base(page))
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "docs/runbook/alerts/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(pages, filepath.Base(f)) {
			t.Errorf("%s is the page of no alert", f)
		}
	}
}

func TestDashboard_asksForMetricsThatAreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "config/monitoring/dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID, Title string
		Panels     []struct {
			ID                 int
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	known := metrics(t)
	seen := map[int]bool{}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", ".+")
	for _, p := range board.Panels {
		if seen[p.ID] || p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q: needs its own id, a title, a description and a query", p.ID, p.Title)
		}
		seen[p.ID] = true
		for _, target := range p.Targets {
			if names := unknown(t, variables.Replace(target.Expr), known); len(names) > 0 {
				t.Errorf("panel %q: the controller has no metric %s", p.Title, names)
			}
		}
	}
	if board.UID == "" || board.Title == "" || len(board.Panels) == 0 {
		t.Error("the dashboard needs a uid, a title and panels")
	}
}
