package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/testregistry"
)

// lent is an image whose source knows where its blobs are.
type lent struct {
	*fixture
	by []string
}

func (l lent) NewImageSource(context.Context, *types.SystemContext) (types.ImageSource, error) {
	return l, nil
}
func (l lent) Lenders(digest.Digest) []string { return l.by }

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
	var dests []Destination
	for _, name := range names {
		dests = append(dests, parse(t, "docker://"+name))
	}
	return Copy(t.Context(), src, dests, o)
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
	if n := reg.Count("PATCH "); n != 2 {
		t.Errorf("%d uploads", n)
	}
	manifests := int64(len(next.manifest))
	traffic := Traffic{
		Pushed: Amount{2, layer.Size + int64(len(next.blobs[config]))}, Reused: Amount{2, layerOf(t, next, 0).Size + layerOf(t, next, 2).Size},
		Manifests: Amount{2, 2 * manifests},
	}
	if *r[0].Traffic != traffic {
		t.Errorf("got %+v, want %+v", *r[0].Traffic, traffic)
	}
	if string(reg.Manifest("a/b", "v2")) != string(next.manifest) {
		t.Error("the tag names something else")
	}
}

func TestBlobsAreMounted(t *testing.T) {
	type want struct{ pushed, mounted, asked int }
	for name, c := range map[string]struct {
		mounts bool
		by     func(host string) []string
		want   want
	}{
		"a registry that lends":    {true, func(h string) []string { return []string{h + "/base/image"} }, want{1, 3, 4}},
		"the second lender has it": {true, func(h string) []string { return []string{h + "/other", h + "/base/image"} }, want{1, 3, 0}},
		"a registry that does not": {false, func(h string) []string { return []string{h + "/base/image"} }, want{4, 0, 0}},
		"another registry":         {true, func(string) []string { return []string{"registry.example.com/base/image"} }, want{4, 0, -1}},
		"the repository itself":    {true, func(h string) []string { return []string{h + "/a/b"} }, want{4, 0, -1}},
		"names that are none": {true, func(h string) []string {
			return []string{"", "/", h, h + "/base/image:tag", h + "/BASE", "http://" + h + "/x"}
		}, want{4, 0, -1}},
		"nobody is known":            {true, func(string) []string { return nil }, want{4, 0, -1}},
		"a wrong one and a good one": {true, func(h string) []string { return []string{"registry.example.com/base/image", h + "/base/image"} }, want{1, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			reg.Separate(c.mounts)
			if _, err := pushTo(t, packages(t, "a", "b", "c"), CopyOptions{}, reg.Host()+"/base/image:v1"); err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int32
			reg.Interfere(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Has("mount") {
					asked.Add(1)
				}
				return false
			})
			reg.Forget()
			f := packages(t, "a", "b", "c").change(t, func(m *v1.Manifest) { m.Annotations = map[string]string{"other": "manifest"} })
			config := []byte(`{"architecture":"amd64","os":"linux","created":"1970-01-01T00:00:00Z","rootfs":{"type":"layers","diff_ids":null}}`)
			f.blobs[digest.FromBytes(config)] = config
			f = f.change(t, func(m *v1.Manifest) { m.Config.Digest, m.Config.Size = digest.FromBytes(config), int64(len(config)) })
			seen := reads(f)
			r, err := pushTo(t, lent{f, c.by(reg.Host())}, CopyOptions{}, reg.Host()+"/a/b:v1")
			if err != nil {
				t.Fatal(err)
			}
			if r[0].Traffic.Pushed.Count != c.want.pushed || r[0].Traffic.Mounted.Count != c.want.mounted || len(seen()) != c.want.pushed {
				t.Errorf("got %+v, read %d", *r[0].Traffic, len(seen()))
			}
			if c.want.asked > 0 && int(asked.Load()) != c.want.asked || c.want.asked < 0 && asked.Load() > 0 {
				t.Errorf("asked for %d mounts", asked.Load())
			}
			for _, b := range r[0].Blobs {
				if (b.How == Mounted) != (b.From == reg.Host()+"/base/image") {
					t.Errorf("%+v", b)
				}
			}
			if c.want.mounted == 0 && reg.Count("POST ") != 4 {
				t.Errorf("%d uploads begun for 4 blobs", reg.Count("POST "))
			}
		})
	}
}

// The second repository of a run takes from the first what that has.
func TestRepositoriesOfOneRunLend(t *testing.T) {
	reg := testregistry.New(t)
	reg.Separate(true)
	f := packages(t, "a", "b")
	seen := reads(f)
	r, err := pushTo(t, f, CopyOptions{}, reg.Host()+"/a/b:v1", reg.Host()+"/c/d:v1", reg.Host()+"/a/b:v2")
	if err != nil {
		t.Fatal(err)
	}
	if len(seen()) != 3 || len(r[0].Written) != 3 || len(r[1].Mounted) != 3 || len(r[2].Reused) != 3 {
		t.Errorf("read %v: %+v", seen(), r)
	}
}

func TestUselessLendersAreAskedNoMore(t *testing.T) {
	reg := testregistry.New(t)
	reg.Separate(false)
	var asked atomic.Int32
	reg.Interfere(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("mount") {
			asked.Add(1)
		}
		return false
	})
	var contents []string
	for i := range 30 {
		contents = append(contents, fmt.Sprint(i))
	}
	if _, err := pushTo(t, lent{packages(t, contents...), []string{reg.Host() + "/other"}}, CopyOptions{}, reg.Host()+"/a/b:v1"); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n < 1 || n > maxRefusals+parallelBlobs {
		t.Errorf("asked %d times", n)
	}
}

// cutBody ends the body of a request after so many bytes, as a broken connection does.
type cutBody struct {
	io.ReadCloser
	left int
}

func (c *cutBody) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.ReadCloser.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

func TestBrokenUploads(t *testing.T) {
	const cutAt = 2 << 20
	f, _ := large(t, 3<<20)
	layer := layerOf(t, f, 0)
	// What the registry says when it is asked how much it has; nil lets it tell the truth.
	header := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Range", text)
			w.Header().Set("Location", r.URL.Path)
			w.WriteHeader(http.StatusNoContent)
		}
	}
	for name, c := range map[string]struct {
		says    http.HandlerFunc
		retries int
		begun   int   // uploads of the layer
		most    int64 // bytes that the registry got of it
	}{
		"the registry tells how much it has":   {nil, 1, 1, layer.Size},
		"it cannot tell":                       {status(http.StatusNotFound), 1, 2, layer.Size + cutAt},
		"it knows no such request":             {status(http.StatusMethodNotAllowed), 1, 2, layer.Size + cutAt},
		"it tells nonsense":                    {header("bytes 17"), 1, 2, layer.Size + cutAt},
		"it claims more than there is":         {header("0-99999999999"), 1, 2, layer.Size + cutAt},
		"it tells less than it has":            {header("0-1048575"), 4, 1, 3 * layer.Size},
		"it claims to have all":                {header(fmt.Sprintf("0-%d", layer.Size-1)), 3, 2, layer.Size + cutAt},
		"it has nothing and can say only that": {header("0-0"), 3, 2, 3 * layer.Size},
		"it answers with a page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		}, 2, 2, 3 * layer.Size},
	} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			var cut, lied atomic.Bool
			var got atomic.Int64
			var begun atomic.Int32
			reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method == http.MethodPost:
					begun.Add(1)
				case r.Method == http.MethodPatch && r.ContentLength > 1<<20:
					n := r.ContentLength
					if !cut.Swap(true) {
						r.Body, n = &cutBody{r.Body, cutAt}, cutAt
					}
					got.Add(n)
				case r.Method == http.MethodPatch && r.Header.Get("Content-Range") != "":
					got.Add(r.ContentLength)
				case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/uploads/") && c.says != nil && !lied.Swap(true):
					c.says(w, r)
					return true
				}
				return false
			})
			if _, err := pushTo(t, f, CopyOptions{Retries: c.retries}, reg.Host()+"/a/b:v1"); err != nil {
				t.Fatal(err)
			}
			if n := int(begun.Load()) - 1; n != c.begun { // one is of the configuration
				t.Errorf("begun %d times, want %d", n, c.begun)
			}
			if n := got.Load(); n > c.most {
				t.Errorf("%d bytes of %d were sent, want at most %d", n, layer.Size, c.most)
			}
			if string(reg.Manifest("a/b", "v1")) != string(f.manifest) {
				t.Error("the tag names something else")
			}
		})
	}
}

// Whoever moves on may try again: a line that breaks after every megabyte is good enough without any retries.
func TestUploadsThatMoveOnAreNotGivenUp(t *testing.T) {
	reg := testregistry.New(t)
	f, _ := large(t, 5<<20)
	reg.Interfere(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && r.ContentLength > 3<<19 {
			r.Body = &cutBody{r.Body, 3 << 19}
		}
		return false
	})
	if _, err := pushTo(t, f, CopyOptions{Retries: 1}, reg.Host()+"/a/b:v1"); err != nil {
		t.Fatal(err)
	}
	if n := reg.Count("PATCH "); n != 5 {
		t.Errorf("%d requests", n)
	}
}

func TestBusyRegistriesAreWaitedFor(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			reg := testregistry.New(t)
			var first, second atomic.Int64
			reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost {
					return false
				}
				if !first.CompareAndSwap(0, time.Now().UnixNano()) {
					second.CompareAndSwap(0, time.Now().UnixNano())
					return false
				}
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(code)
				return true
			})
			if _, err := pushTo(t, newFixture(t), CopyOptions{Retries: 1}, reg.Host()+"/a/b:v1"); err != nil {
				t.Fatal(err)
			}
			if wait := time.Duration(second.Load() - first.Load()); wait < time.Second {
				t.Errorf("asked again after %v, not the second that the registry gave", wait)
			}
		})
	}
}

func TestWrongBytesAreNotPushed(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"one bit":  func(b []byte) []byte { b = slices.Clone(b); b[len(b)/2] ^= 1; return b },
		"too few":  func(b []byte) []byte { return b[:len(b)-1] },
		"too many": func(b []byte) []byte { return append(slices.Clone(b), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			f := simple(t, "x")
			d := layerOf(t, f, 1).Digest
			f.blobs[d] = spoil(f.blobs[d])
			if _, err := pushTo(t, f, CopyOptions{Retries: 2}, reg.Host()+"/a/b:v1"); !errors.Is(err, ErrIntegrity) {
				t.Errorf("got %v", err)
			}
			if reg.Count("PUT /v2/a/b/manifests") > 0 || reg.Manifest("a/b", "v1") != nil {
				t.Error("a manifest was sent")
			}
		})
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
		index.Manifests = append(index.Manifests, v1.Descriptor{MediaType: f.kind, Digest: d, Size: int64(len(f.manifest))})
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
		return s.images[*d], v1.MediaTypeImageManifest, nil
	}
	return s.manifest, s.kind, nil
}

func TestBlobsOfAllPlatformsAreSentOnce(t *testing.T) {
	reg := testregistry.New(t)
	reg.Separate(false)
	index := newSeveral(t, packages(t, "server 1", "a", "b"), packages(t, "server 2", "a", "b"), packages(t, "server 3", "a", "b"))
	seen := reads(index.fixture)
	if _, err := pushTo(t, index, CopyOptions{}, reg.Host()+"/a/b:v1"); err != nil {
		t.Fatal(err)
	}
	if got := seen(); len(got) != 3+3+2 || len(slices.Compact(got)) != len(seen()) {
		t.Errorf("read %d blobs", len(got))
	}
	// The images that are there need no second look.
	reg.Forget()
	index = newSeveral(t, packages(t, "server 1", "a", "b"), packages(t, "server 2", "a", "b"), packages(t, "server 4", "a", "b"))
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
	first := slices.IndexFunc(reg.Requests(), func(q string) bool { return strings.HasPrefix(q, "PUT ") && strings.Contains(q, "/manifests/v") })
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
			if times == 1 && (err != nil || len(r[0].Written) != 3) || times > 1 && (err == nil || reg.Manifest("a/b", "v1") != nil) {
				t.Errorf("%+v, %v", r, err)
			}
			if n := reg.Count("PATCH "); n != 4 {
				t.Errorf("%d uploads", n)
			}
		})
	}
}

func TestUploadLocations(t *testing.T) {
	for _, c := range []struct{ host, at, says, want string }{
		{"r.example.com", "https://r.example.com/v2/a/blobs/uploads/", "/v2/a/blobs/uploads/1?x=y", "https://r.example.com/v2/a/blobs/uploads/1?x=y"},
		{"r.example.com", "https://r.example.com/v2/a/blobs/uploads/", "1", "https://r.example.com/v2/a/blobs/uploads/1"},
		{"r.example.com", "https://r.example.com/v2/", "https://user:pw@r.example.com:443/1", "https://r.example.com:443/1"},
		{"r.example.com", "https://r.example.com/v2/", "http://r.example.com/1", "https://r.example.com/1"},
		{"r.example.com:5000", "http://r.example.com:5000/v2/", "http://r.example.com:5000/1", "http://r.example.com:5000/1"},
		{"r.example.com:5000", "http://r.example.com:5000/v2/", "https://r.example.com:5000/1", "http://r.example.com:5000/1"},
		{"r.example.com", "https://r.example.com/v2/", "https://store.example.com/1", "foreign https://store.example.com/1"},
		{"r.example.com:5000", "http://r.example.com:5000/v2/", "http://r.example.com/1", "foreign http://r.example.com/1"},
		{"r.example.com", "https://r.example.com/v2/", "http://store.example.com/1", "error"},
		{"r.example.com", "https://r.example.com/v2/", "ftp://r.example.com/1", "error"},
		{"r.example.com", "https://r.example.com/v2/", "https://169.254.169.254/latest", "error"},
		{"r.example.com", "https://r.example.com/v2/", "https://127.0.0.1/1", "error"},
		{"r.example.com", "https://r.example.com/v2/", "", "error"},
		{"r.example.com", "https://r.example.com/v2/", "://", "error"},
	} {
		p := &repository{host: &registryHost{hostKey: hostKey{name: c.host}, address: c.host}}
		at, err := url.Parse(c.at)
		if err != nil {
			t.Fatal(err)
		}
		got, foreign, err := p.location(&http.Response{Header: http.Header{"Location": {c.says}}, Request: &http.Request{URL: at}})
		text := "error"
		if err == nil {
			text = got.String()
		}
		if foreign {
			text = "foreign " + text
		}
		if text != c.want {
			t.Errorf("%s at %s: got %s, want %s (%v)", c.says, c.at, text, c.want, err)
		}
	}
}

func TestBlockedRegistryIsNotWrittenTo(t *testing.T) {
	reg := testregistry.New(t)
	r := insecure()
	r.RegistriesConf = t.TempDir() + "/registries.conf"
	write(t, r.RegistriesConf, fmt.Sprintf("[[registry]]\nlocation = %q\nblocked = true\n", reg.Host()+"/a"))
	if _, err := pushTo(t, simple(t, "x"), CopyOptions{Registry: r}, reg.Host()+"/a/b:v1"); !errors.Is(err, ErrRegistry) || !strings.Contains(err.Error(), "is blocked in") {
		t.Errorf("got %v", err)
	}
	if n := len(reg.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}
