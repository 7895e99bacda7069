package render_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/render"
)

func text(t *testing.T, f declcfg.Format, o render.Options, refs ...string) (string, error) {
	t.Helper()
	blobs, err := o.RenderAll(context.Background(), refs)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := f.Write(&out, blobs); err != nil {
		return "", err
	}
	return out.String(), nil
}

// untar unpacks a recorded directory.
func untar(t *testing.T, archive []byte) string {
	t.Helper()
	dir := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A directory that opm migrated from a database renders to the same blobs as the database.
func TestDirectory(t *testing.T) {
	part := recorded.Part(t)
	dir := untar(t, part.File(t, "golden/small/migrate.json.d.tar"))
	for _, c := range []struct {
		name, golden string
		format       declcfg.Format
		level        edit.Level
	}{
		{"json", "golden/small/render.json", declcfg.FormatJSON, edit.LevelNone},
		{"yaml", "golden/small/render.yaml", declcfg.FormatYAML, ""},
		{"metadata", "golden/small/render-csvmeta.json", declcfg.FormatJSON, edit.LevelCSVMetadata},
	} {
		for _, ref := range []string{dir, part.Database(t, "small")} {
			got, err := text(t, c.format, render.Options{Level: c.level}, ref)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(part.File(t, c.golden)) {
				t.Errorf("%s of %s differs from the recorded answer", c.name, filepath.Base(ref))
			}
		}
	}
}

func TestSeveralReferencesAreOneSortedStream(t *testing.T) {
	part := recorded.Part(t)
	small, subs := part.Database(t, "small"), part.Database(t, "subs")
	got, err := text(t, declcfg.FormatJSON, render.Options{}, subs, small)
	if err != nil {
		t.Fatal(err)
	}
	// The packages of the two sources, etcd, silicom-sts-operator and synth-subs, are already in order.
	want := string(part.File(t, "golden/small/render.json")) + string(part.File(t, "golden/subs/render.json"))
	if got != want {
		t.Error("two references do not come out sorted by package")
	}
	twice, err := text(t, declcfg.FormatJSON, render.Options{}, subs, subs)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(part.File(t, "golden/subs/render.json")), "\n")[:4] {
		if n, once := strings.Count(twice, line), strings.Count(got, line); n < 2*min(once, 1) {
			t.Errorf("%q stands %d times in what was rendered twice", line, n)
		}
	}
}

func TestClassify(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"bundle/manifests", "bundle/metadata", "half/manifests"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string]string{"db": "SQLite format 3\x00", "text": "hello", "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		ref  string
		want render.Kind
		err  string
	}{
		{ref: "bundle", want: render.BundleDirectory},
		{ref: "half", want: render.CatalogDirectory},
		{ref: "db", want: render.Database},
		{ref: "absent", want: render.Image},
		{ref: "text", err: "has unsupported file type"},
		{ref: "empty", err: "has unsupported file type"},
	} {
		got, err := render.Classify(filepath.Join(dir, c.ref))
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %v", c.ref, got, err)
		}
	}
	if got, err := render.Classify("oci:" + dir); got != render.Image || err != nil {
		t.Errorf("a transport does not make an image: %q, %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"manifests", "metadata"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, ref, want string
		options         render.Options
	}{
		{name: "level", ref: dir, want: `unknown migration level "nosuch"`, options: render.Options{Level: "nosuch"}},
	} {
		_, err := c.options.Render(context.Background(), c.ref)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "render reference") {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
