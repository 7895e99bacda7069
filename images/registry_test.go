package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

func insecure() registries.Config {
	yes := true
	return registries.Config{SkipTLSVerify: &yes, PlainHTTP: true, UserAgent: "bindery/test"}
}

func TestPush(t *testing.T) {
	reg := testregistry.New(t)
	host := reg.Host()
	src := simple(t, "x")
	o := CopyOptions{Options: registries.Options{Registry: insecure()}}
	dest := parse(t, "docker://"+host+"/a/b:v1")
	r, err := copyOf(t.Context(), of(t, src), []transport.Destination{dest}, o)
	if err != nil {
		t.Fatal(err)
	}
	want := digest.FromBytes(src.manifest)
	if r[0].Digest != want || r[0].Reference != host+"/a/b@"+want.String() || len(r[0].Written) != 3 {
		t.Errorf("got %+v", r[0])
	}
	if string(reg.Manifest("a/b", "v1")) != string(src.manifest) {
		t.Error("the manifest changed on the way")
	}
	if agents := reg.Agents(); len(agents) != 1 || agents[0] != "bindery/test" {
		t.Errorf("user agents: %v", agents)
	}
	// The image is there: the second push opens nothing and sends nothing.
	src.opened = func(d digest.Digest) { t.Errorf("%s was read again", d) }
	reg.Forget()
	r, err = copyOf(t.Context(), of(t, src), []transport.Destination{dest}, o)
	if err != nil || len(r[0].Reused) != 3 || len(r[0].Written) != 0 {
		t.Errorf("second push: %+v, %v", r, err)
	}
	for _, q := range reg.Requests() {
		if !strings.HasPrefix(q, "HEAD ") && !strings.HasPrefix(q, "GET ") {
			t.Errorf("second push: %s", q)
		}
	}
}

func TestPushRecoversFromTransientFailures(t *testing.T) {
	status := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(code) }
	}
	reset := func(w http.ResponseWriter) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			c.Close()
		}
	}
	for name, fail := range map[string]func(http.ResponseWriter){"500": status(500), "502": status(502),
		"503": status(503), "504": status(504), "reset": reset} {
		for _, request := range []string{"POST", "PUT /v2/a/b/blobs", "PUT /v2/a/b/manifests", "HEAD"} {
			t.Run(name+" "+request, func(t *testing.T) {
				reg := testregistry.New(t)
				host := reg.Host()
				var failed atomic.Bool
				reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.HasPrefix(r.Method+" "+r.URL.Path, request) || failed.Swap(true) {
						return false
					}
					fail(w)
					return true
				})
				var retried int
				o := CopyOptions{Options: registries.Options{Registry: insecure(), Retries: 2, Backoff: time.Millisecond,
					Events: func(e store.Event) {
						if e.Kind == store.EventRetry {
							retried++
						}
					}}}
				r, err := copyOf(t.Context(), of(t, simple(t, "x")), dests(t, "docker://"+host+"/a/b:v1"), o)
				if err != nil || !failed.Load() {
					t.Fatalf("failed %v, retried %d: %v", failed.Load(), retried, err)
				}
				if len(r[0].Written) != 3 || len(r[0].Reused) != 0 {
					t.Errorf("blobs: %+v", r[0])
				}
			})
		}
	}
}

func TestPushGivesUp(t *testing.T) {
	cases := map[string]struct {
		code     int
		attempts int
	}{"500 for ever": {500, 3}, "denied": {403, 1}, "too large": {413, 1}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			host := reg.Host()
			reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
					return false
				}
				w.WriteHeader(c.code)
				return true
			})
			o := CopyOptions{Options: registries.Options{Registry: insecure(), Retries: 2, Backoff: time.Millisecond}}
			out := filepath.Join(t.TempDir(), "layout")
			dests := []transport.Destination{parse(t, "oci:"+out+":v1"), parse(t, "docker://"+host+"/a/b:v1")}
			_, err := copyOf(t.Context(), of(t, simple(t, "x")), dests, o)
			if err == nil {
				t.Fatal("no error")
			}
			if n := reg.Count("PUT /v2/a/b/manifests"); n != c.attempts {
				t.Errorf("%d attempts, want %d: %v", n, c.attempts, err)
			}
			if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the layout was written although the push failed: %v", err)
			}
			if text := reg.Manifest("a/b", "v1"); text != nil {
				t.Errorf("the tag names %s", text)
			}
		})
	}
}

// A server that says yes to everything is no registry, and one that lets nobody read is believed.
func TestPushIsReadBack(t *testing.T) {
	for name, c := range map[string]struct {
		interfere func(w http.ResponseWriter, r *http.Request) bool
		want      error
	}{
		"a page for everything": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>sign in</html>")
			return true
		}, fault.ErrIntegrity},
		"another manifest": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			w.Header().Set("Content-Type", v1.MediaTypeImageManifest)
			fmt.Fprint(w, `{"schemaVersion":2}`)
			return true
		}, fault.ErrIntegrity},
		"gone": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			w.WriteHeader(http.StatusNotFound)
			return true
		}, fault.ErrRegistry},
		"not for reading": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			return true
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			host := reg.Host()
			reg.Interfere(c.interfere)
			_, err := copyOf(t.Context(), of(t, simple(t, "x")), dests(t, "docker://"+host+"/a/b:v1"),
				CopyOptions{Options: registries.Options{Registry: insecure()}})
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// A registry that stops answering is left and tried again.
func TestStalledPush(t *testing.T) {
	reg := testregistry.New(t)
	host := reg.Host()
	var uploads atomic.Int32
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		if uploads.Add(1) > 1 {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return true
	})
	var again []error
	o := CopyOptions{Options: registries.Options{Registry: insecure(), Retries: 1, Backoff: time.Millisecond, Stall: 300 * time.Millisecond,
		Events: func(e store.Event) {
			if e.Kind == store.EventRetry {
				again = append(again, e.Err)
			}
		}}}
	if _, err := copyOf(t.Context(), of(t, simple(t, "x")), dests(t, "docker://"+host+"/a/b:v1"), o); err != nil {
		t.Fatal(err)
	}
	if len(again) != 1 || !strings.Contains(again[0].Error(), "nothing has moved for 300ms") {
		t.Errorf("tried again after %v", again)
	}
}

func TestTimeoutEndsAPush(t *testing.T) {
	reg := testregistry.New(t)
	host := reg.Host()
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		// Only with its body read is the end of a connection noticed.
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(10 * time.Second):
			t.Error("the connection was kept open")
		}
		return true
	})
	o := CopyOptions{Options: registries.Options{Registry: insecure(), Retries: 5, Backoff: time.Millisecond}, Timeout: 300 * time.Millisecond}
	_, err := copyOf(t.Context(), of(t, simple(t, "x")), dests(t, "docker://"+host+"/a/b:v1"), o)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), "not done within") {
		t.Errorf("got %v", err)
	}
}

func TestCredentialsAreUsedAndNeverShown(t *testing.T) {
	reg := testregistry.New(t)
	host := reg.Host()
	const secret = "canary-secret"
	var seen atomic.Bool
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if _, pw, ok := r.BasicAuth(); ok {
			if pw == secret {
				seen.Store(true)
			}
			if r.Method == http.MethodPut {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprintf(w, `{"errors":[{"code":"DENIED","message":"no: Basic %s, https://user:%s@%s/"}]}`,
					secret+secret, secret, host)
				return true
			}
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	auth := filepath.Join(t.TempDir(), "auth.json")
	// "user:canary-secret" in base64.
	text := fmt.Sprintf(`{"auths":{%q:{"auth":"dXNlcjpjYW5hcnktc2VjcmV0"}}}`, host)
	if err := os.WriteFile(auth, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string { return map[string]string{"REGISTRY_AUTH_FILE": auth}[name] }
	o := CopyOptions{Options: registries.Options{Registry: insecure().Env(env)}}
	_, err := copyOf(t.Context(), of(t, simple(t, "x")), dests(t, "docker://"+host+"/a/b:v1"), o)
	if err == nil || !seen.Load() {
		t.Fatalf("seen %v, error %v", seen.Load(), err)
	}
	if strings.Contains(err.Error(), secret) || strings.Contains(fmt.Sprintf("%+v", err), secret) {
		t.Errorf("the secret is in %q", err)
	}
}

func TestSelfSignedCertificate(t *testing.T) {
	reg := testregistry.NewTLS(t)
	dest := parse(t, "docker://"+reg.Host()+"/a/b:v1")
	if _, err := copyOf(t.Context(), of(t, simple(t, "x")), []transport.Destination{dest}, CopyOptions{}); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
	ca := reg.CAFile(t)
	if _, err := copyOf(t.Context(), of(t, simple(t, "x")), []transport.Destination{dest},
		CopyOptions{Options: registries.Options{Registry: registries.Config{CAFile: ca}}}); err != nil {
		t.Errorf("with the CA file: %v", err)
	}
	if _, err := copyOf(t.Context(), of(t, simple(t, "x")), []transport.Destination{dest},
		CopyOptions{Options: registries.Options{Registry: registries.Config{CAFile: ca + "x"}}}); err == nil {
		t.Error("a missing CA file is no error")
	}
}

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"Get https://user:pw@host/x: EOF":       "Get https://***@host/x: EOF",
		"Authorization: Bearer abcdefghijkl.mn": "Authorization: Bearer ***",
		"POST /token?password=hunter2&x=1":      "POST /token?password=***&x=1",
		"basic things stay":                     "basic things stay",
		"docker://quay.io/a/b@sha256:abc":       "docker://quay.io/a/b@sha256:abc",
	} {
		if got := redact.Text(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
