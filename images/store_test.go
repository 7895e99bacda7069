package images_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// The repository of a remote does what every place does: where blobs are mounted, where mounts are refused, and where
// connections break.
func TestRemoteStore(t *testing.T) {
	for name, set := range map[string]func(r *testregistry.Registry){
		"mounts":         func(r *testregistry.Registry) { r.Separate(true) },
		"refused mounts": func(r *testregistry.Registry) { r.Separate(false) },
		"interrupted": func(r *testregistry.Registry) {
			r.SetRules(testregistry.Rules{Ranges: true})
			var n atomic.Int64
			r.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
				if q.Method != http.MethodPatch && !strings.Contains(q.URL.Path, "/blobs/sha256:") || n.Add(1)%3 != 0 {
					return false
				}
				// A part of the body has arrived.
				_, _ = q.Body.Read(make([]byte, 100_000))
				panic(http.ErrAbortHandler)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.TestWriter(t, func(t testing.TB) storetest.Place {
				r := testregistry.New(t)
				set(r)
				p := storetest.Place{Writer: func(t testing.TB) store.Writer {
					remote, err := registries.New(t.Context(), registries.Options{Registry: plainRegistry(),
						Temp: t.TempDir(), Retries: 5, Backoff: time.Millisecond})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() {
						if err := remote.Close(); err != nil {
							t.Error(err)
						}
					})
					to, err := remote.Repository(r.Host() + "/acme/app")
					if err != nil {
						t.Fatal(err)
					}
					return to
				}}
				if name != "interrupted" {
					p.Vanish = func(_ testing.TB, d digest.Digest) { r.DeleteBlob(d) }
				}
				return p
			})
		})
	}
}
