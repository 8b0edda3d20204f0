package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// billOfMaterials writes what a binary is made of, read from the binary itself: <binary>.cdx.json.
func (r *release) billOfMaterials(path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	sum, err := digest(path)
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.time.Format("2006-01-02T15:04:05Z"),
		Component: &cdx.Component{
			BOMRef: filepath.Base(path), Type: cdx.ComponentTypeApplication, Name: filepath.Base(path), Version: r.version,
			Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
			Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		},
	}
	components := []cdx.Component{{
		BOMRef: "pkg:golang/stdlib@" + info.GoVersion, Type: cdx.ComponentTypeLibrary, Name: "stdlib", Version: info.GoVersion,
		PackageURL: "pkg:golang/stdlib@" + info.GoVersion,
	}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		url := "pkg:golang/" + m.Path + "@" + m.Version
		components = append(components, cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url})
	}
	bom.Components = &components
	f, err := os.Create(path + ".cdx.json")
	if err != nil {
		return err
	}
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return f.Close()
}

// provenance writes an in-toto statement with a SLSA v1 predicate: what was built from which commit by which Go. It is covered by the
// signature of the checksums.
func (r *release) provenance() error {
	files, err := r.files()
	if err != nil {
		return err
	}
	type subject struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	}
	var subjects []subject
	for _, f := range files {
		sum, err := digest(filepath.Join(r.out, f))
		if err != nil {
			return err
		}
		subjects = append(subjects, subject{f, map[string]string{"sha256": sum}})
	}
	statement := map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          source + "/blob/main/hack/release",
				"externalParameters": map[string]any{"version": r.version},
				"internalParameters": map[string]any{"go": runtime.Version()},
				"resolvedDependencies": []any{map[string]any{
					"uri": "git+" + source, "digest": map[string]string{"gitCommit": r.commit},
				}},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": source + "/blob/main/hack/release"}},
		},
	}
	text, err := json.MarshalIndent(statement, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "provenance.intoto.json"), append(text, '\n'), 0o644)
}
