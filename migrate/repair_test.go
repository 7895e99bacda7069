package migrate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// spoiled returns the database small with related images that are not pull specs.
func spoiled(t *testing.T) string {
	return altered(t, "small",
		"INSERT INTO related_image (image, operatorbundle_name) VALUES ('oci://quay.io/kuadrant/wasm-shim:v0.5.0', "+
			"'etcdoperator.v0.9.2')",
		"INSERT INTO related_image (image, operatorbundle_name) VALUES ('https://quay.io/x?y', 'etcdoperator.v0.9.2')")
}

// repairs formats the changes in a report, one per line.
func repairs(r *migrate.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		if f.Altered() {
			b.WriteString(
				f.Package + " " + f.Channel + " " + f.Bundle + " " + f.Field + ": " + f.Before + " => " + f.After +
					"\n")
		}
	}
	return b.String()
}

// load loads and validates the output of a migration.
func load(t *testing.T, dir string) *declcfg.Catalog {
	t.Helper()
	c, err := declcfg.Load(context.Background(), os.DirFS(dir), declcfg.LoadOptions{})
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		t.Error(err)
	}
	return c
}

func TestRepairDatabase(t *testing.T) {
	src, out := spoiled(t), filepath.Join(t.TempDir(), "out")
	var invalid *declcfg.ValidationError
	if _, err := (migrate.Options{}).Run(context.Background(), src, out); !errors.As(err, &invalid) {
		t.Fatalf("not repaired: %v", err)
	}
	r, err := migrate.Options{Report: true, Verify: true, Render: render.Options{Repair: true}}.Run(context.Background(), src, out)
	var partial *migrate.PartialError
	if !errors.As(err, &partial) || partial.Repairs != 2 || len(partial.Packages) > 0 {
		t.Fatalf("got %v", err)
	}
	const want = `etcd  etcdoperator.v0.9.2 relatedImages: https://quay.io/x?y => 
etcd  etcdoperator.v0.9.2 relatedImages: oci://quay.io/kuadrant/wasm-shim:v0.5.0 => quay.io/kuadrant/wasm-shim:v0.5.0
`
	if got := repairs(r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if v := r.Verification; !v.Same || len(v.Differences) != 2 || v.Differences[0].Reason == "" ||
		v.Differences[1].Reason == "" ||
		v.Differences[0].Output+v.Differences[1].Output != "quay.io/kuadrant/wasm-shim:v0.5.0" {
		t.Errorf("%+v", v)
	}
	if c := load(t, out); len(c.Packages) != 2 || len(c.Bundles) != 12 {
		t.Errorf("%d packages, %d bundles", len(c.Packages), len(c.Bundles))
	}
}

// opm does not parse the related images of a database.
func TestImagesAsOpm(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	if _, err := (migrate.Options{Verify: true, Render: render.Options{Compat: sqlite.CompatOPM}}).Run(context.Background(), spoiled(t), out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, "etcd", "catalog.json"))
	if err != nil || !strings.Contains(string(text), `"oci://quay.io/kuadrant/wasm-shim:v0.5.0"`) {
		t.Errorf("%v: the image is not as it is in the database", err)
	}
}

func TestRepairDirectory(t *testing.T) {
	src, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	const text = `schema: olm.package
name: a
---
schema: olm.channel
name: c
package: a
entries: [{name: a.v1, replaces: a.v0}]
---
schema: olm.bundle
name: a.v1
package: a
image: example.com/a:v1
properties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]
`
	if err := os.WriteFile(filepath.Join(src, "catalog.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := migrate.Options{Verify: true, Render: render.Options{Repair: true}}.Run(context.Background(), src, out)
	var partial *migrate.PartialError
	if !errors.As(err, &partial) || partial.Repairs != 2 {
		t.Fatalf("got %v", err)
	}
	if got, want := repairs(r), "a c a.v1 replaces: a.v0 => \na   defaultChannel:  => c\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if v := r.Verification; !v.Same || len(v.Differences) != 2 || v.Differences[0].Reason == "" {
		t.Errorf("%+v", v)
	}
	load(t, out)
	if _, err := (migrate.Options{Render: render.Options{Repair: true}}).Run(context.Background(), out, filepath.Join(t.TempDir(), "again")); err != nil {
		t.Errorf("a repaired catalog is repaired again: %v", err)
	}
}

// A defect with more than one possible repair remains an error.
func TestRepairDoesNotGuess(t *testing.T) {
	src := t.TempDir()
	if err := os.WriteFile(filepath.Join(src, "catalog.yaml"), []byte("schema: olm.package\nname: a\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	var invalid *declcfg.ValidationError
	if _, err := (migrate.Options{Render: render.Options{Repair: true}}).Run(context.Background(), src, filepath.Join(t.TempDir(), "out")); !errors.As(err, &invalid) {
		t.Errorf("got %v", err)
	}
}
