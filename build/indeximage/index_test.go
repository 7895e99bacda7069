package indeximage_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/edit/edittest"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// table has the transports of the tests: those without the containers library.
var table = images.BuiltIn()

// catalogDir writes a catalog with the packages foo and bar.
func catalogDir(t *testing.T) string {
	t.Helper()
	c := edittest.Catalog(t, "foo = stable", "foo/stable: 1.0.0, 1.1.0 >1.0.0", "bar = beta", "bar/beta: 0.1.0")
	dir := filepath.Join(t.TempDir(), "catalog")
	if err := declcfg.WriteFS(t.Context(), dir, declcfg.FormatJSON, c.Blobs()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// keep keeps some packages.
func keep(packages ...string) change.Edit {
	return change.Edit{Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
		return edit.Prune(s.Catalog, packages)
	}}
}

// open opens an index, which the test closes.
func open(t *testing.T, from string, client *images.Client) *indeximage.Index {
	t.Helper()
	x, err := indeximage.Open(t.Context(), from, indeximage.Options{Render: render.Options{Images: client}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// names returns the names of the packages of a stream.
func names(t *testing.T, blobs iter.Seq2[declcfg.Blob, error]) (out []string) {
	t.Helper()
	for b, err := range blobs {
		if err != nil {
			t.Fatal(err)
		}
		if b.BlobSchema() == declcfg.SchemaPackage {
			out = append(out, b.BlobName())
		}
	}
	return out
}

// push builds the image of an edited index at a layout, and returns its name.
func push(t *testing.T, x *indeximage.Index, o build.Options, tag string) string {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	image, err := x.Build(t.Context(), o, sqlite.WriteOptions{AnyImages: true})
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	name := "oci:" + filepath.Join(t.TempDir(), "layout") + ":" + tag
	copyTo(t, image, name)
	return name
}

func copyTo(t *testing.T, image *build.Image, name string) {
	t.Helper()
	to, err := table.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Copy(t.Context(), image.Store(), image.Top(), []transport.Destination{to},
		images.CopyOptions{Options: registries.Options{Temp: t.TempDir()}}); err != nil {
		t.Fatal(err)
	}
}

// spec makes images without a server.
func spec(client *images.Client, log *slog.Logger) *indeximage.Spec {
	return &indeximage.Spec{Images: client, Server: build.ServerNone, Embedded: &build.Embedded{}, Log: log,
		Build: build.Options{Compression: layers.Gzip}}
}

// A catalog directory, its image, and the database made of that are edited to the same packages, and the image of each
// has them alone.
func TestEditedImages(t *testing.T) {
	client := imagetest.Client(t)
	dir := catalogDir(t)
	x := open(t, dir, client)
	if err := x.Apply(t.Context(), keep("foo", "bar"), ""); err != nil {
		t.Fatal(err)
	}
	whole := push(t, x, build.Options{}, "v1")

	x = open(t, whole, client)
	if x.Image == nil || x.Source.Kind() != change.Directory {
		t.Fatalf("opened %+v", x)
	}
	if err := x.Apply(t.Context(), keep("foo"), change.Database); err != nil {
		t.Fatal(err)
	}
	if got := x.Result.Changed; !slices.Equal(got, []string{"bar"}) {
		t.Errorf("changed %q", got)
	}
	database := filepath.Join(t.TempDir(), "index.db")
	written, err := x.WriteDatabase(t.Context(), database, sqlite.WriteOptions{AnyImages: true})
	if err != nil || !slices.Equal(written, []string{"foo"}) || x.Result.Written == nil {
		t.Fatalf("wrote %q, %v, %v", written, x.Result.Written, err)
	}
	databaseImage := push(t, x, build.Options{}, "db")

	for _, from := range []string{database, databaseImage} {
		x = open(t, from, client)
		if x.Source.Kind() != change.Database {
			t.Errorf("%s is a %s", from, x.Source.Kind())
		}
		if err := x.Apply(t.Context(), keep("foo"), change.Directory); err != nil {
			t.Fatal(err)
		}
		if got := names(t, x.Blobs); !slices.Equal(got, []string{"foo"}) {
			t.Errorf("%s has %q", from, got)
		}
		again := open(t, push(t, x, build.Options{}, "v2"), client)
		if entries, err := fs.ReadDir(again.Image.Configs, "."); err != nil || len(entries) != 1 || entries[0].Name() != "foo" {
			t.Errorf("the image made of %s has %v, %v", from, entries, err)
		}
	}
}

// A catalog that an edit leaves as it is goes into the image with the bytes of its files.
func TestUnchangedFilesStay(t *testing.T) {
	x := open(t, catalogDir(t), imagetest.Client(t))
	if err := x.Apply(t.Context(), keep("foo", "bar"), ""); err != nil {
		t.Fatal(err)
	}
	if in := x.Catalog(); in.FS == nil || in.Blobs != nil || len(in.Files) == 0 {
		t.Errorf("unchanged: %+v", in)
	}
	if err := x.Apply(t.Context(), keep("foo"), ""); err != nil {
		t.Fatal(err)
	}
	if in := x.Catalog(); in.FS == nil || in.Blobs == nil || !slices.Equal(in.Changed, []string{"bar"}) {
		t.Errorf("without bar: %+v", in)
	}
}

// What is no catalog is refused, and nothing stays open.
func TestOpenRefuses(t *testing.T) {
	client := imagetest.Client(t)
	for from, want := range map[string]string{
		"../../testdata/bundles/etcd/0.9.4":                      "is a bundle directory, not a catalog",
		filepath.Join(t.TempDir(), "no", "such"):                 "no such file",
		"oci:" + filepath.Join(t.TempDir(), "no-layout") + ":v1": "no such file",
	} {
		x, err := indeximage.Open(t.Context(), from, indeximage.Options{Render: render.Options{Images: client}})
		if err == nil || x != nil && x.Source != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", from, err)
		}
	}
	x := indeximage.Empty(change.Database)
	if x.Source.Kind() != change.Database || x.Close() != nil {
		t.Errorf("a new index is %+v", x)
	}
}

// The image of an edit has the platforms and labels of its source, unless others are asked for.
func TestEditedOptions(t *testing.T) {
	client := imagetest.Client(t)
	x := open(t, catalogDir(t), client)
	if err := x.Apply(t.Context(), keep("foo", "bar"), ""); err != nil {
		t.Fatal(err)
	}
	both := []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "s390x"}}
	o := build.Options{Labels: map[string]string{"owner": "acme"}}
	if err := o.SetServer(build.ServerNone, both, &build.Embedded{}); err != nil {
		t.Fatal(err)
	}
	from := push(t, x, o, "v1")
	x = open(t, from, client)
	if err := x.Apply(t.Context(), keep("foo"), ""); err != nil {
		t.Fatal(err)
	}
	s := spec(client, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		name     string
		asked    []v1.Platform
		inherit  bool
		platform []string
	}{
		{"as the source", nil, true, []string{"amd64", "s390x"}},
		{"as asked", both[1:], true, []string{"s390x"}},
		{"without the labels", nil, false, []string{"amd64", "s390x"}},
	} {
		s.Platforms = c.asked
		got, err := s.Edited(t.Context(), x, from, c.inherit, t.TempDir(), render.Options{Images: client})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		d, err := client.Describe(t.Context(), push(t, x, got, "v2"))
		if err != nil {
			t.Fatal(err)
		}
		var of []string
		for _, v := range d.Variants {
			of = append(of, v.Platform.Architecture)
			if got := v.Config.Config.Labels["owner"]; (got == "acme") != c.inherit {
				t.Errorf("%s: the label is %q", c.name, got)
			}
		}
		if !slices.Equal(of, c.platform) {
			t.Errorf("%s: %q", c.name, of)
		}
	}
}

// A previous image that does not exist is said to be ignored; a source lends its layers, and not its groups.
func TestPrevious(t *testing.T) {
	client := imagetest.Client(t)
	x := open(t, catalogDir(t), client)
	if err := x.Apply(t.Context(), keep("foo", "bar"), ""); err != nil {
		t.Fatal(err)
	}
	there := push(t, x, build.Options{}, "v1")
	missing := strings.TrimSuffix(there, ":v1") + ":v2"
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if got, err := (indeximage.Previous{Name: missing}).Read(t.Context(), client, logger); got != nil || err != nil ||
		!strings.Contains(log.String(), "does not exist and is ignored") {
		t.Errorf("missing: %v, %v, log %s", got, err, &log)
	}
	got, err := indeximage.Previous{Name: there, Trusted: true}.Read(t.Context(), client, logger)
	if err != nil || !got.Trusted || len(got.Groups) == 0 {
		t.Fatalf("previous: %+v, %v", got, err)
	}
	lent, err := indeximage.Previous{FromSource: true}.ReadOr(t.Context(), there, client, logger)
	if err != nil || lent == nil || lent.Groups != nil {
		t.Errorf("source: %+v, %v", lent, err)
	}
	if none, err := (indeximage.Previous{}).ReadOr(t.Context(), there, client, logger); none != nil || err != nil {
		t.Errorf("none: %v, %v", none, err)
	}
}

// A migrated image has the catalog that was prepared, and a source whose tag moves is noticed.
func TestMigrated(t *testing.T) {
	client := imagetest.Client(t)
	x := open(t, catalogDir(t), client)
	if err := x.Apply(t.Context(), keep("foo"), change.Database); err != nil {
		t.Fatal(err)
	}
	from := push(t, x, build.Options{}, "db")
	o := migrate.Options{Verify: true, Render: render.Options{Images: client}}
	prepared, err := o.Prepare(t.Context(), from, filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = prepared.Discard() }()
	description, err := client.Describe(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	s := spec(client, slog.New(slog.DiscardHandler))
	if err := errors.Join(s.CheckPlatforms(t.Context(), description, o),
		indeximage.CheckUnmoved(description, prepared.Report), indeximage.CheckUnmoved(nil, prepared.Report)); err != nil {
		t.Error(err)
	}
	image, err := s.Migrated(t.Context(), prepared, indeximage.Migrated{From: description, Work: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	name := "oci:" + filepath.Join(t.TempDir(), "layout") + ":v1"
	copyTo(t, image, name)
	again := open(t, name, client)
	if again.Source.Kind() != change.Directory {
		t.Errorf("the migrated image is a %s", again.Source.Kind())
	}
	now := &migrate.Report{Image: "registry.example.com/acme/index@" + again.Image.Digest.String()}
	if err := indeximage.CheckUnmoved(description, now); err == nil ||
		!strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("moved: %v", err)
	}
}
