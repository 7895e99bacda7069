package medium_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/mirror/medium"
)

var bothForms = []medium.Form{medium.OCI, medium.OCMirror}

// sample is what the tests write: two repositories with shared layers, an index, a signature, referrers of both kinds
// of names.
type sample struct {
	app, multi, bundle, signature, referrer, second image
}

func newSample(t testing.TB) *sample {
	s := &sample{app: simple(t, "app", 1, 1_200_000, 512, 0), bundle: simple(t, "bundle", 1, 1_200_000, 1000)}
	s.multi = indexOf(t, simple(t, "amd64", 10, 2000), simple(t, "arm64", 20, 1_100_000))
	s.signature = simple(t, "signature", 30, 300)
	s.referrer = imageOf(t, &s.app.manifest.Descriptor, simple(t, "bill", 40, 100).blobs...)
	s.second = imageOf(t, &s.referrer.manifest.Descriptor, simple(t, "signature of it", 50, 100).blobs...)
	return s
}

func hexTag(i image) string { return "sha256-" + i.manifest.Digest.Encoded() }

func (s *sample) write(t testing.TB, w *medium.Writer) {
	t.Helper()
	if err := s.tryWrite(w); err != nil {
		t.Fatal(err)
	}
}

func (s *sample) tryWrite(w *medium.Writer) error {
	for _, one := range []struct {
		path, tag string
		image     image
	}{{"acme/app", hexTag(s.app), s.app}, {"acme/app", hexTag(s.app) + ".sig", s.signature},
		{"acme/app", "", s.referrer}, {"acme/app", "", s.second}, {"acme/multi", "v1", s.multi},
		{"acme/bundle", "v1", s.bundle}} {
		if err := tryWrite(w.Repository(one.path), one.image, one.tag); err != nil {
			return err
		}
	}
	text := "kind: ImageSetConfiguration\n"
	for _, name := range []string{"working-dir/a/b.yaml", "isc_2026-01-01T00:00:00Z"} {
		if err := w.AddFile(context.Background(), name, int64(len(text)), strings.NewReader(text)); err != nil {
			return err
		}
	}
	return nil
}

func (s *sample) same(t testing.TB, r *medium.Reader) {
	t.Helper()
	if got := r.Repositories(); !slices.Equal(got, []string{"acme/app", "acme/bundle", "acme/multi"}) {
		t.Fatal(got)
	}
	app := r.Repository("acme/app")
	same(t, app, s.app, hexTag(s.app))
	same(t, app, s.signature, hexTag(s.app)+".sig")
	same(t, r.Repository("acme/multi"), s.multi, "v1")
	same(t, r.Repository("acme/bundle"), s.bundle, "v1")
	for _, of := range []struct{ subject, is image }{{s.app, s.referrer}, {s.referrer, s.second}} {
		list, err := app.Referrers(context.Background(), of.subject.manifest.Digest, nil)
		if err != nil || len(list) != 1 || list[0].Digest != of.is.manifest.Digest ||
			list[0].ArtifactType != "application/x-test" {
			t.Fatalf("%v %v", list, err)
		}
		same(t, app, of.is, of.is.manifest.Digest.String())
	}
	text, err := fs.ReadFile(r.Files(), "working-dir/a/b.yaml")
	if err != nil || string(text) != "kind: ImageSetConfiguration\n" {
		t.Fatalf("%s %v", text, err)
	}
}

// What is written is read, in both forms, in one segment and in many, and each blob is there once.
func TestRoundTrip(t *testing.T) {
	s := newSample(t)
	for _, form := range bothForms {
		for _, segment := range []int64{0, 1_500_000, 1 << 20} {
			t.Run(fmt.Sprintf("%s %d", form, segment), func(t *testing.T) {
				dir := t.TempDir()
				w := create(t, dir, medium.Options{Form: form, SegmentBytes: segment, Key: "k"})
				s.write(t, w)
				about := medium.Contents{ImageSet: "x: y\n", Catalogs: []medium.Catalog{{Source: "r/c:v1", Path: "c",
					Tag: "v1"}}}
				account := finish(t, w, about)
				if got := names(t, dir); len(got) != len(account.Segments) {
					t.Fatal(got)
				}
				blobs := map[string]bool{}
				for _, seg := range account.Segments {
					content, err := os.ReadFile(filepath.Join(dir, seg.Name))
					if err != nil || int64(len(content)) != seg.Bytes ||
						seg.SHA256.Encoded() != fmt.Sprintf("%x", sha256.Sum256(content)) {
						t.Fatalf("%v: %d bytes, %v", seg, len(content), err)
					}
					members(t, content, blobs)
					if segment > 0 && len(content) > int(segment) && seg.Bytes < 1_050_000 {
						t.Errorf("%s has %d bytes", seg.Name, len(content))
					}
				}
				r := read(t, dir)
				s.same(t, r)
				if r.Form() != form || r.Contents() == nil {
					t.Fatal(r.Form())
				}
				c := r.Contents()
				if c.ImageSet != about.ImageSet || c.Key != "k" || len(c.Segments) != len(account.Segments) ||
					len(c.Catalogs) != 1 {
					t.Fatalf("%+v", c)
				}
				for i, seg := range c.Segments[:len(c.Segments)-1] {
					if seg != account.Segments[i] {
						t.Errorf("%v instead of %v", seg, account.Segments[i])
					}
				}
				if form == medium.OCI {
					s.layout(t, dir, account)
				}
			})
		}
	}
}

// What two archives of both forms list is listed once.
func TestReferrersOfBothForms(t *testing.T) {
	s := newSample(t)
	var dirs []string
	for _, form := range bothForms {
		dir := t.TempDir()
		w := create(t, dir, medium.Options{Form: form})
		s.write(t, w)
		finish(t, w, medium.Contents{})
		dirs = append(dirs, dir)
	}
	s.same(t, read(t, dirs[0], dirs[1]))
	s.same(t, read(t, dirs[1], dirs[0]))
}

// members lists the members of a segment: regular files, none twice.
func members(t testing.TB, content []byte, seen map[string]bool) {
	t.Helper()
	tr := tar.NewReader(bytes.NewReader(content))
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return
		}
		if err != nil || h.Typeflag != tar.TypeReg || h.Mode != 0o644 || seen[h.Name] {
			t.Fatalf("%v %v", h, err)
		}
		seen[h.Name] = true
	}
}

// layout extracts all segments into one directory, which is an OCI layout then.
func (s *sample) layout(t *testing.T, dir string, account *medium.Account) {
	to := t.TempDir()
	for _, seg := range account.Segments {
		extract(t, filepath.Join(dir, seg.Name), to)
	}
	row := images.BuiltIn().Row(transport.OCI)
	for name, i := range map[string]image{"acme/app:" + hexTag(s.app): s.app, "acme/multi:v1": s.multi,
		"acme/app:" + hexTag(s.app) + ".sig": s.signature} {
		path, tag, err := row.Parse(to + ":" + name)
		if err != nil {
			t.Fatal(err)
		}
		place, err := row.Open(t.Context(), path, tag, transport.Options{
			Limits: limit.Limits{}.WithDefaults(), Temp: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer place.Close()
		text, _, err := place.Manifest(t.Context(), place.Top.Digest.String())
		if err != nil || !bytes.Equal(text, i.manifest.content) {
			t.Errorf("%s: %s %v", name, text, err)
		}
		if i.manifest.Digest == s.app.manifest.Digest {
			list, err := place.Referrers(t.Context(), s.app.manifest.Digest, nil)
			if err != nil || len(list) != 1 || list[0].Digest != s.referrer.manifest.Digest {
				t.Errorf("%v %v", list, err)
			}
		}
	}
}

func extract(t testing.TB, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tr := tar.NewReader(f)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, filepath.FromSlash(h.Name))
		content, err := io.ReadAll(tr)
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// Two runs over the same content write the same bytes, whatever the order of the files on disk.
func TestSameBytes(t *testing.T) {
	s := newSample(t)
	for _, form := range bothForms {
		var sums []digest.Digest
		for range 2 {
			w := create(t, t.TempDir(), medium.Options{Form: form})
			s.write(t, w)
			sums = append(sums, finish(t, w, medium.Contents{}).Segments[0].SHA256)
		}
		if sums[0] != sums[1] {
			t.Errorf("%s: %v", form, sums)
		}
	}
}
