package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

const chartDir = "charts/gateway-api-openstack"

var versionLine = regexp.MustCompile(`(?m)^version: (\S+)$`)

func chartVersion(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, chartDir, "Chart.yaml"))
	if err != nil {
		return "", err
	}
	m := versionLine.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s/Chart.yaml has no version", chartDir)
	}
	return string(m[1]), nil
}

// chart packs the Helm chart with the version of the release, and with the digest of its image. "helm package" writes the time of now
// into the archive, so it is not used.
func (r *release) chart(image string) error {
	list, err := r.output("git", "ls-files", "-z", chartDir)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	w := tar.NewWriter(zip)
	for _, name := range strings.Split(strings.TrimSuffix(list, "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		inside := strings.TrimPrefix(name, path.Dir(chartDir)+"/")
		switch path.Base(name) {
		case "Chart.yaml":
			text = regexp.MustCompile(`(?m)^(version|appVersion): .*$`).ReplaceAll(text, []byte("$1: "+r.version))
		case "values.yaml":
			pinned := bytes.Replace(text, []byte("digest: \"\""), []byte("digest: "+image), 1)
			if bytes.Equal(pinned, text) {
				return fmt.Errorf("%s has no empty digest to fill in", name)
			}
			text = pinned
		}
		if err := w.WriteHeader(&tar.Header{Name: inside, Mode: 0o644, Size: int64(len(text)), ModTime: r.time, Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "gateway-api-openstack-"+r.version+".tgz"), packed.Bytes(), 0o644)
}

// crds writes the CRDs in one file, for those who install them by themselves.
func (r *release) crds() error {
	files, err := filepath.Glob(filepath.Join(r.root, "config/crd/gateway-api-openstack.dev_*.yaml"))
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(text, []byte("---")) {
			all.WriteString("---\n")
		}
		all.Write(text)
	}
	return os.WriteFile(filepath.Join(r.out, "crds.yaml"), all.Bytes(), 0o644)
}
