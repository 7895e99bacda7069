package images_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testregistry"
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
		{"a blob that is too large", testregistry.Rules{MaxBlob: 512 << 10}, string(images.RefusedSize),
			fmt.Sprintf("%s with 1048576 bytes", large)},
		{"a path of too many components", testregistry.Rules{MaxPath: 2}, string(images.RefusedName), "/a/b/c"},
		{"a repository that must exist", testregistry.Rules{Existing: []string{"other"}},
			string(images.RefusedRepository), "/a/b/c does not exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			to := testregistry.New(t)
			to.SetRules(test.rules)
			remote := newRemote(t, images.RemoteOptions{Retries: 3, Backoff: time.Millisecond})
			_, err := store.CopyOne(t.Context(), src, src.Top, repositoryOf(t, remote, to.Host()+"/a/b/c"), "v1",
				store.CopyOptions{})
			var refused *images.RefusedError
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

// Tags, repositories and manifests are listed and deleted.
func TestRemoteListsAndDeletes(t *testing.T) {
	r := testregistry.New(t)
	r.SetRules(testregistry.Rules{Page: 2})
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprintf("v%d", i))
		r.AddImage(t, fmt.Sprintf("r%d", i), "v1", testregistry.Image{Layers: layer("x")})
		r.AddImage(t, "app", want[i], testregistry.Image{Layers: layer(want[i])})
	}
	remote := newRemote(t, images.RemoteOptions{})
	app := repositoryOf(t, remote, r.Host()+"/app")
	tags, _, err := app.Tags(t.Context(), 0)
	if err != nil || !slices.Equal(tags, want) || r.Count("GET /v2/app/tags/list") != 4 {
		t.Errorf("%q, %v, %q", tags, err, r.Requests())
	}
	all, err := remote.Repositories(t.Context(), r.Host())
	if err != nil || len(all) != 8 || all[0] != "app" || all[7] != "r6" {
		t.Errorf("%q, %v", all, err)
	}
	if _, _, err := repositoryOf(t, remote, r.Host()+"/none").Tags(t.Context(), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	is, err := app.Head(t.Context(), "v3")
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Delete(t.Context(), is.Digest); err != nil {
		t.Error(err)
	}
	if err := app.Delete(t.Context(), is.Digest); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if left := r.Tags("app"); len(left) != 6 || slices.Contains(left, "v3") {
		t.Errorf("%q", left)
	}
	r.SetRules(testregistry.Rules{NoDelete: true, NoCatalog: true, NoHead: true})
	if is, err = app.Head(t.Context(), "v4"); err != nil || is.MediaType != v1.MediaTypeImageManifest {
		t.Errorf("%+v, %v", is, err)
	}
	if err := app.Delete(t.Context(), is.Digest); !errors.Is(err, images.ErrNoDelete) {
		t.Error(err)
	}
	if _, err := remote.Repositories(t.Context(), r.Host()); !errors.Is(err, images.ErrNoCatalog) {
		t.Error(err)
	}
	r.SetRules(testregistry.Rules{NoDigest: true})
	if again, err := app.Head(t.Context(), "v4"); err != nil || again.Digest != is.Digest {
		t.Errorf("%+v, %v", again, err)
	}
}

// Lists are from outside: pages that go round, links to other servers and answers that are none are errors.
func TestHostileLists(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"a page twice": func(w http.ResponseWriter) {
			w.Header().Set("Link", `</v2/app/tags/list?n=1000>; rel="next"`)
			fmt.Fprint(w, `{"tags":["a"]}`)
		},
		"another server": func(w http.ResponseWriter) {
			w.Header().Set("Link", `<http://example.com/v2/app/tags/list?n=1>; rel="next"`)
			fmt.Fprint(w, `{"tags":["a"]}`)
		},
		"no list":   func(w http.ResponseWriter) { fmt.Fprint(w, `{"tags":{"a":1}}`) },
		"no JSON":   func(w http.ResponseWriter) { fmt.Fprint(w, `<html>`) },
		"no member": func(w http.ResponseWriter) { fmt.Fprint(w, `{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			r := testregistry.New(t)
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if !strings.HasSuffix(q.URL.Path, "/tags/list") {
					return false
				}
				answer(w)
				return true
			})
			app := repositoryOf(t, newRemote(t, images.RemoteOptions{}), r.Host()+"/app")
			if tags, _, err := app.Tags(t.Context(), 0); err == nil {
				t.Errorf("%q", tags)
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
	dest := repositoryOf(t, newRemote(t, images.RemoteOptions{}), to.Host()+"/app")
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
