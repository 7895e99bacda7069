package appregistry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/render/internal/appregistry"
)

// Reading an export of opm's gives the catalog that it was exported from, except for the images of the bundles and what
// only the bundles' metadata contained.
func TestRecordedExportIsTheCatalog(t *testing.T) {
	want := small(t)
	tr, err := appregistry.Open(t.Context(), dirFS(t, recorded.Export(t)), appregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := catalogOf(t, tr)
	if g, w := entries(got), entries(want); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	if len(got.Bundles) != len(want.Bundles) {
		t.Fatalf("%d bundles, want %d", len(got.Bundles), len(want.Bundles))
	}
	for i := range want.Bundles {
		g, w := got.Bundles[i], want.Bundles[i]
		image := w.Image
		w.Image = ""
		for j, r := range w.RelatedImages {
			if r.Image == image {
				w.RelatedImages = append(w.RelatedImages[:j:j], w.RelatedImages[j+1:]...)
				break
			}
		}
		// The dependencies of this bundle are in its metadata.
		if w.Name == "silicom-sts-operator.v0.0.1" {
			required := func(p declcfg.Property) bool {
				return p.Type == declcfg.PropertyPackageRequired || p.Type == declcfg.PropertyGVKRequired
			}
			g.Properties, w.Properties = slices.DeleteFunc(slices.Clone(g.Properties),
				required), slices.DeleteFunc(w.Properties, required)
		}
		a, b := declcfg.AppendJSON(nil, &g, true), declcfg.AppendJSON(nil, &w, true)
		if !bytes.Equal(a, b) {
			t.Errorf("bundle %s differs: %s", g.Name, firstDifference(a, b))
		}
	}
	for i, p := range got.Packages {
		if p.Icon == nil || !bytes.Equal(p.Icon.Data, want.Packages[i].Icon.Data) ||
			p.Icon.MediaType != want.Packages[i].Icon.MediaType {
			t.Errorf("package %s has not the icon that it should have", p.Name)
		}
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func firstDifference(a, b []byte) string {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range x {
		if i >= len(y) || !bytes.Equal(x[i], y[i]) {
			other := []byte("nothing")
			if i < len(y) {
				other = y[i]
			}
			return string(x[i][:min(200, len(x[i]))]) + " / " + string(other[:min(200, len(other))])
		}
	}
	return "one is longer"
}

const pkgA = "packageName: a\nchannels:\n- name: stable\n  currentCSV: a.v2\n"

func TestReading(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string // the graph
		warn  string
	}{
		"one directory a version": {files: map[string]string{
			"a/package.yaml": pkgA, "a/1.0.0/a.yaml": csv("a.v1", "1.0.0"),
			"a/2.0.0/a.yaml": csv("a.v2", "2.0.0", "replaces: a.v1"),
		}, want: "a default stable\na/stable a.v1  [] \na/stable a.v2 a.v1 [] \n"},
		"all files in the directory of the package": {files: map[string]string{
			"a/a.package.yaml": pkgA, "a/a.v1.clusterserviceversion.yaml": csv("a.v1", "1.0.0"),
			"a/a.v2.clusterserviceversion.yaml": csv("a.v2", "2.0.0", "replaces: a.v1"),
		}, want: "a default stable\na/stable a.v1  [] \na/stable a.v2 a.v1 [] \n"},
		"the directory of one package": {files: map[string]string{"package.yaml": pkgA,
			"2.0.0/a.yaml": csv("a.v2", "2.0.0")},
			want: "a default stable\na/stable a.v2  [] \n"},
		"everything at the top": {files: map[string]string{"package.yaml": pkgA, "a.yaml": csv("a.v2", "2.0.0")},
			want: "a default stable\na/stable a.v2  [] \n"},
		"bundles deep below, packages elsewhere": {files: map[string]string{
			"packages/any-name.yaml":               pkgA,
			"bundles/x/y/2.0.0/manifests/csv.json": `{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"a.v2"},"spec":{"version":"2.0.0"}}`,
		}, want: "a default stable\na/stable a.v2  [] \n"},
		"what is skipped is in the channel, without edges, if it is there": {files: map[string]string{
			"package.yaml": pkgA, "2/a.yaml": csv("a.v2", "2.0.0", "skips: [a.v1, a.v0, a.v1, '']"),
			"1/a.yaml": csv("a.v1", "1.0.0", "replaces: a.v9"),
		}, want: "a default stable\na/stable a.v1  [] \na/stable a.v2  [a.v1 a.v0] \n"},
		"what is skipped and on the way keeps its edges": {files: map[string]string{
			"package.yaml": pkgA, "2/a.yaml": csv("a.v2", "2.0.0", "replaces: a.v1", "skips: [a.v0]"),
			"1/a.yaml": csv("a.v1", "1.0.0", "replaces: a.v0"), "0/a.yaml": csv("a.v0", "0.1.0"),
		}, want: "a default stable\na/stable a.v0  [] \na/stable a.v1 a.v0 [] \na/stable a.v2 a.v1 [a.v0] \n"},
		"the default channel of several is named": {files: map[string]string{
			"package.yaml": pkgA + "- name: beta\n  currentCSV: a.v1\ndefaultChannel: beta\n",
			"2/a.yaml":     csv("a.v2", "2.0.0", "replaces: a.v1"), "1/a.yaml": csv("a.v1", "1.0.0"),
		}, want: "a default beta\na/beta a.v1  [] \na/stable a.v1  [] \na/stable a.v2 a.v1 [] \n"},
		"a skipRange is that of the bundle": {files: map[string]string{
			"package.yaml": pkgA, "2/a.yaml": strings.Replace(csv("a.v2", "2.0.0"), "metadata:\n",
				"metadata:\n  annotations: {olm.skipRange: '<2.0.0'}\n", 1),
		}, want: "a default stable\na/stable a.v2  [] <2.0.0\n"},
		"a bundle in no channel is left out, and told": {files: map[string]string{
			"package.yaml": pkgA, "2/a.yaml": csv("a.v2", "2.0.0"), "1/a.yaml": csv("a.v1", "1.0.0"),
		}, want: "a default stable\na/stable a.v2  [] \n",
			warn: `1/a.yaml:1: bundle "a.v1" is in no channel of any package`},
		"other files, and what begins with a dot, are passed over": {files: map[string]string{
			"README.md": "# packageName: a ClusterServiceVersion\n\t- x", "package.yaml": pkgA,
			"2/a.yaml": csv("a.v2", "2.0.0"), ".git/package.yaml": pkgA, "2/.a.yaml": csv("a.v2", "2.0.0"),
			"notes.yaml": "kind: Note\npackageName: a\n",
		}, want: "a default stable\na/stable a.v2  [] \n"},
	} {
		t.Run(name, func(t *testing.T) {
			warned := ""
			tr, err := appregistry.Open(t.Context(), tree(test.files),
				appregistry.Options{Warn: func(at declcfg.Position, text string) {
					warned += at.String() + ": " + text + "\n"
				}})
			if err != nil {
				t.Fatal(err)
			}
			if got := entries(tr.Skeleton()); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
			if !strings.Contains(warned, test.warn) || test.warn == "" && warned != "" {
				t.Errorf("warned of %q, want %q", warned, test.warn)
			}
			if err := catalogOf(t, tr).Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBadTreesAreRefusedWithAllProblems(t *testing.T) {
	ok := map[string]string{"2/a.yaml": csv("a.v2", "2.0.0")}
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"nothing there":             {map[string]string{"README": ""}, []string{"no package manifests"}},
		"bundles without a package": {ok, []string{"no package manifests"}},
		"package manifest without a name": {map[string]string{"package.yaml": "channels: []\n",
			"2/a.yaml": ok["2/a.yaml"]}, []string{"package.yaml:1: name of package (packageName) is missing"}},
		"a package's file that is none": {map[string]string{"x/etcd.package.yaml": "- a\n"},
			[]string{"x/etcd.package.yaml:1: should be a package manifest"}},
		"a package's file that is broken": {map[string]string{"package.yaml": "a: b: c\n"},
			[]string{"package.yaml:1: cannot be read as a package manifest: yaml: "}},
		"channels that are none": {map[string]string{"package.yaml": "packageName: a\nchannels: x\n"},
			[]string{"package.yaml:1: no package manifest"}},
		"no channels": {map[string]string{"package.yaml": "packageName: a\n"},
			[]string{`package "a" has no channels`}},
		"bad package data: a channel points to a bundle that is not there": {
			map[string]string{"package.yaml": strings.Replace(pkgA, "a.v2", "imaginary", 1),
				"2/a.yaml": ok["2/a.yaml"]},
			[]string{`package.yaml: channel "stable": its currentCSV "imaginary" is not among the manifests`}},
		"bad bundle data: raw text in place of a bundle": {
			map[string]string{"package.yaml": pkgA, "2/a.clusterserviceversion.yaml": "raw data"},
			[]string{"2/a.clusterserviceversion.yaml:1: should be a ClusterServiceVersion", `currentCSV "a.v2"`}},
		"replaces a bundle that is not there": {
			map[string]string{"package.yaml": pkgA, "2/a.yaml": csv("a.v2", "2.0.0", "replaces: a.v1")},
			[]string{"Invalid bundle a.v2, replaces nonexistent bundle a.v1"}},
		"a cycle": {
			map[string]string{"package.yaml": pkgA, "2/a.yaml": csv("a.v2", "2.0.0", "replaces: a.v1"),
				"1/a.yaml": csv("a.v1", "1.0.0", "replaces: a.v2")},
			[]string{"Cycle detected, a.v1 replaces a.v2"}},
		"no default channel of several": {
			map[string]string{"package.yaml": pkgA + "- name: beta\n  currentCSV: a.v2\n", "2/a.yaml": ok["2/a.yaml"]},
			[]string{"no default channel specified for \"a\""}},
		"a default channel that is none": {
			map[string]string{"package.yaml": pkgA + "defaultChannel: beta\n", "2/a.yaml": ok["2/a.yaml"]},
			[]string{`default channel "beta"`}},
		"a channel twice, one without a name": {
			map[string]string{"package.yaml": pkgA +
				"- name: stable\n  currentCSV: a.v2\n- currentCSV: a.v2\ndefaultChannel: stable",
				"2/a.yaml": ok["2/a.yaml"]},
			[]string{`channel "stable" is there twice`, "a channel has no name"}},
		"a package twice": {map[string]string{"package.yaml": pkgA, "x/package.yaml": pkgA, "2/a.yaml": ok["2/a.yaml"]},
			[]string{"x/package.yaml:1: a second file of package"}},
		"a bundle twice": {map[string]string{"package.yaml": pkgA, "2/a.yaml": ok["2/a.yaml"],
			"2/b.yaml": ok["2/a.yaml"]}, []string{`2/b.yaml:1: a second bundle called "a.v2"`}},
		"a bundle in two packages": {map[string]string{"package.yaml": pkgA,
			"x/package.yaml": strings.Replace(pkgA, "packageName: a", "packageName: b", 1), "2/a.yaml": ok["2/a.yaml"]},
			[]string{"in a channel of package"}},
		"an empty version": {map[string]string{"package.yaml": pkgA, "2/a.yaml": csv("a.v2", "")},
			[]string{"ersion"}},
		"a missing CRD": {map[string]string{"package.yaml": pkgA,
			"2/a.yaml": csv("a.v2", "2.0.0",
				"customresourcedefinitions: {owned: [{name: xs.g, kind: X, version: v1}]}")},
			[]string{"2/a.yaml:7", "couldn't find"}},
		"a package's bad name": {map[string]string{"package.yaml": strings.Replace(pkgA, "packageName: a",
			"packageName: ../a", 1), "2/a.yaml": ok["2/a.yaml"]}, []string{"../a"}},
		"a bundle without name": {map[string]string{"package.yaml": pkgA, "2/a.yaml": csv("''", "1.0.0")},
			[]string{"2/a.yaml:1: the ClusterServiceVersion has no name"}},
		"several problems": {map[string]string{
			"a/package.yaml": pkgA, "b/package.yaml": "packageName: b\nchannels: [{name: x, currentCSV: b.v1}]\n",
			"b/b.yaml":       csv("b.v1", "1.0.0", "replaces: b.v0"),
			"c/package.yaml": "packageName: c\nchannels: [{name: x, currentCSV: c.v1}]\n",
			"c/c.yaml":       csv("c.v1", "one"),
		}, []string{`currentCSV "a.v2"`, "b.v1, replaces nonexistent bundle b.v0", `"one"`}},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := appregistry.Open(t.Context(), tree(test.files), appregistry.Options{})
			if err == nil {
				t.Fatalf("no error, but\n%s", entries(tr.Skeleton()))
			}
			var invalid *declcfg.ValidationError
			if !errors.Is(err, appregistry.ErrInvalid) && !errors.As(err, &invalid) {
				t.Errorf("of no class: %v", err)
			}
			for _, w := range test.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in %q", w, err)
				}
			}
		})
	}
}

func TestKeepGoingLeavesOutBrokenPackages(t *testing.T) {
	files := map[string]string{
		"a/package.yaml": pkgA, "a/2/a.yaml": csv("a.v2", "2.0.0"),
		"b/package.yaml":   "packageName: b\nchannels: [{name: x, currentCSV: b.v1}]\n",
		"b/b.yaml":         csv("b.v1", "1.0.0", "replaces: b.v0"),
		"c/c.package.yaml": "not one\n",
	}
	warned, out := "", ""
	tr, err := appregistry.Open(t.Context(), tree(files), appregistry.Options{KeepGoing: true,
		Warn:        func(at declcfg.Position, text string) { warned += at.String() + ": " + text + "\n" },
		Quarantined: func(pkg string, err error) { out += pkg + ": " + err.Error() + "\n" }})
	if err != nil {
		t.Fatal(err)
	}
	if got := entries(tr.Skeleton()); got != "a default stable\na/stable a.v2  [] \n" {
		t.Errorf("got\n%s", got)
	}
	if !strings.Contains(warned, "c/c.package.yaml:1: should be") {
		t.Errorf("warned of %q", warned)
	}
	if !strings.HasPrefix(out, "b: ") || !strings.Contains(out, "b.v0") {
		t.Errorf("left out %q", out)
	}
	delete(files, "a/package.yaml")
	if _, err := appregistry.Open(t.Context(), tree(files), appregistry.Options{KeepGoing: true}); err == nil ||
		!strings.Contains(err.Error(), "no package is left") {
		t.Errorf("nothing healthy: %v", err)
	}
}

func TestLimits(t *testing.T) {
	files := map[string]string{
		"a/package.yaml": pkgA, "a/1/a.yaml": csv("a.v1", "1.0.0"),
		"a/2/a.yaml":     csv("a.v2", "2.0.0", "replaces: a.v1"),
		"b/package.yaml": strings.Replace(pkgA, "packageName: a", "packageName: b", 1),
	}
	for name, test := range map[string]struct {
		limits appregistry.Limits
		more   map[string]string
		want   string
	}{
		"entries":  {appregistry.Limits{Entries: 3}, nil, "more than 3 files"},
		"bundles":  {appregistry.Limits{Bundles: 1}, nil, "more than 1 bundles"},
		"packages": {appregistry.Limits{Packages: 1}, nil, "more than 1 packages"},
		"depth":    {appregistry.Limits{Depth: 2}, map[string]string{"x/y/z/f": ""}, "x/y/z: more than 2 directories"},
		"total":    {appregistry.Limits{Total: 100}, nil, "more than 100 bytes"},
		"a file": {appregistry.Limits{},
			map[string]string{"c/c.clusterserviceversion.yaml": strings.Repeat("#", 5<<20)},
			"c/c.clusterserviceversion.yaml: more than"},
		"bundles in one directory": {appregistry.Limits{}, func() map[string]string {
			many := map[string]string{}
			for i := range 1001 {
				many[fmt.Sprintf("c/%d.yaml", i)] = csv(fmt.Sprintf("c.v%d", i), "1.0.0")
			}
			return many
		}(), "more than 1000 bundles in one directory"},
		"skips": {appregistry.Limits{},
			map[string]string{"c/c.yaml": csv("c.v1", "1.0.0", "skips: ["+strings.Repeat("a,", 500_001)+"]"),
				"c/d.yaml": csv("c.v2", "1.0.0", "skips: ["+strings.Repeat("a,", 500_001)+"]")},
			"more than 1000000 skips"},
	} {
		t.Run(name, func(t *testing.T) {
			all := tree(files)
			for name, f := range tree(test.more) {
				all[name] = f
			}
			for _, keepGoing := range []bool{false, name != "total"} {
				_, err := appregistry.Open(t.Context(), all,
					appregistry.Options{Limits: test.limits, KeepGoing: keepGoing})
				if !errors.Is(err, appregistry.ErrLimit) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			}
		})
	}
}

// A symbolic link that leads out of the directory is skipped, or makes the bundle invalid that contains it. Its target
// is never read.
func TestLinksDoNotLeaveTheDirectory(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	dir := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(outside, "kind: Secret\nmetadata: {name: s}\n")
	write(filepath.Join(dir, "package.yaml"), pkgA)
	write(filepath.Join(dir, "2/real.yaml"), csv("a.v2", "2.0.0"))
	write(filepath.Join(dir, "other/x.yaml"), "kind: ConfigMap\nmetadata: {name: x}\n")
	if err := os.Symlink("../other/x.yaml", filepath.Join(dir, "2/within.yaml")); err != nil {
		t.Fatal(err)
	}
	tr, err := appregistry.Open(t.Context(), dirFS(t, dir), appregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := catalogOf(t, tr); len(c.Bundles) != 1 || len(c.Bundles[0].Properties) != 3 {
		t.Errorf("the linked manifest is not in the bundle: %+v", c.Bundles)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "2/out.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := appregistry.Open(t.Context(), dirFS(t, dir), appregistry.Options{}); !errors.Is(err,
		appregistry.ErrInvalid) || !strings.Contains(err.Error(), "2/out.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := appregistry.Open(ctx, tree(map[string]string{"package.yaml": pkgA, "a.yaml": csv("a.v2", "1.0.0")}),
		appregistry.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestBundlesNameTheirChannels(t *testing.T) {
	tr, err := appregistry.Open(t.Context(), dirFS(t, recorded.Export(t)), appregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for b, err := range tr.Bundles(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Package == "etcd" {
			got += b.CSV.Name + " " + strings.Join(b.Channels, ",") + " " + b.DefaultChannel + "\n"
		}
	}
	want := "etcdoperator.v0.6.1 alpha singlenamespace-alpha\netcdoperator.v0.9.0 " +
		"clusterwide-alpha,singlenamespace-alpha singlenamespace-alpha\n"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s", got)
	}
}

func TestIs(t *testing.T) {
	fbc := "schema: olm.package\nname: a\npackageName: a\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"packages below": {map[string]string{"a/package.yaml": pkgA,
			"a/2/a.yaml": csv("a.v2", "2.0.0")}, true},
		"a package at the top": {map[string]string{"a.package.yaml": pkgA,
			"2/a.yaml": csv("a.v2", "2.0.0")}, true},
		"JSON":                                   {map[string]string{"a/package.json": `{"packageName":"a"}`}, true},
		"a catalog":                              {map[string]string{"a/catalog.yaml": fbc}, false},
		"a catalog in files called package.yaml": {map[string]string{"a/package.yaml": fbc}, false},
		"a catalog with a stray package manifest": {map[string]string{"a/package.yaml": pkgA,
			"b/catalog.json": `{"schema":"olm.package","name":"b"}`}, false},
		"a catalog beside the package's file": {map[string]string{"a/package.yaml": pkgA, "a/catalog.yaml": fbc},
			false},
		"ignore files are for catalogs": {map[string]string{"a/package.yaml": pkgA,
			".indexignore": "package.yaml"}, false},
		"nothing":                     {map[string]string{}, false},
		"a package manifest too deep": {map[string]string{"x/a/package.yaml": pkgA}, false},
		"a file of that name without packageName": {map[string]string{"package.yaml": "name: a\n"}, false},
		"a Kubernetes object": {map[string]string{"package.yaml": "kind: X\npackageName: a\n"},
			false},
		"a name that is no text": {map[string]string{"package.yaml": "packageName: [a]\n"}, false},
		"not YAML":               {map[string]string{"package.yaml": "a: b: packageName\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := appregistry.Is(tree(test.files)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
