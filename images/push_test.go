package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// reads notes which blobs of an image are read.
func reads(f *fixture) func() []digest.Digest {
	var mu sync.Mutex
	var seen []digest.Digest
	f.opened = func(d digest.Digest) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, d)
	}
	return func() []digest.Digest {
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(seen)
		return slices.Clone(seen)
	}
}

// packages is an image with a layer for each content.
func packages(t testing.TB, contents ...string) *fixture {
	t.Helper()
	var layers []rawLayer
	for i, c := range contents {
		layers = append(layers, gzipLayer(t, tarOf(t, entry{name: fmt.Sprintf("configs/%d/catalog.yaml", i), body: c})))
	}
	return newFixture(t, layers...)
}

// configOf is the configuration of an image.
func configOf(f *fixture) digest.Digest {
	for d, b := range f.blobs {
		if strings.HasPrefix(string(b), "{") {
			return d
		}
	}
	return ""
}

// pushTo pushes to names in a registry.
func pushTo(t testing.TB, src types.ImageReference, o CopyOptions, names ...string) ([]Result, error) {
	t.Helper()
	if o.Registry.SkipTLSVerify == nil && o.Registry.CAFile == "" {
		o.Registry = insecure()
	}
	if o.Backoff == 0 {
		o.Backoff = time.Millisecond
	}
	var dests []transport.Destination
	for _, name := range names {
		dests = append(dests, parse(t, "docker://"+name))
	}
	return copyOf(t.Context(), of(t, src), dests, o)
}

func TestOnlyWhatIsMissingIsSent(t *testing.T) {
	reg := testregistry.New(t)
	reg.Separate(false)
	name := reg.Host() + "/a/b"
	if _, err := pushTo(t, packages(t, "a", "b", "c"), CopyOptions{}, name+":v1"); err != nil {
		t.Fatal(err)
	}
	reg.Forget()
	next := packages(t, "a", "changed", "c")
	seen := reads(next)
	r, err := pushTo(t, next, CopyOptions{}, name+":v2")
	if err != nil {
		t.Fatal(err)
	}
	layer, config := layerOf(t, next, 1), configOf(next)
	want := []digest.Digest{layer.Digest, config}
	slices.Sort(want)
	if got := seen(); !slices.Equal(got, want) {
		t.Errorf("read %v, want the layer and the configuration %v", got, want)
	}
	if n := reg.Count("PUT /v2/a/b/blobs/"); n != 2 {
		t.Errorf("%d uploads", n)
	}
	manifests := int64(len(next.manifest))
	traffic := store.Traffic{
		Pushed:    store.Amount{Count: 2, Bytes: layer.Size + int64(len(next.blobs[config]))},
		Reused:    store.Amount{Count: 2, Bytes: layerOf(t, next, 0).Size + layerOf(t, next, 2).Size},
		Manifests: store.Amount{Count: 2, Bytes: 2 * manifests},
	}
	if *r[0].Traffic != traffic {
		t.Errorf("got %+v, want %+v", *r[0].Traffic, traffic)
	}
	if string(reg.Manifest("a/b", "v2")) != string(next.manifest) {
		t.Error("the tag names something else")
	}
}

// several is an index of images.
type several struct {
	*fixture
	images map[digest.Digest][]byte
}

func newSeveral(t testing.TB, images ...*fixture) *several {
	t.Helper()
	s := &several{&fixture{kind: v1.MediaTypeImageIndex, blobs: map[digest.Digest][]byte{}}, map[digest.Digest][]byte{}}
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: s.kind}
	for _, f := range images {
		d := digest.FromBytes(f.manifest)
		s.images[d] = f.manifest
		index.Manifests = append(index.Manifests,
			v1.Descriptor{MediaType: f.kind, Digest: d, Size: int64(len(f.manifest))})
		for d, b := range f.blobs {
			s.blobs[d] = b
		}
	}
	s.manifest = mustJSON(t, index)
	return s
}

func (s *several) NewImageSource(context.Context, *types.SystemContext) (types.ImageSource, error) {
	return s, nil
}

func (s *several) GetManifest(_ context.Context, d *digest.Digest) ([]byte, string, error) {
	if d != nil {
		return s.images[*d], manifest.GuessMIMEType(s.images[*d]), nil
	}
	return s.manifest, s.kind, nil
}

// Blobs do not count as images of indexes, however many there are.
func TestIndexesInIndexesArePushed(t *testing.T) {
	all := newSeveral(t)
	add := func(kind string, m any) v1.Descriptor {
		text := mustJSON(t, m)
		all.images[digest.FromBytes(text)] = text
		return v1.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))}
	}
	blob := func(name string, n ...int) v1.Descriptor {
		content := []byte(fmt.Sprint(name, n))
		d := digest.FromBytes(content)
		all.blobs[d] = content
		return v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: d, Size: int64(len(content))}
	}
	top := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: all.kind}
	for n := range 3 {
		index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: all.kind}
		for i := range 6 {
			m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
				Config: blob("config", n, i)}
			for l := range 90 {
				m.Layers = append(m.Layers, blob("layer", n, i, l))
			}
			index.Manifests = append(index.Manifests, add(m.MediaType, m))
		}
		top.Manifests = append(top.Manifests, add(all.kind, index))
	}
	all.manifest = mustJSON(t, top)
	reg := testregistry.New(t)
	r, err := pushTo(t, all, CopyOptions{}, reg.Host()+"/a/b:v1")
	if err != nil {
		t.Fatal(err)
	}
	if got := r[0].Traffic; got.Manifests.Count != 1+3+18+1 || len(r[0].Blobs) != 18*91 {
		t.Errorf("%d manifests, %d blobs", got.Manifests.Count, len(r[0].Blobs))
	}
}

func TestBlobsOfAllPlatformsAreSentOnce(t *testing.T) {
	reg := testregistry.New(t)
	reg.Separate(false)
	index := newSeveral(t, packages(t, "server 1", "a", "b"), packages(t, "server 2", "a", "b"),
		packages(t, "server 3", "a", "b"))
	seen := reads(index.fixture)
	if _, err := pushTo(t, index, CopyOptions{}, reg.Host()+"/a/b:v1"); err != nil {
		t.Fatal(err)
	}
	if got := seen(); len(got) != 3+3+2 || len(slices.Compact(got)) != len(seen()) {
		t.Errorf("read %d blobs", len(got))
	}
	// The images that are there need no second look.
	reg.Forget()
	index = newSeveral(t, packages(t, "server 1", "a", "b"), packages(t, "server 2", "a", "b"),
		packages(t, "server 4", "a", "b"))
	r, err := pushTo(t, index, CopyOptions{}, reg.Host()+"/a/b:v2")
	if err != nil || len(r[0].Written) != 2 || len(r[0].Reused) != 6 {
		t.Errorf("%+v, %v", r, err)
	}
	if n := reg.Count("PUT /v2/a/b/manifests/"); n != 3 { // the new image, the index by digest and by tag
		t.Errorf("%d manifests", n)
	}
}

func TestTagsArePutWhenEverythingIsThere(t *testing.T) {
	reg, other := testregistry.New(t), testregistry.New(t)
	names := []string{reg.Host() + "/a/b:v1", other.Host() + "/c/d:v1", reg.Host() + "/a/b:v2", reg.Host() + "/e/f:v1"}
	other.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	results, err := pushTo(t, simple(t, "x"), CopyOptions{}, names...)
	if err == nil || len(results) > 0 {
		t.Fatalf("got %v, %v", results, err)
	}
	for _, q := range reg.Requests() {
		if strings.HasPrefix(q, "PUT ") && strings.Contains(q, "/manifests/v") {
			t.Errorf("%s, although another destination failed", q)
		}
	}
	other.Interfere(nil)
	reg.Forget()
	if _, err := pushTo(t, simple(t, "x"), CopyOptions{}, names...); err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(reg.Requests(),
		func(q string) bool { return strings.HasPrefix(q, "PUT ") && strings.Contains(q, "/manifests/v") })
	for _, q := range reg.Requests()[first:] {
		if !strings.Contains(q, "/manifests/v") {
			t.Errorf("%s after the first tag", q)
		}
	}
}

func TestBlobThatDisappearsIsSentAgainOnce(t *testing.T) {
	for name, times := range map[string]int32{"once": 1, "always": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			reg.Separate(false)
			f := simple(t, "x")
			var n atomic.Int32
			reg.Interfere(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") && n.Add(1) <= times {
					reg.DeleteBlob(layerOf(t, f, 0).Digest)
				}
				return false
			})
			r, err := pushTo(t, f, CopyOptions{}, reg.Host()+"/a/b:v1")
			if times == 1 && (err != nil || len(r[0].Written) != 3) ||
				times > 1 && (err == nil || reg.Manifest("a/b", "v1") != nil) {
				t.Errorf("%+v, %v", r, err)
			}
			if n := reg.Count("PUT /v2/a/b/blobs/"); n != 4 {
				t.Errorf("%d uploads", n)
			}
		})
	}
}

// The destinations that have their names are reported when one fails.
func TestTagThatFails(t *testing.T) {
	reg := testregistry.New(t)
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/manifests/v2") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	out := t.TempDir() + "/layout"
	to := dests(t, "oci:"+out+":v1")
	for _, tag := range []string{"v1", "v2", "v3"} {
		to = append(to, parse(t, "docker://"+reg.Host()+"/a/b:"+tag))
	}
	r, err := copyOf(t.Context(), of(t, simple(t, "x")), to, CopyOptions{Options: registries.Options{Registry: insecure()}})
	if !registries.IsUnauthorized(err) || !strings.Contains(err.Error(), "/a/b:v2: ") {
		t.Errorf("got %v", err)
	}
	if len(r) != 1 || r[0].Destination != to[1].String() || len(r[0].Written) != 3 {
		t.Errorf("done: %+v", r)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the layout was written: %v", err)
	}
}

func TestBlockedRegistryIsNotWrittenTo(t *testing.T) {
	reg := testregistry.New(t)
	r := insecure()
	r.RegistriesConf = t.TempDir() + "/registries.conf"
	write(t, r.RegistriesConf, fmt.Sprintf("[[registry]]\nlocation = %q\nblocked = true\n", reg.Host()+"/a"))
	if _, err := pushTo(t, simple(t, "x"), CopyOptions{Options: registries.Options{Registry: r}}, reg.Host()+"/a/b:v1"); !errors.Is(err,
		fault.ErrRegistry) || !strings.Contains(err.Error(), "is blocked in") {
		t.Errorf("got %v", err)
	}
	if n := len(reg.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}
