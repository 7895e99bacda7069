package layouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

func openRepository(t testing.TB, p transport.Destination) *Repository {
	t.Helper()
	r, err := OpenRepository(t.Context(), p, limit.Limits{}.WithDefaults(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// newLayout writes a layout with one image, and returns its place and digest.
func newLayout(t testing.TB, format transport.Name) (transport.Destination, digest.Digest) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	d := testregistry.Image{Layers: []map[string]string{{"a": "b"}}}.WriteLayout(t, dir, "v1")
	if format == transport.OCI {
		return transport.Destination{Transport: transport.OCI, Path: dir, Name: "v1"}, d
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := archiveLayout(t.Context(), dir, file); err != nil {
		t.Fatal(err)
	}
	return transport.Destination{Transport: transport.OCIArchive, Path: file, Name: "v1"}, d
}

func artifact(t testing.TB, subject digest.Digest, name string) []byte {
	t.Helper()
	text, err := json.Marshal(v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest, ArtifactType: "application/x-test", Config: v1.DescriptorEmptyJSON,
		Layers:      []v1.Descriptor{v1.DescriptorEmptyJSON},
		Annotations: map[string]string{"name": name, v1.AnnotationRefName: "not a tag"},
		Subject:     &v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: subject, Size: 2}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// addition is one process that adds to a place.
type addition struct{ *Writer }

func newAddition(t testing.TB, p transport.Destination) addition {
	t.Helper()
	w, err := NewAddition(t.Context(), p, limit.Limits{}.WithDefaults(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Discard() })
	return addition{w}
}

func (a addition) commit(t testing.TB) {
	t.Helper()
	if err := errors.Join(a.Commit(t.Context()), a.Discard()); err != nil {
		t.Error(err)
	}
}

// attach writes an artifact, and adds a line to the manifest of a tag as signing adds a layer.
func (a addition) attach(t testing.TB, subject digest.Digest, name string) {
	t.Helper()
	empty := func(context.Context, int64) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("{}")), nil }
	if _, err := a.WriteBlob(t.Context(), v1.DescriptorEmptyJSON, store.Content{Open: empty}); err != nil {
		t.Fatal(err)
	}
	if err := a.WriteManifest(t.Context(), artifact(t, subject, name), v1.MediaTypeImageManifest, store.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	err := a.UpdateTag(t.Context(), reflist.Tag(subject)+".sig", func(old []byte) ([]byte, string, error) {
		if slices.Contains(strings.Fields(string(old)), name) {
			return nil, "", nil
		}
		return []byte(string(old) + name + "\n"), v1.MediaTypeImageManifest, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lists returns the names of the artifacts, and the lines of the tag.
func lists(t testing.TB, r store.Reader, subject digest.Digest) (names, lines []string) {
	t.Helper()
	found, err := r.Referrers(t.Context(), subject, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if d.ArtifactType != "application/x-test" {
			t.Errorf("%+v", d)
		}
		names = append(names, d.Annotations["name"])
	}
	text, _, err := r.Manifest(t.Context(), reflist.Tag(subject)+".sig")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	slices.Sort(names)
	lines = strings.Fields(string(text))
	slices.Sort(lines)
	return names, lines
}

// What is added is read at once by the writer, and by others when it is committed; the image is what it was.
func TestAddition(t *testing.T) {
	for _, format := range []transport.Name{transport.OCI, transport.OCIArchive} {
		t.Run(string(format), func(t *testing.T) {
			p, subject := newLayout(t, format)
			for i, want := range [][]string{{"0"}, {"0", "1"}, {"0", "1", "2"}} {
				a := newAddition(t, p)
				a.attach(t, subject, fmt.Sprint(i))
				if names, lines := lists(t, a, subject); !slices.Equal(names, want) || !slices.Equal(lines, want) {
					t.Errorf("staged: %v %v instead of %v", names, lines, want)
				}
				if names, lines := lists(t, openRepository(t, p), subject); len(names) != i || len(lines) != i {
					t.Errorf("before the commit: %v %v", names, lines)
				}
				a.commit(t)
				r := openRepository(t, p)
				if names, lines := lists(t, r, subject); !slices.Equal(names, want) || !slices.Equal(lines, want) {
					t.Errorf("committed: %v %v instead of %v", names, lines, want)
				}
				// Neither the signatures nor the referrers are images that a name must choose between.
				if top, err := r.Top(transport.Destination{Transport: format, Path: p.Path}); err != nil || top.Digest != subject {
					t.Errorf("%v %v", top, err)
				}
				if list, err := reflist.Parse(text(t, r, reflist.Tag(subject))); err != nil || len(list) != i+1 {
					t.Errorf("fallback tag: %v %v", list, err)
				}
			}
			stages, err := filepath.Glob(filepath.Join(filepath.Dir(p.Path), StagePrefix+"*"))
			inside, err2 := filepath.Glob(filepath.Join(p.Path, StagePrefix+"*"))
			if len(stages)+len(inside) > 0 || err != nil || err2 != nil {
				t.Errorf("left: %v %v", stages, inside)
			}
		})
	}
}

func text(t testing.TB, r *Repository, name string) []byte {
	t.Helper()
	content, _, err := r.Manifest(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Processes that add to one place at the same time lose nothing, whichever is first: all have read the place before any
// has written it.
func TestAdditionsAtOnce(t *testing.T) {
	for _, format := range []transport.Name{transport.OCI, transport.OCIArchive} {
		t.Run(string(format), func(t *testing.T) {
			p, subject := newLayout(t, format)
			var open []addition
			var want []string
			for i := range 10 {
				a := newAddition(t, p)
				a.attach(t, subject, fmt.Sprint(i))
				open, want = append(open, a), append(want, fmt.Sprint(i))
			}
			var all sync.WaitGroup
			for _, a := range open {
				all.Go(func() { a.commit(t) })
			}
			all.Wait()
			names, lines := lists(t, openRepository(t, p), subject)
			if !slices.Equal(names, want) || !slices.Equal(lines, want) {
				t.Errorf("%v %v instead of %v", names, lines, want)
			}
		})
	}
}

// A second addition of the same leaves the place as it is, byte for byte.
func TestAdditionOfTheSame(t *testing.T) {
	p, subject := newLayout(t, transport.OCI)
	var before []byte
	for range 2 {
		a := newAddition(t, p)
		a.attach(t, subject, "one")
		a.commit(t)
		now, err := os.ReadFile(filepath.Join(p.Path, indexFile))
		if err != nil || before != nil && string(before) != string(now) {
			t.Errorf("%s, then %s (%v)", before, now, err)
		}
		before = now
	}
}

// Content that is not what its name says is an error, and a tag cannot stand for a digest.
func TestHostileLayouts(t *testing.T) {
	corrupt := openRepository(t, transport.Destination{Transport: transport.OCI, Path: supplytest.Unpack(t, "neg-sig-blob-corrupt")})
	top, err := corrupt.Top(transport.Destination{Name: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	var sig v1.Manifest
	if err := json.Unmarshal(text(t, corrupt, reflist.Tag(top.Digest)+".sig"), &sig); err != nil {
		t.Fatal(err)
	}
	if r, err := corrupt.Blob(t.Context(), sig.Layers[0], 0); err == nil {
		if _, err = io.ReadAll(r); !errors.Is(err, fault.ErrIntegrity) {
			t.Errorf("a corrupt blob: %v", err)
		}
		r.Close()
	} else if !errors.Is(err, fault.ErrIntegrity) {
		t.Errorf("a corrupt blob: %v", err)
	}
	for name, want := range map[string]int{"neg-referrers-tag-not-index": 0, "referrers-tag-self-and-loop": 2,
		"bundle-attested-all": 4, "bundle-fallback-tag": 1, "unsigned": 0} {
		r := openRepository(t, transport.Destination{Transport: transport.OCI, Path: supplytest.Unpack(t, name)})
		top, err := r.Top(transport.Destination{Name: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := r.Referrers(t.Context(), top.Digest, nil); err != nil || len(found) != want {
			t.Errorf("%s: %d referrers instead of %d: %v %v", name, len(found), want, found, err)
		}
	}
	for name, change := range map[string]func(dir string, x *v1.Index) error{
		"another manifest": func(dir string, x *v1.Index) error {
			return os.WriteFile(BlobPath(dir, x.Manifests[0].Digest), []byte(`{"schemaVersion":2}`), 0o600)
		},
		"an entry that is no digest": func(_ string, x *v1.Index) error {
			x.Manifests[0].Digest = "sha256:../../../../etc/passwd"
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newLayout(t, transport.OCI)
			index := filepath.Join(p.Path, indexFile)
			var x v1.Index
			content, err := os.ReadFile(index)
			if err := errors.Join(err, json.Unmarshal(content, &x), change(p.Path, &x)); err != nil {
				t.Fatal(err)
			}
			content, err = json.Marshal(x)
			if err := errors.Join(err, os.WriteFile(index, content, 0o600)); err != nil {
				t.Fatal(err)
			}
			_, _, err = openRepository(t, p).Manifest(t.Context(), "v1")
			if !errors.Is(err, fault.ErrIntegrity) && !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("%v", err)
			}
		})
	}
	p, d := newLayout(t, transport.OCI)
	a := newAddition(t, p)
	err = a.UpdateTag(t.Context(), d.String(), func([]byte) ([]byte, string, error) {
		return []byte(`{"another":1}`), v1.MediaTypeImageManifest, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a.commit(t)
	if content := text(t, openRepository(t, p), d.String()); digest.FromBytes(content) != d {
		t.Errorf("the tag stands for the digest: %s", content)
	}
}

// An index.json or a version of the layout that is none is refused, before anything is read or written.
func TestLayoutsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		class      error
	}{
		"no JSON":        {indexFile, `<html>`, fault.ErrInvalid},
		"another schema": {indexFile, `{"schemaVersion":1,"manifests":[]}`, fault.ErrInvalid},
		"no list":        {indexFile, `{"schemaVersion":2,"manifests":{"a":1}}`, fault.ErrInvalid},
		"no descriptor":  {indexFile, `{"schemaVersion":2,"manifests":["text"]}`, fault.ErrInvalid},
		"10,001 entries": {indexFile, `{"schemaVersion":2,"manifests":[{}` + strings.Repeat(`,{}`, maxEntries) + `]}`,
			fault.ErrLimit},
		"no version":      {layoutFile, `text`, fault.ErrInvalid},
		"another version": {layoutFile, `{"imageLayoutVersion":"9.0.0"}`, fault.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newLayout(t, transport.OCI)
			if err := os.WriteFile(filepath.Join(p.Path, c.file), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if r, err := OpenRepository(t.Context(), p, limit.Limits{}.WithDefaults(), t.TempDir()); !errors.Is(err, c.class) {
				t.Errorf("opened: %v, %v", r, err)
			}
			if w, err := NewAddition(t.Context(), p, limit.Limits{}.WithDefaults(), t.TempDir()); !errors.Is(err, c.class) {
				t.Errorf("an addition: %v, %v", w, err)
			}
		})
	}
	p, _ := newLayout(t, transport.OCI)
	if err := errors.Join(os.Remove(filepath.Join(p.Path, layoutFile)),
		os.WriteFile(filepath.Join(p.Path, "mine"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []transport.Destination{p, {Transport: transport.Directory, Path: p.Path}, {Transport: transport.OCI, Path: p.Path + "/nowhere"}} {
		if r, err := OpenRepository(t.Context(), p, limit.Limits{}.WithDefaults(), t.TempDir()); err == nil {
			t.Errorf("%s is opened: %v", p, r)
		}
		if w, err := NewAddition(t.Context(), p, limit.Limits{}.WithDefaults(), t.TempDir()); err == nil {
			t.Errorf("an addition to %s: %v", p, w)
		}
	}
}

// Without a name there must be one image; the error lists those that there are.
func TestSeveralImages(t *testing.T) {
	p, d := newLayout(t, transport.OCI)
	a := newAddition(t, p)
	for _, tag := range []string{"v2", "v3"} {
		other := artifact(t, d, tag)
		err := a.WriteManifest(t.Context(), []byte(strings.Replace(string(other), `"subject"`, `"other"`, 1)),
			v1.MediaTypeImageManifest, store.WriteOptions{Tag: tag})
		if err != nil {
			t.Fatal(err)
		}
	}
	a.commit(t)
	r := openRepository(t, p)
	for name, want := range map[string]string{"": `3 images, and none is chosen`, "none": `its tags are "v1", "v2", "v3"`,
		"@3": `has no image "@3": it holds 3 images`, "@x": "has no image"} {
		if top, err := r.Top(transport.Destination{Transport: transport.OCI, Path: p.Path, Name: name}); !errors.Is(err, fault.ErrInvalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", name, top, err)
		}
	}
	if top, err := r.Top(transport.Destination{Transport: transport.OCI, Path: p.Path, Name: "@0"}); err != nil || top.Digest != d {
		t.Errorf("@0: %v, %v", top, err)
	}
}

// tail counts the bytes that are read of files.
type tail struct {
	fileStore
	read *int
}

type tailFile struct {
	io.ReadSeekCloser
	read *int
}

func (f tailFile) Read(p []byte) (int, error) {
	n, err := f.ReadSeekCloser.Read(p)
	*f.read += n
	return n, err
}

func (t tail) open(name string) (io.ReadSeekCloser, int64, error) {
	f, size, err := t.fileStore.open(name)
	return tailFile{f, t.read}, size, err
}

// A transfer that is resumed reads nothing of a blob that was sent before; beyond the end of a blob is nothing.
func TestBlobsAreReadFromAnOffset(t *testing.T) {
	for _, format := range []transport.Name{transport.OCI, transport.OCIArchive} {
		p, d := newLayout(t, format)
		r := openRepository(t, p)
		text, _, err := r.Manifest(t.Context(), d.String())
		if err != nil {
			t.Fatal(err)
		}
		blob := v1.Descriptor{Digest: d, Size: int64(len(text))}
		read := 0
		r.files = tail{r.files, &read}
		body, err := r.Blob(t.Context(), blob, blob.Size-2)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); err != nil || string(rest) != string(text[len(text)-2:]) || read != 2 {
			t.Errorf("%s: %q with %d bytes read: %v", format, rest, read, err)
		}
		if _, err := r.Blob(t.Context(), blob, blob.Size+1); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: an offset behind the end: %v", format, err)
		}
	}
}
