package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is what one run builds.
type release struct {
	root    string // of the checkout
	out     string
	version string
	commit  string
	time    time.Time // of the commit
}

// target is an operating system and an architecture, as Go names them.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "-" + t.arch }

var (
	serverTargets = []target{{"linux", "amd64"}, {"linux", "arm64"}}
	clientTargets = []target{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}}
)

const (
	controller = "openstack-gateway-controller"
	plugin     = "kubectl-octavia"
)

func main() {
	r := release{}
	key := ""
	flag.StringVar(&r.root, "root", ".", "the checkout")
	flag.StringVar(&r.out, "out", "dist", "where to write; must not exist")
	flag.StringVar(&r.version, "version", "", "semantic version without v; empty takes the chart's")
	flag.StringVar(&key, "signing-key", "", "SSH private key to sign the checksums with; empty signs nothing")
	flag.Parse()
	if err := r.run(key); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

var versionPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

func (r *release) run(key string) error {
	if err := r.identify(); err != nil {
		return err
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s exists: remove it, or name another directory with -out", r.out)
		}
		return err
	}
	var binaries []string
	for _, t := range serverTargets {
		path, err := r.build(controller, t)
		if err != nil {
			return err
		}
		binaries = append(binaries, path)
	}
	image, err := r.image(binaries)
	if err != nil {
		return err
	}
	for _, t := range clientTargets {
		path, err := r.build(plugin, t)
		if err != nil {
			return err
		}
		binaries = append(binaries, path)
	}
	for _, path := range binaries {
		if err := r.billOfMaterials(path); err != nil {
			return err
		}
	}
	if err := r.chart(image); err != nil {
		return err
	}
	if err := r.crds(); err != nil {
		return err
	}
	if err := r.provenance(); err != nil {
		return err
	}
	sums, err := r.checksums()
	if err != nil || key == "" {
		return err
	}
	return r.command(nil, "ssh-keygen", "-q", "-Y", "sign", "-n", "gateway-api-openstack-release", "-f", key, sums)
}

// identify finds out what is built.
func (r *release) identify() error {
	var err error
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if r.version == "" {
		if r.version, err = chartVersion(r.root); err != nil {
			return err
		}
	}
	if !versionPattern.MatchString(r.version) {
		return fmt.Errorf("version %q is not of the form 1.2.3", r.version)
	}
	text, err := r.output("git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return fmt.Errorf("a release is built from a git checkout: %w", err)
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(text), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("time of the commit: %w", err)
	}
	r.commit, r.time = commit, time.Unix(unix, 0).UTC()
	return nil
}

// build makes one static binary and returns its path.
func (r *release) build(name string, t target) (string, error) {
	path := filepath.Join(r.out, name+"-"+t.String())
	if t.os == "windows" {
		path += ".exe"
	}
	env := []string{"CGO_ENABLED=0", "GOOS=" + t.os, "GOARCH=" + t.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0"}
	err := r.command(env, "go", "build", "-trimpath", "-ldflags=-s -w -buildid=", "-o", path, "./cmd/"+name)
	if err != nil {
		return "", fmt.Errorf("building %s for %s: %w", name, t, err)
	}
	return path, nil
}

func (r *release) command(env []string, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Dir, c.Env, c.Stderr = r.root, append(os.Environ(), env...), os.Stderr
	return c.Run()
}

func (r *release) output(name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Stderr = r.root, os.Stderr
	text, err := c.Output()
	return string(text), err
}

// files are the regular files below the output, relative to it, sorted.
func (r *release) files() ([]string, error) {
	var all []string
	err := filepath.WalkDir(r.out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(r.out, path)
		all = append(all, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(all)
	return all, err
}

func digest(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// checksums writes SHA256SUMS over everything, as sha256sum --check reads it, and returns its path.
func (r *release) checksums() (string, error) {
	files, err := r.files()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, f := range files {
		sum, err := digest(filepath.Join(r.out, f))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, f)
	}
	path := filepath.Join(r.out, "SHA256SUMS")
	return path, os.WriteFile(path, []byte(text.String()), 0o644)
}
