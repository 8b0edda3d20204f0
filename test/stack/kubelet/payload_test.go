package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPayload_replacesFilesByOneRename(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "volume")
	p := payload{dir: dir, owner: owner{group: -1}}
	if changed, err := p.write(content{"a": {data: []byte("1"), mode: 0o644}, "sub/b": {data: []byte("2"), mode: 0o600}}); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if read(t, filepath.Join(dir, "a")) != "1" || read(t, filepath.Join(dir, "sub", "b")) != "2" {
		t.Error("wrong content")
	}
	if info, err := os.Stat(filepath.Join(dir, "sub", "b")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v", info, err)
	}
	if link, err := os.Readlink(filepath.Join(dir, "a")); err != nil || link != "..data/a" {
		t.Errorf("a is %q, %v", link, err)
	}
	before, _ := os.Readlink(filepath.Join(dir, "..data"))

	if changed, err := p.write(content{"a": {data: []byte("1"), mode: 0o644}, "sub/b": {data: []byte("2"), mode: 0o600}}); err != nil || changed {
		t.Errorf("the same content again: %v, %v", changed, err)
	}
	if changed, err := p.write(content{"a": {data: []byte("3"), mode: 0o644}, "c": {data: []byte("4"), mode: 0o644}}); err != nil || !changed {
		t.Fatal(changed, err)
	}
	after, _ := os.Readlink(filepath.Join(dir, "..data"))
	if before == after {
		t.Error("the files were changed in place")
	}
	if got := names(t, dir); !slices.Equal(got, []string{"..data", after, "a", "c"}) {
		t.Errorf("left in the directory: %v", got)
	}
	if read(t, filepath.Join(dir, "a")) != "3" {
		t.Error("old content after the change")
	}
	if changed, err := p.write(content{}); err != nil || !changed || len(names(t, dir)) != 2 {
		t.Errorf("emptied: %v, %v, %v", changed, err, names(t, dir))
	}
}

func TestPayload_groupMayReadWhatTheOwnerMay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := payload{dir: dir, owner: owner{group: os.Getgid()}}
	if _, err := p.write(content{"token": {data: []byte("t"), mode: 0o600, token: true}, "x": {mode: 0o400}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range []string{"token", "x"} {
		info, err := os.Stat(filepath.Join(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Mode().Perm().String())
	}
	if want := "-rw-rw---- -r--r-----"; strings.Join(got, " ") != want {
		t.Errorf("modes %v, want %s", got, want)
	}
}
