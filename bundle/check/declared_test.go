package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/bundle/check"
	"github.com/operator-bindery/bindery/declcfg"
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

// A bundle in which Run finds no error can be read and rendered, and what is rendered is valid in a catalog and of the
// bundle's own package and version; one that cannot be read has an error. All of them see the same.
func TestWhatIsDeclaredIsReadByAllAlike(t *testing.T) {
	accepted := 0
	for name, fsys := range declarations {
		b, readErr := bundle.Read(t.Context(), fsys, bundle.ReadOptions{})
		if !check.IsRead(b, readErr) {
			t.Fatal(readErr)
		}
		report, err := check.Run(t.Context(), fsys, b, check.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if readErr != nil && !report.Failed() {
			t.Errorf("%s: no error, and the bundle cannot be read: %v", name, readErr)
		}
		if readErr != nil && !strings.Contains(readErr.Error(), ".yaml:") {
			t.Errorf("%s: the error has no line: %v", name, readErr)
		}
		for _, p := range report.Problems {
			if strings.Contains(p.Message, "cannot unmarshal") || p.Line == 0 {
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
		catalog := declcfg.Catalog{Packages: []declcfg.Package{{Name: "acme", DefaultChannel: "stable"}},
			Channels: []declcfg.Channel{{Package: "acme", Name: "stable",
				Entries: []declcfg.ChannelEntry{{Name: blob.Name}}}},
			Bundles: []declcfg.Bundle{*blob}}
		if err := catalog.Validate(); err != nil {
			t.Errorf("%s: no error, and the catalog is invalid: %v", name, err)
		}
		if own, err := blob.PackageProperty(); err != nil || own.PackageName != "acme" || own.Version != "1.0.0" {
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
	if accepted < 100 {
		t.Errorf("only %d bundles are accepted", accepted)
	}
}
