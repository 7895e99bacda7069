package appregistry_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/render/internal/appregistry"
)

// A written package manifest has the same bytes as opm's.
func TestPackageFilesAreThoseOfOpm(t *testing.T) {
	from := listing(t, recorded.Export(t))
	for pkg, m := range map[string]appregistry.Manifest{
		"etcd": {Package: "etcd", DefaultChannel: "singlenamespace-alpha", Channels: []appregistry.ManifestChannel{
			{Name: "alpha", CurrentCSV: "etcdoperator.v0.6.1"},
			{Name: "clusterwide-alpha", CurrentCSV: "etcdoperator.v0.9.4-clusterwide"},
			{Name: "singlenamespace-alpha", CurrentCSV: "etcdoperator.v0.9.4"}}},
		"silicom-sts-operator": {Package: "silicom-sts-operator", DefaultChannel: "alpha",
			Channels: []appregistry.ManifestChannel{
				{Name: "alpha", CurrentCSV: "silicom-sts-operator.v0.0.6"},
				{Name: "beta", CurrentCSV: "silicom-sts-operator.v0.0.2"}}},
	} {
		text, err := m.Text()
		if want := from[pkg+"/package.yaml"]; err != nil || string(text) != want {
			t.Errorf("got %q, %v, want %q", text, err, want)
		}
	}
}

// export writes a package with its bundles.
func export(t *testing.T, folder string, m appregistry.Manifest,
	versions map[string]fs.FS) (appregistry.Written, error) {
	t.Helper()
	w, err := appregistry.NewWriter(folder)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := w.Abort(); err != nil {
			t.Error(err)
		}
	}()
	for version, files := range versions {
		if err := w.Bundle(t.Context(), m.Package, version, files); err != nil {
			return nil, err
		}
	}
	if err := w.Package(m); err != nil {
		return nil, err
	}
	return w.Commit(t.Context())
}

func files(pairs ...string) fs.FS {
	out := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return out
}

func TestWriting(t *testing.T) {
	m := func(head string) appregistry.Manifest {
		return appregistry.Manifest{Package: "a", DefaultChannel: "stable",
			Channels: []appregistry.ManifestChannel{{Name: "stable", CurrentCSV: head}}}
	}
	text := func(head string) string {
		b, err := m(head).Text()
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const d = "a directory"
	one := map[string]string{".": d, "a": d, "a/1.0.0": d, "a/1.0.0/x.yaml": "x", "a/package.yaml": text("a.v1")}
	with := func(more map[string]string) map[string]string {
		all := maps.Clone(one)
		maps.Copy(all, more)
		return all
	}
	two := with(map[string]string{"a/2.0.0": d, "a/2.0.0/y.yaml": "y", "a/2.0.0/sub": d, "a/2.0.0/sub/z": "z",
		"a/package.yaml": text("a.v2")})
	v1, v2 := files("x.yaml", "x"), files("y.yaml", "y", "sub/z", "z")
	for name, test := range map[string]struct {
		before   map[string]string // nil: the folder does not exist
		versions map[string]fs.FS
		want     map[string]string
		written  string
		err      string
	}{
		"a folder that is not there": {nil, map[string]fs.FS{"1.0.0": v1, "2.0.0": v2}, two, "a", ""},
		"an empty folder": {map[string]string{".": d}, map[string]fs.FS{"1.0.0": v1, "2.0.0": v2},
			two, "a", ""},
		"other things in the folder stay": {map[string]string{".": d, "b": d, "b/c": "c"},
			map[string]fs.FS{"1.0.0": v1, "2.0.0": v2},
			func() map[string]string { w := maps.Clone(two); w["b"], w["b/c"] = d, "c"; return w }(), "a", ""},
		"a version more": {one, map[string]fs.FS{"1.0.0": v1, "2.0.0": v2}, two,
			"a/2.0.0 a/package.yaml", ""},
		"versions that are there stay": {one, map[string]fs.FS{"2.0.0": v2}, two, "a/2.0.0 a/package.yaml", ""},
		"again":                        {two, map[string]fs.FS{"1.0.0": v1, "2.0.0": v2}, two, "", ""},
		"a version with other bytes": {with(map[string]string{"a/1.0.0/x.yaml": "?"}),
			map[string]fs.FS{"1.0.0": v1, "2.0.0": v2}, nil, "", "other files than the bundle's"},
		"a version with more files": {with(map[string]string{"a/1.0.0/more.yaml": "?"}),
			map[string]fs.FS{"1.0.0": v1, "2.0.0": v2}, nil, "", "other files than the bundle's"},
		"a file in place of a version": {map[string]string{".": d, "a": d, "a/1.0.0": "file"},
			map[string]fs.FS{"1.0.0": v1}, nil, "", "is not a directory"},
		"a file in place of the package": {map[string]string{".": d, "a": "file"}, map[string]fs.FS{"1.0.0": v1},
			nil, "", "is not a directory"},
		"a directory in place of its file": {map[string]string{".": d, "a": d, "a/package.yaml": d},
			map[string]fs.FS{"1.0.0": v1}, nil, "", "directory"},
		"a version that leaves the directory": {one, map[string]fs.FS{"../x": v1}, nil, "",
			"not the name of a directory"},
		"a version that is hidden": {one, map[string]fs.FS{".x": v1}, nil, "",
			"not the name of a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "out")
			for path, content := range test.before {
				at := filepath.Join(folder, filepath.FromSlash(path))
				if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
					t.Fatal(err)
				}
				var err error
				if content == d {
					err = os.MkdirAll(at, 0o777)
				} else {
					err = os.WriteFile(at, []byte(content), 0o666)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			written, err := export(t, folder, m("a.v2"), test.versions)
			want := test.want
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want %q", err, test.err)
				}
				want = test.before
			} else if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(written, " "); got != test.written {
				t.Errorf("written %q, want %q", got, test.written)
			}
			if got := listing(t, folder); !maps.Equal(got, want) {
				t.Errorf("got %q\nwant %q", got, want)
			}
			left, err := os.ReadDir(filepath.Dir(folder))
			if err != nil || len(left) != 1 {
				t.Errorf("left beside it: %v, %v", left, err)
			}
		})
	}
}

// If the second of two packages cannot be written, nothing of the first remains.
func TestNothingIsWrittenHalf(t *testing.T) {
	for name, before := range map[string]bool{"new folder": false, "folder that is there": true} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "x", "out")
			if before {
				if err := os.MkdirAll(filepath.Join(folder, "b", "1.0.0"), 0o777); err != nil {
					t.Fatal(err)
				}
			}
			w, err := appregistry.NewWriter(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, pkg := range []string{"a", "b"} {
				if err := w.Bundle(t.Context(), pkg, "1.0.0", files("x", pkg)); err != nil {
					t.Fatal(err)
				}
				if err := w.Package(appregistry.Manifest{Package: pkg}); err != nil {
					t.Fatal(err)
				}
			}
			if before {
				if _, err := w.Commit(t.Context()); !errors.Is(err, fs.ErrExist) {
					t.Errorf("got %v", err)
				}
			}
			if err := w.Abort(); err != nil {
				t.Error(err)
			}
			got, err := os.ReadDir(folder)
			if before && (err != nil || len(got) != 1) || !before && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("left %v, %v", got, err)
			}
		})
	}
}

func TestCancelledCommitWritesNothing(t *testing.T) {
	folder := t.TempDir()
	w, err := appregistry.NewWriter(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Package(appregistry.Manifest{Package: "a"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Commit(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	if got := listing(t, folder); len(got) != 1 {
		t.Errorf("left %v", got)
	}
}

// Objects from a catalog are written to files without changing their content.
func TestObjectsKeepTheirContent(t *testing.T) {
	tr, err := appregistry.Open(t.Context(), dirFS(t, recorded.Export(t)), appregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := catalogOf(t, tr)
	folder := filepath.Join(t.TempDir(), "out")
	w, err := appregistry.NewWriter(folder)
	if err != nil {
		t.Fatal(err)
	}
	for i := range before.Bundles {
		b := &before.Bundles[i]
		objects, err := b.Objects()
		if err != nil {
			t.Fatal(err)
		}
		files, err := appregistry.Objects(objects)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Bundle(t.Context(), b.Package, b.Name, files); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range before.Packages {
		m := appregistry.Manifest{Package: p.Name, DefaultChannel: p.DefaultChannel}
		for _, c := range before.Channels {
			if c.Package == p.Name {
				m.Channels = append(m.Channels,
					appregistry.ManifestChannel{Name: c.Name, CurrentCSV: c.Entries[len(c.Entries)-1].Name})
			}
		}
		if err := w.Package(m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder,
		"etcd/etcdoperator.v0.9.4/etcdoperator.v0.9.4.clusterserviceversion.yaml")); err != nil {
		t.Error(err)
	}
	if tr, err = appregistry.Open(t.Context(), dirFS(t, folder), appregistry.Options{}); err != nil {
		t.Fatal(err)
	}
	after := catalogOf(t, tr)
	for i := range before.Bundles {
		a, b := declcfg.AppendJSON(nil, &after.Bundles[i], true), declcfg.AppendJSON(nil, &before.Bundles[i], true)
		if string(a) != string(b) {
			t.Errorf("%s: %s", before.Bundles[i].Name, firstDifference(a, b))
		}
	}
}

func TestNamesOfObjects(t *testing.T) {
	fsys, err := appregistry.Objects([][]byte{
		[]byte(`{"kind":"ClusterServiceVersion","metadata":{"name":"a.v1"}}`),
		[]byte(`{"kind":"CustomResourceDefinition","metadata":{"name":"xs.g"}}`),
		[]byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"}}`),
		[]byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"../../../etc/passwd"}}`),
		[]byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"}}`),
		[]byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"other"}}`),
		[]byte(`[]`),
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := "a.v1.clusterserviceversion.yaml etc-passwd_v1_service.yaml object.yaml " +
		"r_rbac.authorization.k8s.io_v1_clusterrole.yaml s_v1_service-2.yaml s_v1_service.yaml xs.g.crd.yaml"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q", got)
	}
}
