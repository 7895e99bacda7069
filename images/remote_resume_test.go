package images_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// addLarge stores an image with one layer of random bytes.
func addLarge(t *testing.T, r *testregistry.Registry, name string, size int) (layer digest.Digest) {
	t.Helper()
	content := make([]byte, size)
	if _, err := io.ReadFull(rand.NewChaCha8([32]byte{1}), content); err != nil {
		t.Fatal(err)
	}
	config := []byte(`{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[]}}`)
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: r.AddBlob(config), Size: int64(len(config))},
		Layers: []v1.Descriptor{{MediaType: v1.MediaTypeImageLayerGzip, Digest: r.AddBlob(content),
			Size: int64(size)}}}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	r.AddManifest(name, "v1", v1.MediaTypeImageManifest, text)
	return m.Layers[0].Digest
}

// counted counts the bytes of a body, and breaks the connection after some of them.
type counted struct {
	io.ReadCloser
	n     *atomic.Int64
	until int64 // negative for no end
}

func (c *counted) Read(p []byte) (int, error) {
	if c.until >= 0 && c.n.Load() >= c.until {
		return 0, io.ErrUnexpectedEOF
	}
	if c.until >= 0 {
		p = p[:min(int64(len(p)), c.until-c.n.Load())]
	}
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// largeLayer is the size of the layer in the tests of interruptions.
const largeLayer = 200 << 20

// The connection breaks after 90 % of a large layer: the rest is sent, by the same process or by the next one.
func TestInterruptedUploadGoesOn(t *testing.T) {
	from := testregistry.New(t)
	from.SetRules(testregistry.Rules{Ranges: true})
	large := addLarge(t, from, "app", largeLayer)
	for _, test := range []struct {
		name    string
		retries int
		gone    bool // the session is gone when the next process comes
	}{
		{"the same process", 2, false},
		{"the next process", 0, false},
		{"the next process, without the session", 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			to := testregistry.New(t)
			to.Separate(false)
			var sent, read atomic.Int64
			var broken atomic.Bool
			to.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if test.gone && broken.Load() && q.Method == http.MethodGet && strings.Contains(q.URL.Path,
					"/uploads/") {
					w.WriteHeader(http.StatusNotFound)
					return true
				}
				if q.Method == http.MethodPatch {
					until := int64(-1)
					if broken.CompareAndSwap(false, true) {
						until = largeLayer * 9 / 10
					}
					q.Body = &counted{q.Body, &sent, until}
				}
				return false
			})
			from.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
				if strings.HasSuffix(q.URL.Path, large.String()) {
					var first int64
					_, _ = fmt.Sscanf(q.Header.Get("Range"), "bytes=%d-", &first) // 0 without a range
					read.Add(largeLayer - first)
				}
				return false
			})
			dir := t.TempDir()
			attempt := func() (store.Account, error) {
				uploads, err := registries.NewUploadStore(dir)
				if err != nil {
					t.Fatal(err)
				}
				remote := newRemote(t, registries.Options{Retries: test.retries, Backoff: time.Millisecond,
					Uploads: uploads})
				src := openForCopy(t, newSourceClient(t), "docker://"+from.Host()+"/app:v1")
				return store.CopyOne(t.Context(), src, src.Top, repositoryOf(t, remote, to.Host()+"/app"), "v1",
					store.CopyOptions{})
			}
			_, err := attempt()
			if test.retries == 0 {
				if err == nil {
					t.Fatal("nothing broke")
				}
				_, err = attempt()
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(to.Manifest("app", "v1"), from.Manifest("app", "v1")) {
				t.Error("another manifest")
			}
			if most := int64(largeLayer) * 13 / 10; !test.gone && (sent.Load() >= most) {
				t.Errorf("%d bytes sent", sent.Load())
			}
			// The rest is asked for at the source as well; what was on its way when the connection broke is not
			// counted.
			if most := int64(largeLayer) * 13 / 10; !test.gone && read.Load() >= most {
				t.Errorf("%d bytes asked for", read.Load())
			}
		})
	}
}

// A throttle of one request to each host is no deadlock where source and destination are one registry.
func TestThrottledCopyInOneRegistry(t *testing.T) {
	r := testregistry.New(t)
	r.Separate(false)
	addLarge(t, r, "app", 1<<20)
	throttle := registries.NewThrottle(1, 0)
	c, err := images.NewClient(images.ClientOptions{Policy: policy.Read,
		Options: registries.Options{Registry: plainRegistry(), Temp: t.TempDir(), Throttle: throttle}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	remote := newRemote(t, registries.Options{Throttle: throttle})
	src := openForCopy(t, c, "docker://"+r.Host()+"/app:v1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// An answer that has been read is no request any more, also before it is closed.
	parts, err := store.PartsOf(r.Manifest("app", "v1"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := src.Blob(ctx, parts.Blobs[1], 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Fatal(err)
	}
	_, err = store.CopyOne(ctx, src, src.Top, repositoryOf(t, remote, r.Host()+"/copy"), "v1",
		store.CopyOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// The bandwidth holds for what is received and sent together.
func TestBandwidth(t *testing.T) {
	from := testregistry.New(t)
	const size, rate = 1 << 20, 8 << 20
	addLarge(t, from, "app", size)
	throttle := registries.NewThrottle(0, rate)
	c, err := images.NewClient(images.ClientOptions{Policy: policy.Read,
		Options: registries.Options{Registry: plainRegistry(), Temp: t.TempDir(), Throttle: throttle}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	src := openForCopy(t, c, "docker://"+from.Host()+"/app:v1")
	for name, write := range map[string]func(to string) error{
		"repository": func(to string) error {
			dest := repositoryOf(t, newRemote(t, registries.Options{Throttle: throttle}), to)
			_, err := store.CopyOne(t.Context(), src, src.Top, dest, "v1", store.CopyOptions{})
			return err
		},
		"copy": func(to string) error {
			_, err := images.Copy(t.Context(), src, src.Top,
				[]transport.Destination{{Transport: transport.Docker, Name: to + ":v1"}},
				images.CopyOptions{Options: registries.Options{Registry: plainRegistry(), Temp: t.TempDir(), Throttle: throttle}})
			return err
		},
	} {
		to := testregistry.New(t).Host() + "/app"
		begun := time.Now()
		if err := write(to); err != nil {
			t.Fatal(name, err)
		}
		if took, least := time.Since(begun), 2*time.Second*size/rate*8/10; took < least {
			t.Errorf("%s: %v, and not %v", name, took, least)
		}
	}
}

// A source that sends another content under a digest is an error of the source, and the destination gets nothing.
func TestCopyImageWrongDigest(t *testing.T) {
	from, to := testregistry.New(t), testregistry.New(t)
	large := addLarge(t, from, "app", 1<<20)
	from.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.HasSuffix(q.URL.Path, large.String()) {
			return false
		}
		_, _ = w.Write(make([]byte, 1<<20))
		return true
	})
	src := openForCopy(t, newSourceClient(t), "docker://"+from.Host()+"/app:v1")
	dest := repositoryOf(t, newRemote(t, registries.Options{}), to.Host()+"/app")
	_, err := store.CopyOne(t.Context(), src, src.Top, dest, "v1", store.CopyOptions{})
	var source *store.SourceError
	if !errors.Is(err, images.ErrIntegrity) || !errors.As(err, &source) {
		t.Error(err)
	}
	if len(to.Digests("app")) != 0 || to.Count("PUT /v2/app/blobs/") > 1 {
		t.Errorf("%q", to.Requests())
	}
}
