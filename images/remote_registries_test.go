package images_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Registries that differ from most give errors that say in what.
func TestRegistriesThatRefuse(t *testing.T) {
	from := testregistry.New(t)
	large := addLarge(t, from, "app", 1<<20)
	src := openForCopy(t, newSourceClient(t), "docker://"+from.Host()+"/app:v1")
	for _, test := range []struct {
		name  string
		rules testregistry.Rules
		why   string
		says  string
	}{
		{"a blob that is too large", testregistry.Rules{MaxBlob: 512 << 10}, string(registries.RefusedSize),
			fmt.Sprintf("%s with 1048576 bytes", large)},
		{"a path of too many components", testregistry.Rules{MaxPath: 2}, string(registries.RefusedName), "/a/b/c"},
		{"a repository that must exist", testregistry.Rules{Existing: []string{"other"}},
			string(registries.RefusedRepository), "/a/b/c does not exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			to := testregistry.New(t)
			to.SetRules(test.rules)
			remote := newRemote(t, registries.Options{Retries: 3, Backoff: time.Millisecond})
			_, err := store.CopyOne(t.Context(), src, src.Top, repositoryOf(t, remote, to.Host()+"/a/b/c"), "v1",
				store.CopyOptions{})
			var refused *registries.RefusedError
			if !errors.As(err, &refused) || string(refused.Why) != test.why || !strings.Contains(err.Error(),
				test.says) ||
				!errors.Is(err, images.ErrRegistry) {
				t.Errorf("%v", err)
			}
			if n := to.Count("PATCH"); n > 1 {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

// A manifest that is there without what it refers to is written again.
func TestCopyImageRepairs(t *testing.T) {
	from, to := testregistry.New(t), testregistry.New(t)
	to.Separate(false)
	from.AddIndex(t, "app", "v1", nil, []testregistry.Image{{Platform: amd64, Layers: layer("amd64")},
		{Platform: arm64, Layers: layer("arm64")}})
	src := openForCopy(t, newSourceClient(t), "docker://"+from.Host()+"/app:v1")
	// One of the images was copied before, and its blobs have been removed since then.
	first := entriesOf(t, src).Instances[0]
	dest := repositoryOf(t, newRemote(t, registries.Options{}), to.Host()+"/app")
	if _, err := store.CopyOne(t.Context(), src, first, dest, "", store.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	refused := false
	to.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method == http.MethodPut && strings.HasSuffix(q.URL.Path, "/manifests/v1") && !refused {
			refused = true
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN"}]}`)
			return true
		}
		return false
	})
	got, err := store.CopyOne(t.Context(), src, src.Top, dest, "v1", store.CopyOptions{})
	if err != nil || digest.FromBytes(to.Manifest("app", "v1")) != got.Digest {
		t.Errorf("%+v, %v", got, err)
	}
}

// Images of Docker's schema 1 are refused with a reason.
func TestCopyImageSchema1(t *testing.T) {
	from := testregistry.New(t)
	text := []byte(`{"schemaVersion":1,"name":"app","tag":"v1","fsLayers":[]}`)
	from.AddManifest("app", "v1", "application/vnd.docker.distribution.manifest.v1+prettyjws", text)
	_, err := newSourceClient(t).Open(t.Context(), "docker://"+from.Host()+"/app:v1")
	if !errors.Is(err, images.ErrInvalid) || !strings.Contains(err.Error(), "schema 1") {
		t.Error(err)
	}
}

func entriesOf(t *testing.T, src *images.Source) store.Image {
	t.Helper()
	image, err := src.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return image
}
