package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/lockfile"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// put stores a fixture in a registry.
func put(reg *testregistry.Registry, repository, tag string, f *fixture) digest.Digest {
	for _, b := range f.blobs {
		reg.AddBlob(b)
	}
	return reg.AddManifest(repository, tag, f.kind, f.manifest)
}

// quick makes a client for tests: it is patient for fractions of a second only, and leaves no file behind.
func quick(t testing.TB, o ClientOptions) *Client {
	t.Helper()
	if o.Backoff == 0 {
		o.Backoff = time.Millisecond
	}
	if o.Stall == 0 {
		o.Stall = 30 * time.Second
	}
	o.Temp = t.TempDir()
	if o.Policy == nil {
		o.Policy = policy.Read
	}
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(o.Temp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return c
}

// read is the catalog in an image.
func read(ctx context.Context, c *Client, name string) (string, error) {
	img, err := c.Image(ctx, name, v1.Platform{})
	if err != nil {
		return "", err
	}
	defer img.Close()
	tree, err := img.Extract(ctx, []string{"configs"}, ExtractOptions{Temp: c.o.Temp})
	if err != nil {
		return "", err
	}
	defer tree.Close()
	text, err := fs.ReadFile(tree, "configs/a/catalog.yaml")
	return string(text), err
}

// on answers the requests whose path contains a text, times times; 0 is always.
func on(path string, times int32, answer http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	var n atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, path) || times > 0 && n.Add(1) > times {
			return false
		}
		answer(w, r)
		return true
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func reset(w http.ResponseWriter, _ *http.Request) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		c.Close()
	}
}

// large is an image whose catalog layer has about as many bytes, incompressible.
func large(t testing.TB, size int) (*fixture, string) {
	t.Helper()
	seed := []byte("seed")
	var text bytes.Buffer
	for text.Len() < size {
		sum := digest.FromBytes(seed)
		seed = []byte(sum)
		text.WriteString(sum.Encoded())
	}
	return newFixture(t, plainLayer(tarOf(t, entry{name: "configs/a/catalog.yaml", body: text.String()}))),
		text.String()
}

func layerOf(t testing.TB, f *fixture, n int) v1.Descriptor {
	t.Helper()
	var m v1.Manifest
	if err := json.Unmarshal(f.manifest, &m); err != nil {
		t.Fatal(err)
	}
	return m.Layers[n]
}

func TestRemoteRecoversFromTransientFailures(t *testing.T) {
	faults := map[string]http.HandlerFunc{
		"408": status(408), "429": status(429), "500": status(500), "502": status(502), "503": status(503),
		"504": status(504), "reset": reset,
		"half a body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write([]byte("x"))
		},
	}
	for name, fault := range faults {
		for _, at := range []string{"/manifests/", "/blobs/", "/v2/"} {
			if name == "half a body" && at == "/blobs/" {
				continue // a blob of another length than announced is refused at once
			}
			t.Run(name+" "+at, func(t *testing.T) {
				reg := testregistry.New(t)
				put(reg, "a/b", "v1", simple(t, "x"))
				reg.Interfere(on(at, 2, fault))
				var retries atomic.Int32
				c := quick(t, ClientOptions{Options: registries.Options{Registry: insecure(), Retries: 3, Events: func(e store.Event) {
					if e.Kind == store.EventRetry {
						retries.Add(1)
					}
				}}})
				got, err := read(t.Context(), c, reg.Host()+"/a/b:v1")
				if err != nil || got != "x" {
					t.Fatalf("got %q, %v", got, err)
				}
				if at != "/v2/" && retries.Load() == 0 {
					t.Error("no retry was reported")
				}
			})
		}
	}
}

func TestRemoteGivesUp(t *testing.T) {
	busy := func(after string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(429)
		}
	}
	cases := map[string]struct {
		at       string
		answer   http.HandlerFunc
		requests int
		text     string
	}{
		"500":               {"/manifests/", status(500), 3, "500"},
		"429":               {"/manifests/", busy("0"), 3, "429"},
		"429 negative":      {"/manifests/", busy("-10"), 3, "429"},
		"404":               {"/manifests/", status(404), 1, "404"},
		"403":               {"/manifests/", status(403), 1, "403"},
		"401":               {"/manifests/", status(401), 2, "named no way to show them"},
		"501":               {"/manifests/", status(501), 1, "501"},
		"reset":             {"/manifests/", reset, 3, "EOF"},
		"blob is not there": {"/blobs/", status(404), 1, "404"},
		"blob 503":          {"/blobs/", status(503), 3, "503"},
		"page": {"/manifests/",
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>sign in</html>") }, 1,
			"not a registry manifest"},
		"redirects to itself": {"/manifests/", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, 11, "redirects"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			put(reg, "a/b", "v1", simple(t, "x"))
			reg.Interfere(on(c.at, 0, c.answer))
			client := quick(t, ClientOptions{Options: registries.Options{Registry: insecure(), Retries: 2}})
			_, err := read(t.Context(), client, reg.Host()+"/a/b:v1")
			if !errors.Is(err, fault.ErrRegistry) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
			n := 0
			for _, r := range reg.Requests() {
				if strings.Contains(r, c.at) {
					n++
				}
			}
			// Go itself asks once more where a connection that was kept has been closed.
			if n != c.requests && (name != "reset" || n > 2*c.requests) {
				t.Errorf("%d requests instead of %d", n, c.requests)
			}
		})
	}
}

// The whole takes no longer than it may, whatever a registry asks for.
func TestTimeoutOfReading(t *testing.T) {
	reg := testregistry.New(t)
	f, _ := large(t, 1<<20)
	put(reg, "a/b", "v1", f)
	wait := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(429)
	}
	drip := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(layerOf(t, f, 0).Size))
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	refusing := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		drip(w, r)
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		at     string
		o      ClientOptions
		text   string
	}{
		"retry after the end": {wait, "/manifests/", ClientOptions{Timeout: 300 * time.Millisecond},
			"not done within 300ms"},
		"slow headers": {hang, "/manifests/", ClientOptions{Options: registries.Options{Stall: 200 * time.Millisecond}},
			"nothing has moved for 200ms"},
		"slow body": {drip, layerOf(t, f, 0).Digest.String(), ClientOptions{Options: registries.Options{Stall: 300 * time.Millisecond}},
			"nothing has moved for"},
		"slow manifest": {drip, "/manifests/", ClientOptions{Options: registries.Options{Stall: 300 * time.Millisecond}},
			"nothing has moved for"},
		"slow refusal": {refusing, "/manifests/", ClientOptions{Options: registries.Options{Stall: 300 * time.Millisecond}}, "status 403"},
		"slow body, timeout": {drip, layerOf(t, f, 0).Digest.String(), ClientOptions{Timeout: 300 * time.Millisecond},
			"not done within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			reg.Interfere(on(c.at, 0, c.answer))
			c.o.Registry, c.o.Retries = insecure(), 1
			_, err := read(t.Context(), quick(t, c.o), reg.Host()+"/a/b:v1")
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		reg.Interfere(on(layerOf(t, f, 0).Digest.String(), 0, drip))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := read(ctx, quick(t, ClientOptions{Options: registries.Options{Registry: insecure(), Retries: 5}}),
			reg.Host()+"/a/b:v1"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// cut answers a request of a blob with a part of it, and requests of ranges as ranged says.
func cut(content []byte, at int, ranged func(w http.ResponseWriter, from int)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var from int
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
			ranged(w, from)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(content[:at])
	}
}

func TestBrokenBodiesAreTakenUpAgain(t *testing.T) {
	f, text := large(t, 300<<10)
	layer := layerOf(t, f, 0).Digest
	content := f.blobs[layer]
	part := func(w http.ResponseWriter, rangeText string, body []byte) {
		w.Header().Set("Content-Range", rangeText)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(body)
	}
	all := len(content)
	good := func(w http.ResponseWriter, from int) {
		part(w, fmt.Sprintf("bytes %d-%d/%d", from, all-1, all), content[from:])
	}
	whole := func(w http.ResponseWriter, _ int) { _, _ = w.Write(content) }
	cases := map[string]struct {
		ranged func(w http.ResponseWriter, from int)
		class  error
		text   string
	}{
		"with ranges": {good, nil, ""},
		"total unknown": {func(w http.ResponseWriter, from int) {
			part(w, fmt.Sprintf("bytes %d-%d/*", from, all-1), content[from:])
		}, nil, ""},
		"without ranges": {whole, nil, ""},
		"other bytes": {func(w http.ResponseWriter, _ int) { _, _ = w.Write(bytes.Repeat([]byte("x"), all)) },
			fault.ErrIntegrity, "digest mismatch"},
		"part of others": {func(w http.ResponseWriter, from int) {
			part(w, fmt.Sprintf("bytes %d-%d/%d", from, all-1, all), bytes.Repeat([]byte("x"), all-from))
		}, fault.ErrIntegrity, "digest mismatch"},
		"wrong offset": {func(w http.ResponseWriter, from int) {
			part(w, fmt.Sprintf("bytes %d-%d/%d", from-1, all-1, all), content[from-1:])
		}, fault.ErrRegistry, "Content-Range"},
		"wrong total": {func(w http.ResponseWriter, from int) {
			part(w, fmt.Sprintf("bytes %d-%d/%d", from, all-1, all+5), content[from:])
		}, fault.ErrRegistry, "Content-Range"},
		"no range": {func(w http.ResponseWriter, from int) { part(w, "", content[from:]) }, fault.ErrRegistry,
			"Content-Range"},
		"nonsense": {func(w http.ResponseWriter, from int) { part(w, "bytes x", content[from:]) }, fault.ErrRegistry,
			"Content-Range"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			put(reg, "a/b", "v1", f)
			reg.Interfere(on(layer.String(), 0, cut(content, all/2, c.ranged)))
			got, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: insecure(), Retries: 2}}),
				reg.Host()+"/a/b:v1")
			if !errors.Is(err, c.class) || c.class == nil && (err != nil || got != text) ||
				!strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
			if n := reg.Count("GET /v2/a/b/blobs/" + layer.String()); n > 4 {
				t.Errorf("%d requests", n)
			}
		})
	}
	t.Run("cut for ever", func(t *testing.T) {
		reg := testregistry.New(t)
		put(reg, "a/b", "v1", f)
		reg.Interfere(on(layer.String(), 0, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(all))
			_, _ = w.Write(content[:1000])
		}))
		_, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: insecure(), Retries: 3}}), reg.Host()+"/a/b:v1")
		if !errors.Is(err, fault.ErrRegistry) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRemoteContentIsChecked(t *testing.T) {
	f := simple(t, "x")
	layer := layerOf(t, f, 1)
	flip := func(b []byte) []byte {
		b = bytes.Clone(b)
		b[len(b)-1] ^= 1
		return b
	}
	write := func(b []byte, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", f.kind)
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			_, _ = w.Write(b)
		}
	}
	top := digest.FromBytes(f.manifest)
	other := digest.FromString("other").String()
	cases := map[string]struct {
		name, at string
		answer   http.HandlerFunc
		class    error
		text     string
	}{
		"blob-bitflip": {":v1", layer.Digest.String(), write(flip(f.blobs[layer.Digest])),
			fault.ErrIntegrity, "digest mismatch"},
		"blob-longer": {":v1", layer.Digest.String(),
			write(append(bytes.Clone(f.blobs[layer.Digest]), 0)), fault.ErrIntegrity, "size"},
		"blob-shorter": {":v1", layer.Digest.String(), write(f.blobs[layer.Digest][:50]),
			fault.ErrIntegrity, "size"},
		"manifest-bitflip-by-digest": {"@" + top.String(), "/manifests/", write(append(bytes.Clone(f.manifest), ' ')),
			fault.ErrIntegrity, "digest mismatch"},
		"content-digest-lie": {":v1", "/manifests/", write(f.manifest, "Docker-Content-Digest", other),
			fault.ErrIntegrity, "Docker-Content-Digest"},
		"content-digest-nonsense": {":v1", "/manifests/", write(f.manifest, "Docker-Content-Digest", "x\ty"),
			fault.ErrIntegrity, "Docker-Content-Digest"},
		"manifest-5MiB": {":v1", "/manifests/", write(bytes.Repeat([]byte(" "), 5<<20)), fault.ErrLimit,
			"4194304"},
		"no-content-type": {":v1", "/manifests/", write([]byte(`{"layers":[]}`), "Content-Type", ""),
			fault.ErrInvalid, "media type"},
		"page": {":v1", "/manifests/",
			write([]byte("welcome"), "Content-Type", "text/html; charset=utf-8"), fault.ErrRegistry,
			"not a registry manifest"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			put(reg, "a/b", "v1", f)
			reg.Interfere(on(c.at, 0, c.answer))
			_, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: insecure(), Retries: 3}}),
				reg.Host()+"/a/b"+c.name)
			if !errors.Is(err, c.class) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("got %v, want %v and %q", err, c.class, c.text)
			}
			if n := reg.Count("GET /v2/a/b/manifests/"); n != 1 {
				t.Errorf("%d requests of the manifest", n)
			}
		})
	}
}

// Everything after the tag is got by digest, also where the tag moves in between.
func TestTagIsResolvedOnce(t *testing.T) {
	reg := testregistry.New(t)
	first, second := simple(t, "first"), simple(t, "second")
	put(reg, "a/b", "v1", second)
	want := put(reg, "a/b", "v1", first)
	amd64 := v1.Descriptor{MediaType: first.kind, Digest: want, Size: int64(len(first.manifest)),
		Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}
	index := mustJSON(t, v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{amd64}})
	top := reg.AddManifest("a/b", "multi", v1.MediaTypeImageIndex, index)
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/manifests/v1") {
			put(reg, "a/b", "v1", second)
			w.Header().Set("Content-Type", first.kind)
			_, _ = w.Write(first.manifest)
			return true
		}
		return false
	})
	c := quick(t, ClientOptions{Options: registries.Options{Registry: insecure()}})
	img, err := c.Image(t.Context(), "docker://"+reg.Host()+"/a/b:v1", v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	tree, err := img.Extract(t.Context(), []string{"/configs"}, ExtractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if got := content(t, tree)["configs/a/catalog.yaml"]; got != "first" ||
		img.Reference() != reg.Host()+"/a/b@"+want.String() {
		t.Errorf("got %q, %s", got, img.Reference())
	}
	if n := reg.Count("GET /v2/a/b/manifests/v1"); n != 1 {
		t.Errorf("the tag was asked for %d times", n)
	}
	multi, err := c.Image(t.Context(), reg.Host()+"/a/b:multi", v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	defer multi.Close()
	if multi.Top != top || multi.Digest != want || multi.MediaType != first.kind ||
		multi.Reference() != reg.Host()+"/a/b@"+top.String() {
		t.Errorf("got %+v", multi)
	}
	arm := quick(t, ClientOptions{Options: registries.Options{Registry: insecure()}, Platform: v1.Platform{OS: "linux", Architecture: "arm64"}})
	if _, err := arm.Image(t.Context(), reg.Host()+"/a/b:multi", v1.Platform{}); !errors.Is(err, fault.ErrInvalid) ||
		!strings.Contains(err.Error(), "linux/amd64") {
		t.Errorf("got %v", err)
	}
}

// A registry that names other places for content is believed neither with layers nor with credentials.
func TestForeignLayersAreNotFetched(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	reg := testregistry.New(t)
	for _, u := range []string{other.URL, "file:///etc/passwd"} {
		put(reg, "a/b", "v1", simple(t, "x").change(t, func(m *v1.Manifest) { m.Layers[0].URLs = []string{u} }))
		_, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: insecure()}}), reg.Host()+"/a/b:v1")
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "foreign layer") {
			t.Errorf("%s: got %v", u, err)
		}
	}
	if asked.Load() > 0 || reg.Count("GET /v2/a/b/blobs") > 0 {
		t.Error("something was fetched")
	}
}

func TestCacheAndLockMakeARunRepeatable(t *testing.T) {
	reg := testregistry.New(t)
	first := simple(t, "first")
	top := put(reg, "a/b", "v1", first)
	dir := t.TempDir()
	name := reg.Host() + "/a/b:v1"
	run := func(name string) (string, *lockfile.Lock, error) {
		cache, err := blobcache.Open(filepath.Join(dir, "cache"), blobcache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lock, err := lockfile.Open(t.Context(), filepath.Join(dir, "lock.json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: insecure(), Cache: cache}, Lock: lock}), name)
		return got, lock, errors.Join(err, lock.Save())
	}
	got, lock, err := run(name)
	if err != nil || got != "first" {
		t.Fatalf("got %q, %v", got, err)
	}
	if d, ok := lock.Digest(name); !ok || d != top {
		t.Errorf("locked: %s", d)
	}
	put(reg, "a/b", "v1", simple(t, "second"))
	reg.Forget()
	if got, _, err := run(name); err != nil || got != "first" {
		t.Errorf("got %q, %v", got, err)
	}
	if n := reg.Requests(); len(n) > 0 {
		t.Errorf("asked for %v although everything is in the cache", n)
	}
	if _, _, err := run("docker://" + reg.Host() + "/a/b@" + digest.FromString("x").String()); err == nil {
		t.Error("an unknown digest was found")
	}
	layout := filepath.Join(dir, "layout")
	mustCopy(t, first, "oci:"+layout+":v1")
	if _, _, err := run("oci:" + layout + ":v1"); err != nil {
		t.Fatal(err)
	}
	mustCopy(t, simple(t, "third"), "oci:"+layout+":v1")
	if _, _, err := run("oci:" + layout + ":v1"); !errors.Is(err, fault.ErrIntegrity) {
		t.Errorf("another image in the layout: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	reg := testregistry.New(t)
	for n := range 20 {
		put(reg, fmt.Sprintf("a/b%d", n%5), fmt.Sprintf("v%d", n), simple(t, fmt.Sprint(n)))
	}
	c := quick(t, ClientOptions{Options: registries.Options{Registry: insecure(), Retries: 1}})
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			if got, err := read(t.Context(), c, fmt.Sprintf("%s/a/b%d:v%d", reg.Host(), n%5, n)); err != nil ||
				got != fmt.Sprint(n) {
				t.Errorf("%d: got %q, %v", n, got, err)
			}
		})
	}
	wg.Wait()
	// Whether it speaks TLS is found out once, also where all begin at the same time.
	pings := 0
	for _, r := range reg.Requests() {
		if r == "GET /v2/" {
			pings++
		}
	}
	if pings != 1 {
		t.Errorf("the registry was asked %d times whether it is there", pings)
	}
}

func TestWarningsAreShownOnceAndQuoted(t *testing.T) {
	reg := testregistry.New(t)
	put(reg, "a/b", "v1", simple(t, "x"))
	reg.Interfere(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Warning", "299 - \"deprecated \u009b31m\"")
		return false
	})
	var warned []string
	c := quick(t, ClientOptions{Options: registries.Options{Registry: insecure(), Events: func(e store.Event) {
		if e.Kind == store.EventWarning {
			warned = append(warned, e.Err.Error())
		}
	}}})
	if _, err := read(t.Context(), c, reg.Host()+"/a/b:v1"); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "deprecated") || strings.ContainsAny(warned[0], "\u009b\x1b") {
		t.Errorf("warned of %q", warned)
	}
}

// What the library reads through the client is got with its retries and checked like everything else.
func TestReferencesOfAClient(t *testing.T) {
	reg := testregistry.New(t)
	f := simple(t, "x")
	put(reg, "a/b", "v1", f)
	layer := layerOf(t, f, 1).Digest
	layout := filepath.Join(t.TempDir(), "layout")
	mustCopy(t, f, "oci:"+layout)
	reject := filepath.Join(t.TempDir(), "policy.json")
	write(t, reject, `{"default":[{"type":"reject"}]}`)
	into := func(t *testing.T, c *Client, name string) error {
		src, err := c.Open(t.Context(), name)
		if err != nil {
			return err
		}
		defer src.Close()
		_, err = Copy(t.Context(), src, src.Top, dests(t, "oci:"+filepath.Join(t.TempDir(), "out")),
			CopyOptions{})
		return err
	}
	name := reg.Host() + "/a/b:v1"
	reg.Interfere(on("/blobs/", 2, status(500)))
	if err := into(t, quick(t, ClientOptions{Options: registries.Options{Registry: insecure(), Retries: 3}}), name); err != nil {
		t.Error(err)
	}
	reg.Interfere(on(layer.String(), 0, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), len(f.blobs[layer])))
	}))
	if err := into(t, quick(t, ClientOptions{Options: registries.Options{Registry: insecure()}}), name); !errors.Is(err, fault.ErrIntegrity) {
		t.Errorf("other bytes: %v", err)
	}
	if err := into(t, quick(t, ClientOptions{}), "oci:"+layout); err != nil {
		t.Error(err)
	}
	if err := into(t, quick(t, ClientOptions{PolicyFile: reject}), "oci:"+layout); !errors.Is(err, trust.ErrPolicy) {
		t.Errorf("got %v", err)
	}
	if _, err := quick(t, ClientOptions{}).Open(t.Context(), "Not A Name"); err == nil {
		t.Error("no error")
	}
}

func TestCachedBlobsAreToldOf(t *testing.T) {
	reg := testregistry.New(t)
	put(reg, "a/b", "v1", simple(t, "x"))
	cache, err := blobcache.Open(filepath.Join(t.TempDir(), "cache"), blobcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	for run, want := range []map[store.EventKind]int{{store.EventBlobStart: 3, store.EventBlobDone: 3},
		{store.EventBlobReused: 3}} {
		seen := map[store.EventKind]int{}
		c := quick(t,
			ClientOptions{Options: registries.Options{Registry: insecure(), Cache: cache, Events: func(e store.Event) { seen[e.Kind]++ }}})
		if _, err := read(t.Context(), c, reg.Host()+"/a/b:v1"); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("run %d: %v instead of %v", run, seen, want)
		}
	}
}

// What is no registries.conf is refused at once, and as input.
func TestRegistriesConfThatIsNone(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	huge := write("huge", "")
	if err := os.Truncate(huge, 1<<40); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	for path, want := range map[string]string{
		"/dev/zero":          "16777216",
		dir:                  "is a directory, expected a file",
		huge:                 "16777216",
		write("text", "{no"): "invalid",
	} {
		c, err := NewClient(ClientOptions{Policy: policy.Read,
			Options: registries.Options{Temp: t.TempDir(), Registry: registries.Config{RegistriesConf: path}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Image(t.Context(), "registry.example.com/a:v1", v1.Platform{})
		if err == nil || !strings.Contains(err.Error(), want) || want == "invalid" && !errors.Is(err,
			fault.ErrInvalid) {
			t.Errorf("%s: %v", path, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
