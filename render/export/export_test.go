package export_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/render/export"
)

// options reads images from a registry under the name that the recorded references have.
func options(t *testing.T, r *testregistry.Registry) export.Options {
	t.Helper()
	client, err := images.NewClient(
		images.ClientOptions{Policy: policy.Read,
			Options: registries.Options{Registry: registries.Config{RegistriesConf: r.RegistriesConf(t, testregistry.RecordedHost),
				PlainHTTP: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return export.Options{Render: render.Options{Images: client}}
}

// A warning reports a channel whose graph differs from that of the ClusterServiceVersions, such as one added in semver
// mode.
func TestOtherGraphsAreTold(t *testing.T) {
	o := options(t, testregistry.Recorded(t))
	o.Packages = []string{"rhoas-operator", "etcd"}
	var warned []string
	o.Warn = func(_, message string) { warned = append(warned, message) }
	done := 0
	o.Progress = func(n, total int, _ string) {
		if done++; n != done || n > total {
			t.Errorf("%d of %d bundles after %d", n, total, done)
		}
	}
	r, err := export.Run(t.Context(), recorded.All(t).Database(t, "semver"), filepath.Join(t.TempDir(), "out"), o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Packages, []string{"etcd", "rhoas-operator"}) || r.Bundles != done {
		t.Errorf("got %+v, %d bundles told", r, done)
	}
	if !slices.ContainsFunc(warned, func(s string) bool {
		return strings.Contains(s,
			`of package "rhoas-operator": package manifests have the edges that ClusterServiceVersions name; in the catalog`)
	}) {
		t.Errorf("warned of %q", warned)
	}
}

// bundleImage returns the image of a bundle.
func bundleImage(name, version, more string) testregistry.Image {
	labels := map[string]string{
		"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1": "content/",
		"operators.operatorframework.io.bundle.metadata.v1":  "metadata/",
		"operators.operatorframework.io.bundle.package.v1":   "a",
		"operators.operatorframework.io.bundle.channels.v1":  "stable",
	}
	annotations := "annotations:\n"
	for key, value := range labels {
		annotations += "  " + key + ": " + value + "\n"
	}
	return testregistry.Image{Labels: labels, Layers: []map[string]string{{
		"metadata/annotations.yaml": annotations,
		"content/csv.yaml": "kind: ClusterServiceVersion\nmetadata: {name: " + name + "}\nspec: {version: " +
			version + more + "}\n",
		"content/sub/more.txt": "more",
		"other/file":           "not of the bundle",
	}}}
}

// catalog returns a catalog with one package and bundles of these versions; their images are a:0, a:1 and so on.
func catalog(t *testing.T, versions ...string) string {
	t.Helper()
	dir := t.TempDir()
	text := "schema: olm.package\nname: a\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: a\nname: " +
		"stable\nentries:\n"
	for i := range versions {
		text += "- name: a.v" + string(rune('0'+i)) + "\n"
		if i > 0 {
			text += "  replaces: a.v" + string(rune('0'+i-1)) + "\n"
		}
	}
	for i, v := range versions {
		n := string(rune('0' + i))
		text += "---\nschema: olm.bundle\npackage: a\nname: a.v" + n + "\nimage: " + testregistry.RecordedHost + "/a:" +
			n + "\nproperties:\n- type: olm.package\n  value: {packageName: a, version: " + v + "}\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The export has the manifests directory that the annotations name, with its subdirectories, and nothing else of the
// image.
func TestManifestsOfABundle(t *testing.T) {
	r := testregistry.New(t)
	r.AddImage(t, "a", "0", bundleImage("a.v0", "1.0.0", ""))
	r.AddImage(t, "a", "1", bundleImage("other", "2.0.0", ", replaces: a.v0"))
	out := filepath.Join(t.TempDir(), "out")
	o := options(t, r)
	var warned []string
	o.Warn = func(_, message string) { warned = append(warned, message) }
	if _, err := export.Run(t.Context(), catalog(t, "1.0.0", "2.0.0"), out, o); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
		if name, rerr := filepath.Rel(out, path); rerr == nil && !d.IsDir() {
			got = append(got, filepath.ToSlash(name))
		}
		return err
	})
	want := []string{"a/1.0.0/csv.yaml", "a/1.0.0/sub/more.txt", "a/2.0.0/csv.yaml", "a/2.0.0/sub/more.txt",
		"a/package.yaml"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], `holds a bundle called "other"`) {
		t.Errorf("warned of %q", warned)
	}
}

func TestEveryBundleThatCannotBeFetchedIsTold(t *testing.T) {
	r := testregistry.New(t)
	r.AddImage(t, "a", "1", bundleImage("a.v1", "2.0.0", ""))
	r.AddImage(t, "a", "2", bundleImage("''", "3.0.0", ""))
	out := filepath.Join(t.TempDir(), "out")
	_, err := export.Run(t.Context(), catalog(t, "1.0.0", "2.0.0", "3.0.0"), out, options(t, r))
	if err == nil || !strings.Contains(err.Error(), "/a:0") || strings.Contains(err.Error(), "/a:1") ||
		!strings.Contains(err.Error(), "/a:2") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
}

func TestMissingPackagesAreTold(t *testing.T) {
	o := options(t, testregistry.New(t))
	o.Packages = []string{"x", "a", "y"}
	_, err := export.Run(t.Context(), catalog(t, "1.0.0"), filepath.Join(t.TempDir(), "out"), o)
	var missing *declcfg.NotFoundError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), `"y"`) ||
		strings.Contains(err.Error(), `"a" not found`) {
		t.Errorf("got %v", err)
	}
}

func TestAnExportThatIsCancelledWritesNothing(t *testing.T) {
	r := testregistry.Recorded(t)
	ctx, cancel := context.WithCancel(t.Context())
	o := options(t, r)
	o.Progress = func(int, int, string) { cancel() }
	parent := t.TempDir()
	if _, err := export.Run(ctx, recorded.Part(t).Database(t, "small"), filepath.Join(parent, "x", "out"),
		o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A package of an old database is exported even if others are invalid; an invalid requested package is an error with
// the reason.
func TestOnlyTheExportedPackagesAreValid(t *testing.T) {
	o := options(t, testregistry.Recorded(t))
	path := filepath.Join(t.TempDir(), "index.db")
	data, err := os.ReadFile(recorded.Part(t).Database(t, "small"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE channel_entry SET replaces = NULL WHERE package_name = 'silicom-sts-operator'"); err !=
		nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	o.Packages = []string{"etcd"}
	r, err := export.Run(t.Context(), path, filepath.Join(t.TempDir(), "out"), o)
	if err != nil || !slices.Equal(r.Packages, []string{"etcd"}) || r.Bundles == 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, packages := range [][]string{{"etcd", "silicom-sts-operator"}, nil} {
		o.Packages = packages
		out := filepath.Join(t.TempDir(), "out")
		if _, err := export.Run(t.Context(), path, out, o); err == nil || !strings.Contains(err.Error(),
			`package "silicom-sts-operator": invalid index:`) {
			t.Errorf("%q: %v", packages, err)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Errorf("%q: something was written", packages)
		}
	}
}
