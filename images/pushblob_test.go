package images

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

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
				case r.Method == http.MethodGet && strings.Contains(r.URL.Path,
					"/uploads/") && c.says != nil && !lied.Swap(true):
					c.says(w, r)
					return true
				}
				return false
			})
			if _, err := pushTo(t, f, CopyOptions{Options: registries.Options{Retries: c.retries}}, reg.Host()+"/a/b:v1"); err != nil {
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
	if _, err := pushTo(t, f, CopyOptions{Options: registries.Options{Retries: 1}}, reg.Host()+"/a/b:v1"); err != nil {
		t.Fatal(err)
	}
	if n := reg.Count("PATCH "); n != 4 {
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
			if _, err := pushTo(t, newFixture(t), CopyOptions{Options: registries.Options{Retries: 1}}, reg.Host()+"/a/b:v1"); err != nil {
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
			if _, err := pushTo(t, f, CopyOptions{Options: registries.Options{Retries: 2}}, reg.Host()+"/a/b:v1"); !errors.Is(err,
				fault.ErrIntegrity) {
				t.Errorf("got %v", err)
			}
			if reg.Count("PUT /v2/a/b/manifests") > 0 || reg.Manifest("a/b", "v1") != nil {
				t.Error("a manifest was sent")
			}
		})
	}
}
