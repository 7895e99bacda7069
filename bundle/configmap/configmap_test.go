package configmap_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/bundle/configmap"
	"github.com/operator-bindery/bindery/internal/testing/testbundles"
)

func files(content map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{"manifests": {Mode: fs.ModeDir | 0o755}, "metadata": {Mode: fs.ModeDir | 0o755}}
	for name, text := range content {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func write(t *testing.T, fsys fs.FS, o configmap.Options) *configmap.ConfigMap {
	t.Helper()
	cm, err := configmap.Write(context.Background(), fsys, o)
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

const (
	role        = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: r\n"
	csv         = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: NAME\n"
	annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: " +
		"p\n  operators.operatorframework.io.bundle.channels.v1: a, b\n  more: x\n"
)

func TestPlainText(t *testing.T) {
	cm := write(t, files(map[string]string{
		"manifests/a b+c.yaml": role, "manifests/Äx_.y-": "no object",
		"metadata/dependencies.yaml": "dependencies: []\n", "metadata/annotations.yaml": annotations,
	}), configmap.Options{})
	want := map[string]string{"a-b-c.yaml": role, "-x_.y-": "no object", "dependencies.yaml": "dependencies: []\n"}
	if !maps.Equal(cm.Data, want) || len(cm.BinaryData) != 0 {
		t.Errorf("got %q and %q", cm.Data, cm.BinaryData)
	}
	six := map[string]string{
		bundle.AnnotationMediaType: "", bundle.AnnotationManifests: "", bundle.AnnotationMetadata: "",
		bundle.AnnotationPackage:  "p",
		bundle.AnnotationChannels: "a, b", bundle.AnnotationDefaultChannel: "",
	}
	if !maps.Equal(cm.Annotations, six) || !cm.Reset {
		t.Errorf("got %q, %v", cm.Annotations, cm.Reset)
	}
	if got := cm.Over(map[string]string{"kept": "no"}); !maps.Equal(got, six) {
		t.Errorf("over others: %q", got)
	}
}

// With gzip the bytes are those of the standard library at its default level, with an empty header, in base64.
func TestGzip(t *testing.T) {
	for _, text := range []string{"", role, strings.Repeat(role, 5000)} {
		cm := write(t, files(map[string]string{"manifests/r.yaml": text}),
			configmap.Options{Gzip: true, SourceImage: "example.com/b@sha256:x"})
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := string(cm.BinaryData["r.yaml"]); got != base64.StdEncoding.EncodeToString(z.Bytes()) {
			t.Errorf("got %.100q", got)
		}
		raw, err := base64.StdEncoding.DecodeString(string(cm.BinaryData["r.yaml"]))
		if err != nil || !bytes.HasPrefix(raw, []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")) {
			t.Errorf("header % x, %v", raw[:10], err)
		}
		want := map[string]string{"olm.contentEncoding": "gzip+base64", "olm.sourceImage": "example.com/b@sha256:x"}
		if len(cm.Data) != 0 || !maps.Equal(cm.Annotations, want) {
			t.Errorf("got %q, %q", cm.Data, cm.Annotations)
		}
		// Without annotations.yaml the ConfigMap keeps its annotations.
		want["kept"] = "yes"
		if got := cm.Over(map[string]string{"kept": "yes", "olm.sourceImage": "old"}); cm.Reset || !maps.Equal(got,
			want) {
			t.Errorf("over others: %q", got)
		}
	}
}

func TestLimit(t *testing.T) {
	fsys := files(map[string]string{"manifests/a": "12345", "metadata/b": "67890",
		"metadata/annotations.yaml": "annotations: {}"})
	for limit, fits := range map[int64]bool{10: true, 9: false, -1: true, 0: true} {
		_, err := configmap.Write(context.Background(), fsys, configmap.Options{Limit: limit})
		if fits && err != nil || !fits && (!errors.Is(err, configmap.ErrLimit) || !strings.HasSuffix(err.Error(),
			"bundle files exceeded 9 bytes limit")) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	big := files(map[string]string{"manifests/a": strings.Repeat("x", 1<<20+1)})
	if _, err := configmap.Write(context.Background(), big, configmap.Options{}); !errors.Is(err, configmap.ErrLimit) {
		t.Errorf("got %v", err)
	}
	if _, err := configmap.Write(context.Background(), big, configmap.Options{Gzip: true}); err != nil {
		t.Errorf("compressed: %v", err)
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		fsys fs.FS
		want string
	}{
		"a directory in manifests": {files(map[string]string{"manifests/sub/a": "x"}), "is a directory"},
		"a directory in metadata":  {files(map[string]string{"metadata/sub/a": "x"}), "is a directory"},
		"no manifests":             {fstest.MapFS{"metadata/x": {}}, "manifests"},
		"no metadata":              {fstest.MapFS{"manifests/x": {}}, "metadata"},
		"two files with one key": {files(map[string]string{"manifests/a b": "x", "manifests/a+b": "y"}),
			"one of them would be lost"},
		"one name in both": {files(map[string]string{"manifests/a": "x", "metadata/a": "y"}),
			"one of them would be lost"},
		"binary": {files(map[string]string{"manifests/a": "\xff"}), "is not UTF-8"},
		"no key": {files(map[string]string{"manifests/" + strings.Repeat("k", 254): "x"}),
			"longer than 253"},
		"broken annotations": {files(map[string]string{"metadata/annotations.yaml": "annotations: [x]"}),
			"metadata/annotations.yaml: "},
		"large annotations": {files(
			map[string]string{"metadata/annotations.yaml": "annotations:\n  " + bundle.AnnotationPackage + ": " +
				strings.Repeat("x", 262144)}),
			"limit exceeded"},
		"large file": {files(map[string]string{"manifests/a": strings.Repeat("x", 5<<20)}), "limit exceeded"},
		"a device":   {fstest.MapFS{"manifests/x": {Mode: fs.ModeDevice}, "metadata/y": {}}, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := configmap.Write(context.Background(), c.fsys, configmap.Options{}); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnnotationValuesThatAreNoStrings(t *testing.T) {
	cm := write(t,
		files(
			map[string]string{"metadata/annotations.yaml": "annotations:\n  " + bundle.AnnotationChannels +
				": 4.10\n  " + bundle.AnnotationPackage + ": null\n"}), configmap.Options{})
	if got := cm.Annotations[bundle.AnnotationChannels]; got != "4.10" {
		t.Errorf("got %q", got)
	}
}

func TestRead(t *testing.T) {
	data := map[string]string{
		"manifests/1.yaml": strings.ReplaceAll(csv, "NAME", "one"),
		"manifests/2.yaml": strings.ReplaceAll(csv, "NAME", "two"),
		"manifests/3.txt":  "{", "manifests/4.yaml": "a: 1",
		"manifests/5.json":          `{"kind":"Role","apiVersion":"v1","metadata":{"namespace":"n","name":"x"}}`,
		"metadata/annotations.yaml": annotations,
	}
	for _, z := range []bool{false, true} {
		got, err := configmap.Read(write(t, files(data), configmap.Options{Gzip: z, SourceImage: "img"}))
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, o := range got.Objects {
			keys = append(keys, o.File+"="+o.Kind)
		}
		if !slices.Equal(keys,
			[]string{"1.yaml=ClusterServiceVersion", "2.yaml=ClusterServiceVersion", "5.json=Role"}) {
			t.Errorf("got %q", keys)
		}
		if got.CSV == nil || got.CSV.Name != "two" || got.Objects[2].Namespace != "n" {
			t.Errorf("CSV %+v", got.CSV)
		}
		if got.Package != "p" || !slices.Equal(got.Channels, []string{"a", " b"}) || got.DefaultChannel != "" ||
			got.SourceImage != "img" {
			t.Errorf("got %+v", got)
		}
		if want := map[string]string{"3.txt": "{", "4.yaml": "a: 1"}; !maps.Equal(got.Skipped, want) {
			t.Errorf("skipped %q", got.Skipped)
		}
	}
}

// Written real bundles are read back with every object of the directory and no others.
func TestRecordedBundles(t *testing.T) {
	checked := 0
	for _, name := range testbundles.Names(t) {
		dir := testbundles.Write(t, t.TempDir(), name)
		if _, err := os.Stat(filepath.Join(dir, "manifests")); err != nil {
			continue
		}
		checked++
		plain := write(t, os.DirFS(dir), configmap.Options{Limit: -1})
		packed := write(t, os.DirFS(dir), configmap.Options{Gzip: true})
		a, err := configmap.Read(plain)
		if err != nil {
			t.Fatal(err)
		}
		b, err := configmap.Read(packed)
		if err != nil {
			t.Fatal(err)
		}
		if a.CSV == nil || len(a.Objects) != len(b.Objects) || a.Package != b.Package || a.Package == "" {
			t.Errorf("%s: %d and %d objects of %q and %q", name, len(a.Objects), len(b.Objects), a.Package, b.Package)
		}
		entries, err := os.ReadDir(filepath.Join(dir, "manifests"))
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range entries {
			text, err := os.ReadFile(filepath.Join(dir, "manifests", e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if plain.Data[e.Name()] != string(text) || !bytes.Equal(a.Objects[i].JSON, b.Objects[i].JSON) {
				t.Errorf("%s: %s is another", name, e.Name())
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d bundles", checked)
	}
}
