package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImageName_stripsTagAndDigestOnly(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"echo":                            "echo",
		"echo:dev":                        "echo",
		"registry.test:5000/a/echo":       "registry.test:5000/a/echo",
		"registry.test:5000/a/echo:v1":    "registry.test:5000/a/echo",
		"registry.test/echo@sha256:00":    "registry.test/echo",
		"registry.test/echo:v1@sha256:00": "registry.test/echo",
	} {
		if got := imageName(in); got != want {
			t.Errorf("imageName(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestImages_flagThenFileThenASentence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.WriteFile(bin, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "images")
	i := images{file: list}
	if err := i.Set("a:v1=" + bin); err != nil {
		t.Fatal(err)
	}
	if err := i.Set("nothing"); err == nil {
		t.Error("a flag without = was taken")
	}
	if got, err := i.binary("a:v2"); err != nil || got != bin {
		t.Errorf("flag: %q, %v", got, err)
	}
	if _, err := i.binary("b"); err == nil || !strings.Contains(err.Error(), `no binary stands for image "b"`) {
		t.Errorf("unknown image: %v", err)
	}
	text := "# comment line\nb /nowhere\nb " + bin + "\nc " + plain + "\nd /nowhere\n"
	if err := os.WriteFile(list, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := i.binary("b:x"); err != nil || got != bin {
		t.Errorf("file: %q, %v", got, err)
	}
	for _, broken := range []string{"c", "d"} {
		if got, err := i.binary(broken); err == nil {
			t.Errorf("image %s gave %q", broken, got)
		}
	}
}
