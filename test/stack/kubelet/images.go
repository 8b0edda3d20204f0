package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// images knows which static binary stands for which image. Tags and digests
// do not matter.
type images struct {
	fixed map[string]string
	// file, when set, is read again for every lookup: a test may add an image
	// to a running stack.
	file string
}

// String and Set make images a repeatable flag: NAME=PATH.
func (i *images) String() string { return "" }

// Set adds one NAME=PATH.
func (i *images) Set(s string) error {
	name, path, ok := strings.Cut(s, "=")
	if !ok || name == "" || path == "" {
		return fmt.Errorf("want NAME=PATH, have %q", s)
	}
	if i.fixed == nil {
		i.fixed = map[string]string{}
	}
	i.fixed[imageName(name)] = path
	return nil
}

// binary returns the path of the binary that stands for an image.
func (i *images) binary(image string) (string, error) {
	name := imageName(image)
	path, ok := i.fixed[name]
	if !ok && i.file != "" {
		text, err := os.ReadFile(i.file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		path, ok = parseImages(string(text))[name]
	}
	if !ok {
		return "", fmt.Errorf("no binary stands for image %q; name one with --image=%s=PATH or a line %q in %s", image, name, name+" PATH", i.fileName())
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("the binary of image %q: %w", image, err)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return "", fmt.Errorf("the binary of image %q: %s is not executable", image, path)
	}
	return filepath.Abs(path)
}

func (i *images) fileName() string {
	if i.file == "" {
		return "the file of --images"
	}
	return i.file
}

// parseImages reads lines of "NAME PATH"; the last line for a name counts.
func parseImages(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 2 && !strings.HasPrefix(f[0], "#") {
			m[imageName(f[0])] = f[1]
		}
	}
	return m
}

// imageName strips the tag and the digest. A colon before the last slash
// belongs to the registry's port.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		image = image[:i]
	}
	return image
}
