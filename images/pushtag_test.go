package images

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// The condition of a push holds before anything is written, and just before the tag is.
func TestIfDigest(t *testing.T) {
	old, next := simple(t, "old"), simple(t, "next")
	was := digest.FromBytes(old.manifest)
	other := simple(t, "other")
	for name, c := range map[string]struct {
		there, then *fixture // what the tag stands for, and from the second look on
		condition   string
		conflict    bool
	}{
		"as it should be":                {old, nil, was.String(), false},
		"another image":                  {other, nil, was.String(), true},
		"no image":                       {nil, nil, was.String(), true},
		"an image where none should be":  {old, nil, store.IfNone, true},
		"none, as it should be":          {nil, nil, store.IfNone, false},
		"moved meanwhile":                {old, other, was.String(), true},
		"made meanwhile":                 {nil, other, store.IfNone, true},
		"the same image is there by now": {old, next, was.String(), false},
		"it was there before":            {next, nil, was.String(), false},
	} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			if c.there != nil {
				put(reg, "a/b", "v1", c.there)
			}
			var looks atomic.Int32
			var conditions []string
			reg.Interfere(func(_ http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/manifests/v1") {
					return false
				}
				if r.Method == http.MethodHead && looks.Add(1) == 2 && c.then != nil {
					put(reg, "a/b", "v1", c.then)
				}
				if r.Method == http.MethodPut {
					conditions = append(conditions, r.Header.Get("If-Match")+r.Header.Get("If-None-Match"))
				}
				return false
			})
			_, err := pushTo(t, next, CopyOptions{IfDigest: c.condition, Options: registries.Options{Retries: 1}}, reg.Host()+"/a/b:v1")
			var conflict *store.ConflictError
			if errors.As(err, &conflict) != c.conflict || !c.conflict && err != nil {
				t.Fatalf("got %v", err)
			}
			now := string(reg.Manifest("a/b", "v1"))
			if !c.conflict {
				if now != string(next.manifest) {
					t.Error("the tag does not name the image")
				}
				want := map[string]string{store.IfNone: "*"}[c.condition]
				if want == "" {
					want = `"` + c.condition + `"`
				}
				if len(conditions) > 1 || len(conditions) == 1 && conditions[0] != want {
					t.Errorf("conditions %q, want %s", conditions, want)
				}
				return
			}
			if now == string(next.manifest) || len(conditions) > 0 {
				t.Error("the tag was written")
			}
			if c.then == nil && reg.Count("POST ") > 0 {
				t.Error("blobs were sent")
			}
			if string(conflict.Want) != strings.TrimSuffix(c.condition, store.IfNone) || !strings.Contains(err.Error(),
				string(conflict.Got)) {
				t.Errorf("got %+v: %v", conflict, err)
			}
		})
	}
}

// A registry that evaluates If-Match may refuse to write a tag that looked unchanged to the client.
func TestConditionThatTheRegistryRefuses(t *testing.T) {
	next := simple(t, "next")
	for name, c := range map[string]struct {
		then *fixture // what is there when the registry refuses
		want bool
	}{"another image": {simple(t, "other"), false}, "the image itself, whose answer was lost": {next, true}} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			was := put(reg, "a/b", "v1", simple(t, "old"))
			reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("If-Match") == "" {
					return false
				}
				put(reg, "a/b", "v1", c.then)
				w.WriteHeader(http.StatusPreconditionFailed)
				return true
			})
			_, err := pushTo(t, next, CopyOptions{IfDigest: was.String()}, reg.Host()+"/a/b:v1")
			var conflict *store.ConflictError
			if c.want != (err == nil) || !c.want && !errors.As(err, &conflict) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestConditionsOfAllNamesHoldFirst(t *testing.T) {
	reg := testregistry.New(t)
	was := put(reg, "a/b", "v1", simple(t, "old"))
	put(reg, "a/b", "v2", simple(t, "other"))
	_, err := pushTo(t, simple(t, "next"), CopyOptions{IfDigest: was.String()}, reg.Host()+"/a/b:v1",
		reg.Host()+"/a/b:v2")
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) || !strings.HasSuffix(conflict.Name, ":v2") {
		t.Errorf("got %v", err)
	}
	for _, q := range reg.Requests() {
		if strings.HasPrefix(q, "P") {
			t.Errorf("%s", q)
		}
	}
}

func TestConditionsThatAreNone(t *testing.T) {
	for _, text := range []string{"sha256:1", "None", "latest", "sha512:" + strings.Repeat("a", 128)} {
		if err := CheckIfDigest(text); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// Tokens are for what is done with them: pushing, and reading where a blob is mounted from.
func TestScopesOfTokens(t *testing.T) {
	for name, c := range map[string]struct {
		stingy          bool // nothing is given to whoever asks for another repository
		mounted, pushed int
	}{"the lender may be read": {false, 2, 1}, "the lender may not be read": {true, 0, 3}} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			reg.Separate(true)
			f := packages(t, "a", "b")
			if _, err := pushTo(t, f, CopyOptions{}, reg.Host()+"/base/image:v1"); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var scopes []string
			reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" {
					asked := r.URL.Query()["scope"]
					mu.Lock()
					scopes = append(scopes, strings.Join(asked, " "))
					mu.Unlock()
					if c.stingy && len(asked) > 1 {
						w.WriteHeader(http.StatusForbidden)
						return true
					}
					fmt.Fprintf(w, `{"token":%q}`, url.QueryEscape(strings.Join(asked, " ")))
					return true
				}
				token, _ := url.QueryUnescape(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
				has := strings.Fields(token)
				ok := slices.Contains(has, "repository:a/b:pull,push")
				if from := r.URL.Query().Get("from"); from != "" {
					ok = ok && slices.Contains(has, "repository:"+from+":pull")
				}
				if !ok {
					w.Header().Set("WWW-Authenticate",
						fmt.Sprintf(`Bearer realm="http://%s/token",service="test"`, reg.Host()))
					w.WriteHeader(http.StatusUnauthorized)
				}
				return !ok
			})
			f = packages(t, "a", "b", "c")
			r, err := pushTo(t, lent{f, []string{reg.Host() + "/base/image"}}, CopyOptions{}, reg.Host()+"/a/b:v1")
			if err != nil {
				t.Fatal(err)
			}
			// The new layer and the configuration are sent in any case.
			if len(r[0].Mounted) != c.mounted || len(r[0].Written) != 1+c.pushed {
				t.Errorf("mounted %d, sent %d", len(r[0].Mounted), len(r[0].Written))
			}
			slices.Sort(scopes)
			want := []string{"repository:a/b:pull,push", "repository:a/b:pull,push repository:base/image:pull"}
			if got := slices.Compact(scopes); !slices.Equal(got, want) {
				t.Errorf("scopes %q, want %q", got, want)
			}
		})
	}
}
