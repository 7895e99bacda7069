package imageset_test

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/operator-bindery/bindery/mirror/imageset"
)

// archive returns the files of an archive by directory and name.
func archive(t *testing.T, file string) map[string]map[string]string {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]string{}
	for _, f := range a.Files {
		dir, name := path.Split(f.Name)
		if out[dir] == nil {
			out[dir] = map[string]string{}
		}
		out[dir][name] = string(f.Data)
	}
	return out
}

// Pinned configurations are byte by byte those of oc-mirror, and so are the hashes of filters.
func TestPinnedIsAsRecorded(t *testing.T) {
	for name, files := range archive(t, "testdata/pinned.txtar") {
		t.Run(name, func(t *testing.T) {
			set, err := imageset.Parse([]byte(files["isc.yaml"]), "isc.yaml", imageset.Image, imageset.Options{})
			if err != nil {
				t.Fatal(err)
			}
			pinned, err := imageset.Parse([]byte(files["isc_pinned.yaml"]), "p", imageset.Image, imageset.Options{})
			if err != nil {
				t.Fatal(err)
			}
			digests := map[string]digest.Digest{}
			for _, o := range pinned.Operators {
				digests[o.Catalog.Repository()] = o.Catalog.Digest
			}
			of := func(o imageset.Operator) digest.Digest { return digests[o.Catalog.Repository()] }
			for kind, want := range map[imageset.Kind]string{imageset.Image: files["isc_pinned.yaml"],
				imageset.Delete: files["disc_pinned.yaml"]} {
				if got := string(set.Pinned(kind, of, nil, nil)); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			}
			for _, hash := range strings.Fields(files["hashes"]) {
				if !slices.ContainsFunc(set.Operators, func(o imageset.Operator) bool {
					return strings.Contains(o.Written, "$") || o.FilterHash(of(o)) == hash
				}) {
					t.Errorf("no filter has the hash %s", hash)
				}
			}
			if _, err := imageset.Parse([]byte(files["disc_pinned.yaml"]), "d", imageset.Delete,
				imageset.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// The value that the format's description gives.
func TestFilterHash(t *testing.T) {
	o := imageset.Operator{Written: "registry.example.com/acme/catalog:v1", TargetCatalog: "other", TargetTag: "x",
		Packages: []imageset.Package{{Name: "alpha-op"}, {Name: "beta-op"}}}
	o.Catalog, _ = imageset.ParseRef(o.Written)
	got := o.FilterHash("sha256:c98d71e7cc1b9f6a66e79baddfcc0d5892cfc63a1a5338f4a8c9e69d2374ff2d")
	if got != "63ef16b17fdbe7dd4458bbf7fb4ffa88" {
		t.Errorf("got %s", got)
	}
}

// Every faulty configuration that was recorded is refused, and every accepted one is read.
func TestConfigurationErrorsAsRecorded(t *testing.T) {
	// What differs on purpose: an empty configuration is valid, and a run finds that it has no images; a platform
	// without an architecture is found on reading.
	different := map[string]bool{"empty-mirror": true}
	all := archive(t, "testdata/configerrors.txtar")[""]
	for _, file := range slices.Sorted(maps.Keys(all)) {
		name, exit, _ := strings.Cut(file, ".")
		_, err := imageset.Parse([]byte(all[file]), file, imageset.Image, imageset.Options{})
		if refused := err != nil; refused != (exit != "0") != different[name] {
			t.Errorf("%s: recorded status %s, got %v", name, exit, err)
		}
		var e *imageset.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%s: %T", name, err)
		}
		if err != nil {
			t.Log(err)
		}
	}
}
