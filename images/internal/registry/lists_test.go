package registry_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Tags, repositories and manifests are listed and deleted.
func TestRemoteListsAndDeletes(t *testing.T) {
	r := testregistry.New(t)
	r.SetRules(testregistry.Rules{Page: 2})
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprintf("v%d", i))
		r.AddImage(t, fmt.Sprintf("r%d", i), "v1", simple("x"))
		r.AddImage(t, "app", want[i], simple(want[i]))
	}
	remote := newRemote(t)
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
	if err := app.Delete(t.Context(), is.Digest); !errors.Is(err, registries.ErrNoDelete) {
		t.Error(err)
	}
	if _, err := remote.Repositories(t.Context(), r.Host()); !errors.Is(err, registries.ErrNoCatalog) {
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
			app := repositoryOf(t, newRemote(t), r.Host()+"/app")
			if tags, _, err := app.Tags(t.Context(), 0); err == nil {
				t.Errorf("%q", tags)
			}
		})
	}
}
