package registry_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A remote asks for tokens with what it does, once for each repository, and for none of a repository where it is about
// the registry.
func TestRemoteTokens(t *testing.T) {
	reg := testregistry.New(t)
	d := reg.AddImage(t, "from", "v1", testregistry.Image{Layers: []map[string]string{{"a": "b"}}})
	b := &bearer{realm: "http://" + reg.Host() + "/token", good: 1000}
	var mu sync.Mutex
	asked := map[string]int{}
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			if _, secret, _ := r.BasicAuth(); secret != canary {
				t.Error("another secret")
			}
			mu.Lock()
			defer mu.Unlock()
			asked[r.URL.Query().Get("scope")]++
			b.issue(w)
			return true
		}
		return b.interfere(w, r)
	})
	o := insecure()
	o.AuthFile = authFileFor(t, reg.Host())
	src, err := quick(t, images.ClientOptions{Options: registries.Options{Registry: o}}).Open(t.Context(), "docker://"+reg.Host()+"/from:v1")
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	remote, err := registries.New(t.Context(), registries.Options{Registry: o, Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	if err := remote.Ping(t.Context(), reg.Host()); err != nil {
		t.Error(err)
	}
	for range 3 {
		to, err := remote.Repository(reg.Host() + "/to")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.CopyOne(t.Context(), src, src.Top, to, "v1",
			store.CopyOptions{}); err != nil {
			t.Error(err)
		}
		if _, _, err := to.Tags(t.Context(), 0); err != nil {
			t.Error(err)
		}
	}
	if all, err := remote.Repositories(t.Context(), reg.Host()); err != nil || len(all) != 2 {
		t.Errorf("%q, %v", all, err)
	}
	to, err := remote.Repository(reg.Host() + "/to")
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Delete(t.Context(), d); err != nil {
		t.Error(err)
	}
	for scope, n := range map[string]int{"": 1, "repository:from:pull": 1, "repository:to:pull,push": 1,
		"registry:catalog:*": 1, "repository:to:pull,push,delete": 1} {
		if asked[scope] != n {
			t.Errorf("%q: %d times", scope, asked[scope])
		}
		delete(asked, scope)
	}
	if len(asked) > 0 {
		t.Errorf("%v", asked)
	}
}

// Credentials for a part of a registry are those of what is there, also when the registry is asked whether it is one.
func TestPingWithCredentialsOfAPath(t *testing.T) {
	reg := testregistry.New(t)
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if _, secret, _ := r.BasicAuth(); secret != canary {
			w.Header().Set("WWW-Authenticate", "Basic realm=r")
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	})
	o := insecure()
	o.AuthFile = authFileFor(t, reg.Host()+"/olm")
	remote, err := registries.New(t.Context(), registries.Options{Registry: o, Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	for at, accepted := range map[string]bool{"": false, "/other": false, "/olm": true, "/olm/prod": true} {
		if err := remote.Ping(t.Context(), reg.Host()+at); accepted != (err == nil) {
			t.Errorf("%q: %v", at, err)
		}
	}
}
