package registry

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testregistry"
)

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
