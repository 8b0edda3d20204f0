package main

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// payload keeps a directory in step with a volume's content. The layout is
// that of the real kubelet, which programs that watch mounted files rely on:
// the files lie in a directory of their own, "..data" is a link to it that is
// replaced by one rename, and each name at the top is a link through "..data".
type payload struct {
	dir   string
	owner owner
	last  content
}

// owner is who may read a volume's files.
type owner struct {
	uid int
	// group is the Pod's fsGroup, or -1.
	group int
}

const dataLink = "..data"

// write brings the directory to the content; the same content again is no
// change.
func (p *payload) write(want content) (changed bool, err error) {
	if p.last != nil && maps.EqualFunc(p.last, want, func(a, b file) bool { return a.mode == b.mode && bytes.Equal(a.data, b.data) }) {
		return false, nil
	}
	if err = os.MkdirAll(p.dir, 0o755); err != nil {
		return false, err
	}
	fresh, err := os.MkdirTemp(p.dir, "..files_")
	if err != nil {
		return false, err
	}
	if err = p.fill(fresh, want); err != nil {
		return false, errors.Join(err, os.RemoveAll(fresh))
	}
	old, err := os.Readlink(filepath.Join(p.dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	tmp := filepath.Join(p.dir, dataLink+"_tmp")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := os.Symlink(filepath.Base(fresh), tmp); err != nil {
		return false, err
	}
	if err := os.Rename(tmp, filepath.Join(p.dir, dataLink)); err != nil {
		return false, err
	}
	if err := p.link(want); err != nil {
		return false, err
	}
	p.last = maps.Clone(want)
	if old != "" {
		return true, os.RemoveAll(filepath.Join(p.dir, old))
	}
	return true, nil
}

// fill writes the files below dir.
func (p *payload) fill(dir string, want content) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for name, f := range want {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.data, 0o600); err != nil {
			return err
		}
		uid, gid, mode := 0, p.owner.group, f.mode
		switch {
		case gid >= 0:
			mode |= (mode & 0o600) >> 3
		case f.token:
			uid = p.owner.uid
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(path, uid, gid); err != nil {
				return err
			}
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	return nil
}

// link makes one link for each name at the top and removes the others.
func (p *payload) link(want content) error {
	top := map[string]bool{}
	for name := range want {
		first, _, _ := strings.Cut(name, "/")
		top[first] = true
	}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") || top[e.Name()] {
			delete(top, e.Name())
			continue
		}
		if err := os.Remove(filepath.Join(p.dir, e.Name())); err != nil {
			return err
		}
	}
	for name := range top {
		if err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(p.dir, name)); err != nil {
			return err
		}
	}
	return nil
}
