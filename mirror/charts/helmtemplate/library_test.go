package helmtemplate_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"

	"github.com/operator-bindery/bindery/internal/testing/releasetest"
	"github.com/operator-bindery/bindery/mirror/charts/helmtemplate"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the library logs what it overlooks
	os.Exit(m.Run())
}

// answer is what one of the two makes of a chart with values.
type answer struct {
	files     map[string]string
	manifests []string // SOURCE KIND HOOKS CONTENT
	err       error
}

// library renders a chart with the library.
func library(load func() (*chart.Chart, error), o helmtemplate.Options) (a answer) {
	c, err := load()
	if err != nil {
		return answer{err: err}
	}
	caps := chartutil.DefaultCapabilities.Copy()
	if o.KubeVersion != "" {
		v, err := chartutil.ParseKubeVersion(o.KubeVersion)
		if err != nil {
			return answer{err: err}
		}
		caps.KubeVersion = *v
	}
	caps.APIVersions = append(slices.Clone(caps.APIVersions), o.APIVersions...)
	values := copyValues(o.Values)
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return answer{err: err}
	}
	const skipSchema = true // it says nothing of what is rendered
	top, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, chartutil.ReleaseOptions{}, caps, skipSchema)
	if err != nil {
		return answer{err: err}
	}
	if a.files, a.err = engine.Render(c, top); a.err != nil {
		return a
	}
	sorted := maps.Clone(a.files)
	maps.DeleteFunc(sorted, func(name, _ string) bool { return strings.HasSuffix(name, ".txt") })
	hooks, objects, err := releaseutil.SortManifests(sorted, nil, releaseutil.InstallOrder)
	if err != nil {
		a.err = err
		return a
	}
	for _, m := range objects {
		a.manifests = append(a.manifests, fmt.Sprint(m.Name, " ", m.Head.Kind, " [] ", m.Content))
	}
	for _, h := range hooks {
		a.manifests = append(a.manifests, fmt.Sprint(h.Path, " ", h.Kind, " ", h.Events, " ", h.Manifest))
	}
	return a
}

// ours renders a chart with the package.
func ours(ctx context.Context, load func() (*helmtemplate.Chart, error), o helmtemplate.Options) (a answer) {
	c, err := load()
	if err != nil {
		return answer{err: err}
	}
	o.Tests = true
	o.Values = copyValues(o.Values)
	var manifests []helmtemplate.Manifest
	a.files, manifests, a.err = c.RenderFiles(ctx, o)
	for _, m := range manifests {
		if !m.CRD {
			a.manifests = append(a.manifests, fmt.Sprint(m.Source, " ", m.Kind, " ", m.Hooks, " ", m.Content))
		}
	}
	return a
}

func copyValues(v map[string]any) map[string]any {
	c, err := chartutil.CoalesceValues(&chart.Chart{Metadata: &chart.Metadata{}}, v)
	if err != nil {
		panic(err)
	}
	return c
}

// flipped returns values in which each boolean is the other one, and each text or number is as it was.
func flipped(v map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range v {
		switch value := value.(type) {
		case bool:
			out[key] = !value
		case map[string]any:
			out[key] = flipped(value)
		}
	}
	return out
}

// differ tells what differs from one rendering of the library to the next: such a line is not compared.
func differ(a, b, again string) string {
	x, y, z := strings.Split(a, "\n"), strings.Split(b, "\n"), strings.Split(again, "\n")
	if len(x) != len(y) || len(x) != len(z) {
		return fmt.Sprintf("%d lines, want %d", len(y), len(x))
	}
	for i := range x {
		if x[i] != y[i] && x[i] == z[i] {
			return fmt.Sprintf("line %d: %q, want %q", i+1, y[i], x[i])
		}
	}
	return ""
}

// outcome counts what a comparison has seen.
type outcome struct{ rendered, failed, files, bytes int }

// compare renders with both and compares every byte. It returns what is random.
func compare(t *testing.T, lib func() (*chart.Chart, error), own func() (*helmtemplate.Chart, error), o helmtemplate.Options, seen *outcome) (random []string) {
	t.Helper()
	want, got := library(lib, o), ours(t.Context(), own, o)
	if (want.err == nil) != (got.err == nil) {
		t.Errorf("error %v, want %v", got.err, want.err)
		return nil
	}
	if want.err != nil {
		seen.failed++
		t.Logf("both fail: %v; %v", got.err, want.err)
		return nil
	}
	seen.rendered++
	if !slices.Equal(slices.Sorted(maps.Keys(got.files)), slices.Sorted(maps.Keys(want.files))) {
		t.Errorf("files %q, want %q", slices.Sorted(maps.Keys(got.files)), slices.Sorted(maps.Keys(want.files)))
		return nil
	}
	again := answer{files: want.files}
	if !maps.Equal(got.files, want.files) {
		again = library(lib, o)
	}
	for name, text := range want.files {
		seen.files++
		seen.bytes += len(text)
		if got.files[name] == text {
			continue
		}
		if d := differ(text, got.files[name], again.files[name]); d != "" {
			t.Errorf("%s: %s", name, d)
		} else {
			random = append(random, path.Base(name))
		}
	}
	if len(random) > 0 {
		return random // and so are the manifests
	}
	if !slices.Equal(got.manifests, want.manifests) {
		for i := range max(len(got.manifests), len(want.manifests)) {
			if i >= len(got.manifests) || i >= len(want.manifests) || got.manifests[i] != want.manifests[i] {
				t.Errorf("manifest %d of %d, want %d:\n%.300s", i, len(got.manifests), len(want.manifests),
					strings.Join(got.manifests[min(i, len(got.manifests)):], "\n"))
				break
			}
		}
	}
	return nil
}

// compareAll compares a chart with its values, with every boolean the other one, and on another cluster.
func compareAll(t *testing.T, lib func() (*chart.Chart, error), own func() (*helmtemplate.Chart, error), seen *outcome) []string {
	t.Helper()
	random := compare(t, lib, own, helmtemplate.Options{}, seen)
	newer := helmtemplate.Options{KubeVersion: "v1.33.0", APIVersions: []string{"route.openshift.io/v1",
		"security.openshift.io/v1", "monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor", "cert-manager.io/v1"}}
	random = append(random, compare(t, lib, own, newer, seen)...)
	if c, err := own(); err == nil {
		values, err := c.DefaultValues()
		if err != nil {
			t.Fatal(err)
		}
		random = append(random, compare(t, lib, own, helmtemplate.Options{Values: flipped(values)}, seen)...)
		// One at a time, so that one "required" does not hide the others.
		n := 0
		for _, key := range slices.Sorted(maps.Keys(values)) {
			one := flipped(map[string]any{key: values[key]})
			if table, ok := one[key].(map[string]any); ok && len(table) == 0 || len(one) == 0 || n == maxFlips {
				continue
			}
			n++
			random = append(random, compare(t, lib, own, helmtemplate.Options{Values: one}, seen)...)
		}
	}
	slices.Sort(random)
	return slices.Compact(random)
}

// maxFlips is how many values of a chart are turned one at a time.
const maxFlips = 2

// chartDirs returns the directories of charts below a directory that are in no other chart.
func chartDirs(t *testing.T, root string) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			if _, err := os.Stat(filepath.Join(name, "Chart.yaml")); err == nil {
				dirs = append(dirs, name)
				return filepath.SkipDir
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// moduleDir returns the directory of the library's sources.
func moduleDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "helm.sh/helm/v3").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// random are template files of the library's charts that it renders differently each time: they call randAlphaNum.
var random = []string{"secrets.yaml", "test-runner.yaml"}

// The charts that mirrors are tested with, the library's own ones, and those of CHARTS, a list of further directories, are
// rendered as the library does.
func TestCharts(t *testing.T) {
	recorded := t.TempDir()
	if err := os.CopyFS(recorded, releasetest.Files(t)); err != nil {
		t.Fatal(err)
	}
	further := filepath.SplitList(os.Getenv("CHARTS"))
	var seen outcome
	charts := 0
	compareChart := func(name string, lib func() (*chart.Chart, error), own func() (*helmtemplate.Chart, error)) {
		charts++
		t.Run(name, func(t *testing.T) {
			for _, file := range compareAll(t, lib, own, &seen) {
				if !slices.Contains(random, file) && len(further) == 0 {
					t.Errorf("%s is random", file)
				}
			}
		})
	}
	for _, root := range append([]string{recorded, moduleDir(t)}, further...) {
		for _, dir := range chartDirs(t, root) {
			compareChart(strings.TrimPrefix(dir, root+"/"), func() (*chart.Chart, error) { return loader.LoadDir(dir) },
				func() (*helmtemplate.Chart, error) { return helmtemplate.Load(t.Context(), dir, helmtemplate.Limits{}) })
		}
		err := filepath.WalkDir(root, func(name string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".tgz" || strings.Contains(name, "/charts/") && root != recorded {
				return err
			}
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			compareChart(strings.TrimPrefix(name, root+"/"),
				func() (*chart.Chart, error) { return loader.LoadArchive(bytes.NewReader(data)) },
				func() (*helmtemplate.Chart, error) {
					return helmtemplate.Parse(t.Context(), data, name, helmtemplate.Limits{})
				})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d charts: %+v", charts, seen)
	if charts < 100 || seen.rendered < 150 {
		t.Errorf("%d charts, %+v", charts, seen)
	}
}

// The APIs and the version of Helm that templates see are the library's.
func TestCapabilities(t *testing.T) {
	if !slices.Equal(helmtemplate.APIs(), helmtemplate.VersionSet(chartutil.DefaultVersionSet)) {
		t.Errorf("%q, want %q", helmtemplate.APIs(), chartutil.DefaultVersionSet)
	}
}
