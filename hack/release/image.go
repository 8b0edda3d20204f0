package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const source = "https://github.com/gateway-api-openstack/gateway-api-openstack"

// image writes the OCI layout "image" with one image for each binary of the controller, and returns the digest of its index.
func (r *release) image(binaries []string) (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, path := range binaries {
		img, err := r.imageOf(path, serverTargets[i])
		if err != nil {
			return "", fmt.Errorf("image of %s: %w", serverTargets[i], err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: serverTargets[i].os, Architecture: serverTargets[i].arch}},
		})
	}
	path, err := layout.Write(filepath.Join(r.out, "image"), empty.Index)
	if err != nil {
		return "", err
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})
	if err := path.AppendIndex(index, named); err != nil {
		return "", err
	}
	sum, err := index.Digest()
	return sum.String(), err
}

func (r *release) imageOf(path string, t target) (v1.Image, error) {
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	// The directory for the mount of clouds.yaml has to be there: the root file system is read-only.
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "etc/openstack/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: controller, Mode: 0o755, Size: int64(len(binary))},
	} {
		h.ModTime, h.Format = r.time, tar.FormatPAX
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(binary); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "hack/release"},
	})
	if err != nil {
		return nil, err
	}
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	return mutate.ConfigFile(img, r.config(img, t))
}

func (r *release) config(img v1.Image, t target) *v1.ConfigFile {
	c, err := img.ConfigFile()
	if err != nil {
		c = &v1.ConfigFile{}
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = t.os, t.arch, v1.Time{Time: r.time}
	c.Config = v1.Config{
		User:       "65532:65532",
		Entrypoint: []string{"/" + controller},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "gateway-api-openstack",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.commit,
			"org.opencontainers.image.source":   source,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return c
}
