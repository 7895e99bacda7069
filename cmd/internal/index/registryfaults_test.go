package index_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// faultyProxy forwards requests to a registry, or injects a fault.
type faultyProxy struct {
	host string
	mu   sync.Mutex
	seen map[string]int // number of requests by kind
}

// A registryFault answers the n-th request of a kind, counted from 0, or returns false to forward it.
type registryFault func(w http.ResponseWriter, r *http.Request, n int, forward http.Handler) bool

// The kinds of requests.
const (
	kindTag    = "tag"
	kindLayer  = "layer"
	kindConfig = "configuration"
)

// faulty starts a proxy that injects the fault into requests of one kind. The configuration is recognised as the first
// blob that is requested.
func faulty(t *testing.T, r *clitest.RealRegistry, kind string, f registryFault) *faultyProxy {
	t.Helper()
	forward := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(&url.URL{Scheme: "http", Host: r.Host})
		p.Out.Host = p.In.Host
	}, ErrorLog: log.New(io.Discard, "", 0)} // clients that disconnect are part of the test
	p := &faultyProxy{seen: map[string]int{}}
	config := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got := ""
		p.mu.Lock()
		switch {
		case strings.HasSuffix(q.URL.Path, "/manifests/v1"):
			got = kindTag
		case strings.Contains(q.URL.Path, "/blobs/"):
			if config == "" {
				config = q.URL.Path
			}
			if got = kindLayer; q.URL.Path == config {
				got = kindConfig
			}
		}
		n := p.seen[got]
		p.seen[got]++
		p.mu.Unlock()
		if got != kind || !f(w, q, n, forward) {
			forward.ServeHTTP(w, q)
		}
	}))
	t.Cleanup(server.Close)
	p.host = strings.TrimPrefix(server.URL, "http://")
	return p
}

func (p *faultyProxy) count(kind string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[kind]
}

// answers is a fault that returns a status for the first requests.
func answers(status, times int, header ...string) registryFault {
	return func(w http.ResponseWriter, _ *http.Request, n int, _ http.Handler) bool {
		if n >= times {
			return false
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		return true
	}
}

const always = 1 << 30

// resets closes the connection instead of answering.
func resets(times int) registryFault {
	return func(_ http.ResponseWriter, _ *http.Request, n int, _ http.Handler) bool {
		if n < times {
			panic(http.ErrAbortHandler)
		}
		return false
	}
}

// upstream returns the registry's answer.
func upstream(r *http.Request, forward http.Handler) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	forward.ServeHTTP(rec, r)
	return rec
}

// send sends a recorded answer with another body.
func send(w http.ResponseWriter, rec *httptest.ResponseRecorder, body []byte) {
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(body)
}

// cuts closes the connection in the middle of the answer; without ranges the download cannot be resumed.
func cuts(times int, ranges bool) registryFault {
	return func(w http.ResponseWriter, r *http.Request, n int, forward http.Handler) bool {
		if !ranges {
			r.Header.Del("Range")
		}
		if n >= times {
			return false
		}
		rec := upstream(r, forward)
		w.Header().Set("Content-Length", fmt.Sprint(rec.Body.Len()))
		send(w, rec, rec.Body.Bytes()[:rec.Body.Len()/2])
		http.NewResponseController(w).Flush() //nolint:errcheck // the connection is closed anyway
		panic(http.ErrAbortHandler)
	}
}

// flips sends one wrong bit.
func flips(times int) registryFault {
	return func(w http.ResponseWriter, r *http.Request, n int, forward http.Handler) bool {
		if n >= times {
			return false
		}
		rec := upstream(r, forward)
		body := rec.Body.Bytes()
		body[len(body)/2] ^= 1
		send(w, rec, body)
		return true
	}
}

// stalls sends half of the answer and then nothing until the client disconnects.
func stalls(w http.ResponseWriter, r *http.Request, _ int, forward http.Handler) bool {
	rec := upstream(r, forward)
	w.Header().Set("Content-Length", fmt.Sprint(rec.Body.Len()))
	send(w, rec, rec.Body.Bytes()[:rec.Body.Len()/2])
	http.NewResponseController(w).Flush() //nolint:errcheck // the client receives nothing more in any case
	<-r.Context().Done()
	return true
}

func TestRegistryFaults(t *testing.T) {
	r := startRegistry(t, registrySetup{})
	dir := r.Fill(t)
	want := r.Run(t, dir, nil, "render", "cat").Stdout
	tooMany := func(times int, after string) registryFault {
		return answers(http.StatusTooManyRequests, times, "Retry-After", after)
	}
	type expected struct {
		class    int // 0 is success
		requests int // minimum number of this kind; 0 for any number
		again    int // requests that the HTTP library may repeat after a reused connection turned out to be closed
		text     string
	}
	ok := expected{}
	for name, c := range map[string]struct {
		kind  string
		fault registryFault
		args  []string
		want  expected
	}{
		"429 once, tag":   {kindTag, tooMany(1, "1"), nil, expected{requests: 2}},
		"429 once, layer": {kindLayer, tooMany(1, "0"), nil, expected{requests: 2}},
		"429 for ever": {kindTag, tooMany(always, "1"), []string{"--retries", "2"},
			expected{class: 4, requests: 3, text: "429"}},
		"429 until 2030": {kindTag, tooMany(always, "Tue, 01 Jan 2030 00:00:00 GMT"),
			[]string{"--retries", "1", "--timeout", "3s"}, expected{class: 4}},
		"429 with a negative time": {kindLayer, tooMany(1, "-5"), nil, ok},
		"429 with an enormous time": {kindTag, tooMany(always, "1000000000000000000"),
			[]string{"--retries", "1", "--timeout", "3s"}, expected{class: 4}},
		"500 once, tag":           {kindTag, answers(500, 1), nil, expected{requests: 2}},
		"502 once, configuration": {kindConfig, answers(502, 1), nil, expected{requests: 2}},
		"503 twice, layer":        {kindLayer, answers(503, 2, "Retry-After", "1"), nil, expected{requests: 3}},
		"504 once, layer":         {kindLayer, answers(504, 1), nil, expected{requests: 2}},
		"500 for ever, tag": {kindTag, answers(500, always), []string{"--retries", "1"},
			expected{class: 4, requests: 2, text: "500"}},
		"503 for ever, layer": {kindLayer, answers(503, always), []string{"--retries", "1"},
			expected{class: 4, requests: 2, text: "503"}},
		"404": {kindTag, answers(404, always), nil,
			expected{class: 4, requests: 1, text: "404"}},
		"reset once, tag":   {kindTag, resets(1), nil, expected{requests: 2}},
		"reset once, layer": {kindLayer, resets(1), nil, expected{requests: 2}},
		"reset for ever": {kindTag, resets(always), []string{"--retries", "1"},
			expected{class: 4, requests: 2, again: 1}},
		"cut once, with ranges":    {kindLayer, cuts(1, true), nil, expected{requests: 2}},
		"cut once, without ranges": {kindLayer, cuts(1, false), nil, expected{requests: 2}},
		"cut once, configuration":  {kindConfig, cuts(1, false), nil, expected{requests: 2}},
		"cut for ever, without ranges": {kindLayer, cuts(always, false), []string{"--retries", "2"},
			expected{class: 4, requests: 3}},
		"a flipped bit in a layer":    {kindLayer, flips(always), nil, expected{class: 5, text: "digest mismatch"}},
		"a flipped bit in a config":   {kindConfig, flips(always), nil, expected{class: 5, text: "digest mismatch"}},
		"a flipped bit in a manifest": {kindTag, flips(always), nil, expected{class: 5}},
		"a stalled layer": {kindLayer, stalls, []string{"--timeout", "3s", "--retries", "1"},
			expected{class: 4}},
		"a page instead of a manifest": {kindTag, page, nil, expected{class: 4, text: "not a registry manifest"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := faulty(t, r, c.kind, c.fault)
			got := r.Run(t, dir, nil,
				append([]string{"render", "--use-http", "--error-format", "json", p.host + "/acme/catalog:v1"},
					c.args...)...)
			most := c.want.requests
			if c.kind == kindLayer {
				most *= 2 // the image has two layers, which may be fetched concurrently
			}
			most += c.want.again
			if n := p.count(c.kind); n < c.want.requests || c.want.class != 0 && c.want.requests > 0 && n > most {
				t.Errorf("%d requests, want %d to %d", n, c.want.requests, most)
			}
			if c.want.class == 0 {
				if got.Status != 0 || got.Stdout != want {
					t.Errorf("status %d, %d bytes of %d\n%s", got.Status, len(got.Stdout), len(want), got.Stderr)
				}
				return
			}
			if err := clitest.Failed(got, c.want.class, c.want.text); err != nil {
				t.Error(err)
			}
		})
	}
}

func page(w http.ResponseWriter, _ *http.Request, _ int, _ http.Handler) bool {
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, "<!DOCTYPE html><title>Log in</title>")
	return true
}

// Wrong data from a registry does not get into the cache, and valid data is not requested again.
func TestFaultsAndCache(t *testing.T) {
	r := startRegistry(t, registrySetup{})
	dir := r.Fill(t)
	want := r.Run(t, dir, nil, "render", "cat").Stdout
	for name, f := range map[string]registryFault{"a flipped bit": flips(1), "cut": cuts(1, false)} {
		t.Run(name, func(t *testing.T) {
			p := faulty(t, r, kindLayer, f)
			env := []string{"XDG_CACHE_HOME=" + t.TempDir()}
			args := []string{"render", "--use-http", "--retries", "0", p.host + "/acme/catalog:v1"}
			if got := r.Run(t, dir, env, args...); got.Status != 1 || got.Stdout != "" {
				t.Errorf("%+v", got)
			}
			configs := p.count(kindConfig)
			for range 2 {
				if got := r.Run(t, dir, env, args...); got.Status != 0 || got.Stdout != want {
					t.Errorf("status %d, %d bytes of %d\n%s", got.Status, len(got.Stdout), len(want), got.Stderr)
				}
			}
			if n := p.count(kindConfig) - configs; n != 0 {
				t.Errorf("the configuration was fetched %d more times", n)
			}
			// One layer failed; the other one's download may have been cancelled with it.
			if n := p.count(kindLayer); n < 3 || n > 4 {
				t.Errorf("layers were fetched %d times", n)
			}
		})
	}
}

// A corrupt cache entry costs one download and nothing else.
func TestDamagedCacheIsRepaired(t *testing.T) {
	r := startRegistry(t, registrySetup{})
	dir := r.Fill(t)
	cache := t.TempDir()
	render := func() clitest.Result {
		t.Helper()
		return r.Run(t, dir, []string{"XDG_CACHE_HOME=" + cache}, "render", "--use-http", r.Host+"/acme/catalog:v1")
	}
	first := render()
	if first.Status != 0 {
		t.Fatal(first.Stderr)
	}
	entries, err := filepath.Glob(filepath.Join(cache, "bindery", "blobs", "sha256", "*", "*"))
	if err != nil || len(entries) != 4 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for _, e := range entries {
		text := clitest.ReadFile(t, e)
		if err := os.WriteFile(e, []byte(text[:len(text)-1]+"?"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if got := render(); got != first {
			t.Errorf("another answer: status %d\n%s", got.Status, got.Stderr)
		}
	}
}

// A signal ends a command that waits for a registry, and no temporary files remain.
func TestSignalWhileRegistryStalls(t *testing.T) {
	r := startRegistry(t, registrySetup{})
	dir := r.Fill(t)
	for signal, status := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		reached := make(chan struct{}, 1)
		p := faulty(t, r, kindLayer, func(w http.ResponseWriter, q *http.Request, n int, forward http.Handler) bool {
			select {
			case reached <- struct{}{}:
			default:
			}
			return stalls(w, q, n, forward)
		})
		tmp := t.TempDir()
		cmd := clitest.Command(dir, "bindery", "render", "--use-http", p.host+"/acme/catalog:v1")
		cmd.Env = append(cmd.Env, "TMPDIR="+tmp, "XDG_CACHE_HOME="+t.TempDir())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-reached
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != status {
			t.Errorf("%v: status %d", signal, got)
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("%v: left behind: %v, %v", signal, left, err)
		}
	}
}

// A bundle in a registry renders as on disk, except for its image; unneeded parts of images are not fetched.
func TestBundleFromRegistry(t *testing.T) {
	r := startRegistry(t, registrySetup{})
	dir := r.Fill(t)
	p := faulty(t, r, kindLayer, resets(0))
	ref := p.host + "/acme/etcd:v1"
	fromImage := r.Run(t, dir, nil, "render", "--use-http", ref)
	fromDir := r.Run(t, dir, nil, "render", "bundle", "--image-ref-template", ref)
	if fromImage.Status != 0 || fromDir.Status != 0 || fromImage.Stdout == "" || fromImage.Stdout != fromDir.Stdout {
		t.Errorf("image: status %d\n%s\ndirectory: status %d\n%s", fromImage.Status, fromImage.Stderr, fromDir.Status,
			fromDir.Stderr)
	}
	resolved := r.Run(t, dir, nil, "render", "--use-http", "--resolve-digests", ref)
	if !strings.Contains(resolved.Stdout, p.host+"/acme/etcd@sha256:") || strings.Contains(resolved.Stdout, ref) {
		t.Errorf("--resolve-digests:\n%.500s\n%s", resolved.Stdout, resolved.Stderr)
	}
	r.Push(t, "acme/top:v1", testregistry.Image{
		Labels: map[string]string{build.ConfigsLabel: "/configs"},
		Layers: []map[string]string{{"configs/old.json": `{"schema":"note","name":"old"}`},
			{"configs/.wh..wh..opq": "", "configs/new.json": `{"schema":"note","name":"new"}`}},
	})
	q := faulty(t, r, kindLayer, resets(0))
	if got := r.Run(t, dir, nil, "render", "--use-http", q.host+"/acme/top:v1"); got.Status != 0 ||
		strings.Contains(got.Stdout, "old") || !strings.Contains(got.Stdout, "new") {
		t.Errorf("%+v", got)
	}
}
