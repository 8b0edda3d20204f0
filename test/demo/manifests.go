package main

import (
	"context"
	"embed"
	"fmt"
)

// The files that are applied, in the order of their numbers. kubectl apply -f takes them all.
//
//go:embed manifests/*.yaml
var manifests embed.FS

// manifest returns the content of a file.
func manifest(name string) ([]byte, error) {
	text, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest %s: %w", name, err)
	}
	return text, nil
}

// apply shows a file and gives it to kubectl.
func (d *demo) apply(ctx context.Context, names ...string) error {
	for _, name := range names {
		text, err := manifest(name)
		if err != nil {
			return err
		}
		d.command("kubectl apply -f test/demo/manifests/" + name)
		d.text(string(text))
		out, err := d.kube.kubectl(ctx, text, "apply", "-f", "-")
		if err != nil {
			return err
		}
		for _, l := range lines(out) {
			d.say("%s", l)
		}
	}
	return nil
}
