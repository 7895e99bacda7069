package clitest

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// ClusterBundles are bundles by package, each with its files by name, and what operator-controller says of them: the
// message of the condition Progressing of a ClusterExtension.
func ClusterBundles(t *testing.T) (bundles map[string]map[string]string, said map[string]string) {
	t.Helper()
	bundles = map[string]map[string]string{}
	for name, text := range recorded.Archive(t, "../../../testdata/olmv1/cluster.tar.zst") {
		if name == "progressing.json" {
			if err := json.Unmarshal(text, &said); err != nil {
				t.Fatal(err)
			}
			continue
		}
		parts := strings.SplitN(name, "/", 3) // bundles/PACKAGE-VERSION/FILE
		pkg := parts[1][:strings.LastIndex(parts[1], "-")]
		if bundles[pkg] == nil {
			bundles[pkg] = map[string]string{}
		}
		bundles[pkg][parts[2]] = string(text)
	}
	return bundles, said
}

// CatalogOf returns a catalog with the bundle of a package: with its objects, or with what a catalog shows of them.
func CatalogOf(t *testing.T, pkg, image string, files map[string]string, objects bool) string {
	t.Helper()
	property := func(typ string, value any) map[string]any { return map[string]any{"type": typ, "value": value} }
	blob := map[string]any{"schema": "olm.bundle", "package": pkg, "image": image}
	var properties []any
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Dir(name) != "manifests" || filepath.Ext(name) != ".yaml" {
			continue
		}
		text, err := yaml.YAMLToJSON([]byte(files[name]))
		if err != nil {
			t.Fatal(err)
		}
		if objects {
			properties = append(properties, property("olm.bundle.object",
				map[string]any{"data": base64.StdEncoding.EncodeToString(text)}))
		}
		var csv struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Version               string
				InstallModes          any
				APIServiceDefinitions any
			}
		}
		if err := json.Unmarshal(text, &csv); err != nil || csv.Kind != "ClusterServiceVersion" {
			continue
		}
		blob["name"] = csv.Metadata.Name
		properties = append(properties, property("olm.package", map[string]any{"packageName": pkg,
			"version": csv.Spec.Version}))
		if !objects {
			metadata := map[string]any{"installModes": csv.Spec.InstallModes}
			if csv.Spec.APIServiceDefinitions != nil {
				metadata["apiServiceDefinitions"] = csv.Spec.APIServiceDefinitions
			}
			properties = append(properties, property("olm.csv.metadata", metadata))
		}
	}
	var dependencies struct {
		Dependencies []struct {
			Type  string
			Value map[string]any
		}
	}
	if err := yaml.Unmarshal([]byte(files["metadata/dependencies.yaml"]), &dependencies); err != nil {
		t.Fatal(err)
	}
	for _, d := range dependencies.Dependencies {
		if v := d.Value["version"]; v != nil && d.Type == "olm.package" {
			d.Value = map[string]any{"packageName": d.Value["packageName"], "versionRange": v}
		}
		properties = append(properties, property(d.Type+".required", d.Value))
	}
	blob["properties"] = properties
	var out strings.Builder
	for _, b := range []any{
		map[string]any{"schema": "olm.package", "name": pkg, "defaultChannel": "stable"},
		map[string]any{"schema": "olm.channel", "package": pkg, "name": "stable",
			"entries": []any{map[string]any{"name": blob["name"]}}}, blob} {
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(text, '\n'))
	}
	return out.String()
}
