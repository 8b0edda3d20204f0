package status

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const runbook = "../../docs/runbook"

// healthy are the reasons that ask nothing of anybody.
var healthy = []string{"Accepted", "Programmed", "ResolvedRefs", "NoConflicts", "SupportedVersion"}

// Whoever sees a reason in a condition or in an Event finds its page.
func TestRunbook_hasAPageForEachReason(t *testing.T) {
	t.Parallel()
	values := constants(t, "sigs.k8s.io/gateway-api/apis/v1")
	reasons := map[string]bool{}
	for _, dir := range []string{".", "../compile", "../controller", "../../api/v1alpha1"} {
		inspectGo(t, dir, func(n ast.Node) {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if value, ok := values[n.Sel.Name]; ok && strings.Contains(n.Sel.Name, "Reason") {
					reasons[value] = true
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if i < len(n.Values) && strings.Contains(strings.ToLower(name.Name), "reason") {
						if value, ok := literal(n.Values[i]); ok {
							reasons[value] = true
						}
					}
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Warning" && len(n.Args) == 4 {
					if value, ok := literal(n.Args[1]); ok {
						reasons[value] = true
					}
				}
			}
		})
	}
	if len(reasons) < 40 {
		t.Fatalf("found only %d reasons: %v", len(reasons), reasons)
	}
	for reason := range reasons {
		if slices.Contains(healthy, reason) {
			continue
		}
		if _, err := os.Stat(filepath.Join(runbook, reason+".md")); err != nil {
			t.Errorf("the reason %s has no page docs/runbook/%s.md", reason, reason)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// Each page has its parts, stands in the index, and leads nowhere that does not exist.
func TestRunbook_isWhole(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile(filepath.Join(runbook, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(runbook, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), found[1])); err != nil {
				t.Errorf("%s: %s does not exist", path, found[1])
			}
		}
		if entry.Name() == "README.md" {
			return nil
		}
		for _, part := range []string{"## What it means", "## How to see it", "## What to do"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no part %q", path, part)
			}
		}
		if name, err := filepath.Rel(runbook, path); err != nil || !strings.Contains(string(index), "("+filepath.ToSlash(name)+")") {
			t.Errorf("%s is not in the index", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var mention = regexp.MustCompile(`docs/runbook/[A-Za-z0-9/-]+\.md`)

// What messages and tools name exists.
func TestRunbook_hasThePagesThatAreNamed(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".", "../compile", "../plan", "../cloud", "../controller", "../inspect"} {
		inspectGo(t, dir, func(n ast.Node) {
			value, ok := literal(n)
			if !ok {
				return
			}
			for _, page := range mention.FindAllString(value, -1) {
				if _, err := os.Stat(filepath.Join("../..", page)); err != nil {
					t.Errorf("%s is named in %s and does not exist", page, dir)
				}
			}
		})
	}
}

func literal(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(lit.Value)
	return value, err == nil
}

// inspectGo visits all nodes of the Go files of a directory, but for tests.
func inspectGo(t *testing.T, dir string, visit func(ast.Node)) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				visit(n)
			}
			return true
		})
	}
}

// constants are the string constants of a package, by name.
func constants(t *testing.T, path string) map[string]string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	inspectGo(t, strings.TrimSpace(string(dir)), func(n ast.Node) {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					if value, ok := literal(spec.Values[i]); ok {
						out[name.Name] = value
					}
				}
			}
		}
	})
	return out
}
