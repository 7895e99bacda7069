package bundlecheck_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

// declarations are documents of each place in which a bundle declares properties: every type with every value.
func declarations(yield func(name string, fsys fstest.MapFS) bool) {
	types := []string{"olm.package", "olm.package.required", "olm.gvk", "olm.gvk.required", "olm.constraint",
		"olm.label", "olm.csv.metadata", "olm.maxOpenShiftVersion", "acme.thing"}
	values := []string{`"x"`, `1`, `4.20`, `true`, `null`, `[]`, `[1]`, `{}`, `{"packageName":"other"}`,
		`{"packageName":1}`, `{"packageName":"other","version":"3.0.0"}`, `{"packageName":"acme","version":"1.0.0"}`,
		`{"packageName":"acme","version":1.0}`, `{"packageName":"other","versionRange":"not a range"}`,
		`{"packageName":"other","versionRange":">=1.0.0"}`, `{"packageName":"other","versionRange":1}`,
		`{"group":"a.io"}`, `{"group":1,"version":"v1","kind":"A"}`, `{"group":"a.io","version":"v1","kind":"A"}`,
		`{"label":"a"}`, `{"label":1}`, `{"installModes":1}`, `{"cel":{"rule":"true"}}`}
	for _, typ := range types {
		for _, value := range values {
			item := fmt.Sprintf(`{"type":%q,"value":%s}`, typ, value)
			properties, dependencies := goodBundle(), goodBundle()
			properties["metadata/properties.yaml"] = &fstest.MapFile{Data: []byte("properties:\n- " + item + "\n")}
			dependencies["metadata/dependencies.yaml"] = &fstest.MapFile{Data: []byte("dependencies:\n- " + item + "\n")}
			annotation := goodBundle("  annotations:\n", "  annotations:\n    olm.properties: '["+item+"]'\n")
			for where, fsys := range map[string]fstest.MapFS{"properties.yaml": properties,
				"dependencies.yaml": dependencies, "annotation": annotation} {
				if !yield(where+" "+item, fsys) {
					return
				}
			}
		}
	}
}

// mistyped are bundles in which one value of a file has another type. JSON is YAML.
func mistyped(yield func(name string, fsys fstest.MapFS) bool) {
	var replace func(path string, v any, use func(name string) bool, set func(any)) bool
	replace = func(path string, v any, use func(name string) bool, set func(any)) bool {
		for _, other := range []any{"x", 1, 1.5, true, nil, []any{}, []any{1}, tree{}, tree{"a": 1}} {
			set(other)
			if !use(fmt.Sprintf("%s is %v", path, other)) {
				return false
			}
		}
		set(v)
		switch v := v.(type) {
		case tree:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if !replace(path+"."+key, v[key], use, func(other any) { v[key] = other }) {
					return false
				}
			}
		case []any:
			for i := range v {
				if !replace(fmt.Sprintf("%s[%d]", path, i), v[i], use, func(other any) { v[i] = other }) {
					return false
				}
			}
		}
		return true
	}
	for _, file := range slices.Sorted(maps.Keys(goodBundle())) {
		var root tree
		if err := yaml.Unmarshal(goodBundle()[file].Data, &root); err != nil {
			panic(err)
		}
		use := func(name string) bool {
			fsys := goodBundle()
			text, err := json.Marshal(root)
			if err != nil {
				panic(err)
			}
			fsys[file] = &fstest.MapFile{Data: text}
			return yield(file+": "+name, fsys)
		}
		for _, key := range slices.Sorted(maps.Keys(root)) {
			if !replace(key, root[key], use, func(other any) { root[key] = other }) {
				return
			}
		}
	}
}

// A bundle in which Run finds no error can be read and rendered, and what is rendered is valid in a catalog and of the
// bundle's own package and version; one that cannot be read has an error. All of them see the same.
func TestWhatIsDeclaredIsReadByAllAlike(t *testing.T) { readByAllAlike(t, declarations) }

func TestWhatIsMistypedIsReadByAllAlike(t *testing.T) { readByAllAlike(t, mistyped) }

func readByAllAlike(t *testing.T, bundles iter.Seq2[string, fstest.MapFS]) {
	accepted := 0
	for name, fsys := range bundles {
		b, readErr := bundle.Read(t.Context(), fsys, bundle.ReadOptions{})
		if !bundlecheck.IsRead(b, readErr) {
			t.Fatal(readErr)
		}
		report, err := bundlecheck.Run(t.Context(), fsys, b, bundlecheck.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if readErr != nil && !report.Failed() {
			t.Errorf("%s: no error, and the bundle cannot be read: %v", name, readErr)
		}
		for _, p := range report.Problems {
			if strings.Contains(p.Message, "cannot unmarshal") || p.Line == 0 && p.Rule != bundle.RuleFile &&
				strings.HasSuffix(p.File, ".yaml") {
				t.Errorf("%s: %s", name, p)
			}
		}
		if report.Failed() {
			continue
		}
		accepted++
		blob, err := b.Blob("registry.example.com/acme:v1")
		if err != nil {
			t.Errorf("%s: no error, and the bundle cannot be rendered: %v", name, err)
			continue
		}
		catalog := declcfg.Catalog{Packages: []declcfg.Package{{Name: b.Package, DefaultChannel: "stable"}},
			Channels: []declcfg.Channel{{Package: b.Package, Name: "stable",
				Entries: []declcfg.ChannelEntry{{Name: blob.Name}}}},
			Bundles: []declcfg.Bundle{*blob}}
		if err := catalog.Validate(); err != nil {
			t.Errorf("%s: no error, and the catalog is invalid: %v", name, err)
		}
		if err := edit.LevelLatest.Apply(blob); err != nil {
			t.Errorf("%s: no error, and the manifests have no metadata: %v", name, err)
		}
		if own, err := blob.PackageProperty(); err != nil || own.PackageName != b.Package || own.Version != b.CSV.Version {
			t.Errorf("%s: no error, and the bundle is %v, %v", name, own, err)
		}
		for _, p := range blob.Properties {
			var required struct{ VersionRange string }
			if p.Type != declcfg.PropertyPackageRequired {
				continue
			}
			if err := json.Unmarshal(p.Value, &required); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if _, err := semver.ParseRange(required.VersionRange); err != nil {
				t.Errorf("%s: no error, and the range is %q: %v", name, required.VersionRange, err)
			}
		}
	}
	if accepted < 90 {
		t.Errorf("only %d bundles are accepted", accepted)
	}
}
