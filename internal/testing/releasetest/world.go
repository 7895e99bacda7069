package releasetest

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// World is a running server of the documents of the fixture. It is safe for concurrent use.
type World struct {
	// GraphURL, SignatureURL and DataURL are what UPDATE_URL_OVERRIDE, OCP_SIGNATURE_URL and the address of the graph
	// data are set to. SignatureURL ends in "/".
	GraphURL, SignatureURL, DataURL string
	// KeyFile has the armored key of the signatures, for OCP_SIGNATURE_VERIFICATION_PK.
	KeyFile string

	server *httptest.Server
	files  fs.FS

	mu        sync.Mutex
	requests  []string
	down      bool
	interfere func(http.ResponseWriter, *http.Request) bool
}

// Servers starts the server and stops it when the test ends. It answers
//
//   - /graph and /api/upgrades_info/v1/graph with the graph of the parameters arch and channel, empty if unknown;
//   - /graph500 and /graph404 with these statuses, and /graphhtml with HTML;
//   - /api/upgrades_info/graph-data with graph-data.tar.gz;
//   - below /pub/openshift-v4/signatures/openshift/release/ with the signatures;
//   - all other paths with the file of [Files] of that name, or 404.
func Servers(t testing.TB) *World {
	t.Helper()
	w := &World{files: Files(t), KeyFile: filepath.Join(t.TempDir(), "release.asc")}
	key, err := fs.ReadFile(w.files, "keys/release.asc")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.KeyFile, key, 0o600); err != nil {
		t.Fatal(err)
	}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	w.GraphURL, w.SignatureURL = w.server.URL+"/graph", w.server.URL+"/signatures/"
	w.DataURL = w.server.URL + "/graph-data.tar.gz"
	return w
}

// Host returns the server's address, HOST:PORT.
func (w *World) Host() string { return strings.TrimPrefix(w.server.URL, "http://") }

// Requests returns the requests so far as "METHOD PATH?QUERY", in order of arrival. Those to the hosts behind
// [World.Proxy] are "METHOD https://HOST/PATH?QUERY"; requests to the registry among them are left out.
func (w *World) Requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// Forget clears the list of requests.
func (w *World) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = nil
}

// Down breaks the connection of each request, or answers again.
func (w *World) Down(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

// Interfere sets a function that may answer a request instead of the server and then returns true; nil removes it. It
// is called concurrently.
func (w *World) Interfere(f func(http.ResponseWriter, *http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interfere = f
}

// ServeHTTP implements [http.Handler].
func (w *World) ServeHTTP(out http.ResponseWriter, q *http.Request) { w.serve(out, q, "") }

// serve answers a request to one of the vendor's hosts; empty for the server itself.
func (w *World) serve(out http.ResponseWriter, q *http.Request, host string) {
	name := q.URL.RequestURI()
	if host != "" {
		name = "https://" + host + name
	}
	w.mu.Lock()
	w.requests = append(w.requests, q.Method+" "+name)
	down, interfere := w.down, w.interfere
	w.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	if interfere != nil && interfere(out, q) {
		return
	}
	query := q.URL.Query()
	arch := query.Get("arch")
	if arch == "" {
		arch = "amd64"
	}
	switch at := q.URL.Path; {
	case at == "/graph500":
		http.Error(out, "boom", http.StatusInternalServerError)
	case at == "/graph404":
		http.Error(out, "no", http.StatusNotFound)
	case at == "/graphhtml":
		out.Header().Set("Content-Type", "text/html")
		_, _ = out.Write([]byte("<html>"))
	case host == okdHost:
		w.graph(out, "okd", query.Get("channel"))
	case at == "/graph", at == "/api/upgrades_info/v1/graph":
		w.graph(out, arch, query.Get("channel"))
	case at == "/api/upgrades_info/graph-data":
		w.file(out, "graph-data.tar.gz")
	default:
		rest, vendor := strings.CutPrefix(at, "/pub/openshift-v4/signatures/openshift/release/")
		if vendor {
			at = "/signatures/" + rest
		}
		w.file(out, strings.TrimPrefix(at, "/"))
	}
}

// graph answers with a graph; a channel that is unknown has no releases.
func (w *World) graph(out http.ResponseWriter, arch, channel string) {
	text, err := fs.ReadFile(w.files, path.Join("graph", arch, channel+".json"))
	if err != nil {
		text = []byte(`{"version":1,"nodes":[],"edges":[],"conditionalEdges":[]}`)
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = out.Write(text)
}

func (w *World) file(out http.ResponseWriter, name string) {
	text, err := fs.ReadFile(w.files, name)
	if err != nil {
		http.Error(out, "not found", http.StatusNotFound)
		return
	}
	out.Header().Set("Content-Type", "application/octet-stream")
	_, _ = out.Write(text)
}
