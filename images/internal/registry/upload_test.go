package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// The upload of a blob that cannot be opened at its source is not repeated, and cancelled: whatever the source answers,
// and whatever the session was begun for.
func TestUploadOfWhatCannotBeOpened(t *testing.T) {
	for name, gone := range map[string]error{
		"no file": fs.ErrNotExist, "404": &StatusError{Status: http.StatusNotFound},
		"405": &StatusError{Status: http.StatusMethodNotAllowed}, "416": &StatusError{Status: 416},
	} {
		for _, size := range []int64{1000, 1 << 20} {
			for _, begun := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", size, " ", begun), func(t *testing.T) {
					r := testregistry.New(t)
					w := writerTo(t, r, "acme/app")
					w.repo.host.onePost.Store(onePostRefused) // which opens no session
					if begun {
						if err := w.Begin(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					opened := 0
					open := func(context.Context, int64) (io.ReadCloser, error) {
						opened++
						return nil, fmt.Errorf("source: %w", gone)
					}
					d := v1.Descriptor{Digest: digest.FromString(name), Size: size}
					if _, err := w.WriteBlob(t.Context(), d, store.Content{Open: open}); !errors.Is(err, gone) || opened != 1 {
						t.Errorf("opened %d times: %v", opened, err)
					}
					if err := w.Discard(); err != nil {
						t.Error(err)
					}
					if begun, ended := r.Count("POST"), r.Count("DELETE"); begun == 0 || begun != ended {
						t.Errorf("%d uploads are begun, and %d cancelled", begun, ended)
					}
					if err := store.WriteBytes(t.Context(), w, v1.Descriptor{Digest: digest.FromString("x"), Size: 1},
						[]byte("x")); err != nil {
						t.Errorf("the next blob: %v", err)
					}
				})
			}
		}
	}
}

// A manifest whose blobs a registry does not see is written three times, and so long that the nodes of a registry can
// show one another's blobs.
func TestManifestWithUnseenBlobs(t *testing.T) {
	r := testregistry.New(t)
	var first atomic.Pointer[time.Time]
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method != http.MethodPut || !strings.Contains(q.URL.Path, "/manifests/") {
			return false
		}
		now := time.Now()
		first.CompareAndSwap(nil, &now)
		if strings.HasSuffix(q.URL.Path, "/seen") && now.Sub(*first.Load()) > 500*time.Millisecond {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN"}]}`)
		return true
	})
	w := writerTo(t, r, "acme/app")
	text := []byte(`{"schemaVersion":2}`)
	write := func(tag string) error {
		return w.WriteManifest(t.Context(), text, v1.MediaTypeImageManifest, store.WriteOptions{Tag: tag})
	}
	if err := write("seen"); err != nil {
		t.Error(err)
	}
	if err := write("unseen"); !errors.Is(err, store.ErrIncomplete) || r.Count("PUT /v2/acme/app/manifests/unseen") != 3 {
		t.Errorf("%v: %q", err, r.Requests())
	}
}

// A bug in one writer of a blob does not keep the others waiting.
func TestPanicLetsOthersWriteTheBlob(t *testing.T) {
	r := testregistry.New(t)
	w := writerTo(t, r, "acme/app")
	content := []byte(strings.Repeat("x", 1000))
	d := v1.Descriptor{Digest: digest.FromBytes(content), Size: int64(len(content))}
	err := guard.Call(func() error {
		_, err := w.WriteBlob(t.Context(), d, store.Content{Open: func(context.Context, int64) (io.ReadCloser, error) { panic("a bug") }})
		return err
	})
	if fault.ClassOf(err) != fault.Bug || w.repo.host.known.writing.Len() != 0 {
		t.Fatalf("%v, %d blobs are being written", err, w.repo.host.known.writing.Len())
	}
	if err := store.WriteBytes(t.Context(), w, d, content); err != nil {
		t.Error(err)
	}
}
