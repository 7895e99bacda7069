// Package testregistry is a container registry in the memory of a test. It speaks the part of the distribution
// protocol that clients use, counts what they ask, and lets a test answer in its place: with errors, cut bodies, lies.
package testregistry

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Registry is a running registry. It is safe for concurrent use.
type Registry struct {
	server *httptest.Server

	mu        sync.Mutex
	blobs     map[digest.Digest][]byte
	manifests map[string]stored // by REPOSITORY:TAG and REPOSITORY@DIGEST
	uploads   map[string][]byte
	owned     map[string]map[digest.Digest]bool // by repository; nil if all have all blobs
	mounts    bool
	requests  []string
	agents    map[string]bool
	interfere func(w http.ResponseWriter, r *http.Request) bool
}

type stored struct {
	text      []byte
	mediaType string
}

// New starts a registry that speaks plain HTTP. It ends with the test.
func New(t testing.TB) *Registry {
	r := Start()
	t.Cleanup(r.Close)
	return r
}

// Start is New for an example, which closes the registry.
func Start() *Registry {
	r := empty()
	r.server = httptest.NewServer(r)
	return r
}

// Close ends the registry.
func (r *Registry) Close() { r.server.Close() }

// NewTLS starts a registry with TLS and a self-signed certificate, see [Registry.CAFile].
func NewTLS(t testing.TB) *Registry {
	r := empty()
	r.server = httptest.NewTLSServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func empty() *Registry {
	return &Registry{blobs: map[digest.Digest][]byte{}, manifests: map[string]stored{}, uploads: map[string][]byte{}, agents: map[string]bool{}}
}

// Host is the registry's address, HOST:PORT.
func (r *Registry) Host() string {
	_, host, _ := strings.Cut(r.server.URL, "://")
	return host
}

// CAFile is a file with the certificate of a registry of [NewTLS].
func (r *Registry) CAFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Interfere sets what answers a request in the registry's place by returning true; nil takes it away. It is called for
// several requests at once.
func (r *Registry) Interfere(f func(w http.ResponseWriter, r *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interfere = f
}

// Separate gives every repository its own blobs, as real registries have it; those of AddBlob are in all. Manifests whose
// blobs are not there are refused. A repository lends blobs to others if mounts says so.
func (r *Registry) Separate(mounts bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owned, r.mounts = map[string]map[digest.Digest]bool{}, mounts
}

// DeleteBlob takes a blob away from all repositories.
func (r *Registry) DeleteBlob(d digest.Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.blobs, d)
	for _, owned := range r.owned {
		delete(owned, d)
	}
}

// everywhere is the repository of the blobs that are in all.
const everywhere = ""

// has reports whether a repository has a blob.
func (r *Registry) has(repository string, d digest.Digest) bool {
	_, ok := r.blobs[d]
	return ok && (r.owned == nil || r.owned[repository][d] || r.owned[everywhere][d])
}

// own gives a repository a blob.
func (r *Registry) own(repository string, d digest.Digest) {
	if r.owned == nil {
		return
	}
	if r.owned[repository] == nil {
		r.owned[repository] = map[digest.Digest]bool{}
	}
	r.owned[repository][d] = true
}

// Requests are the requests so far, each as "METHOD PATH", in the order of their arrival.
func (r *Registry) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Count is how many requests so far begin with the prefix.
func (r *Registry) Count(prefix string) (n int) {
	for _, q := range r.Requests() {
		if strings.HasPrefix(q, prefix) {
			n++
		}
	}
	return n
}

// Forget empties the list of requests.
func (r *Registry) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// AddBlob stores a blob.
func (r *Registry) AddBlob(content []byte) digest.Digest {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := digest.FromBytes(content)
	r.blobs[d] = content
	r.own(everywhere, d)
	return d
}

// AddManifest stores a manifest or an index under its digest and, unless it is empty, a tag.
func (r *Registry) AddManifest(repository, tag, mediaType string, text []byte) digest.Digest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addManifest(repository, tag, mediaType, text)
}

func (r *Registry) addManifest(repository, tag, mediaType string, text []byte) digest.Digest {
	d := digest.FromBytes(text)
	r.manifests[repository+"@"+d.String()] = stored{text, mediaType}
	if tag != "" {
		r.manifests[repository+":"+tag] = stored{text, mediaType}
	}
	return d
}

// Manifest is what is stored under a tag or digest of a repository; nil if nothing is.
func (r *Registry) Manifest(repository, name string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.manifests[repository+":"+name]; ok {
		return m.text
	}
	return r.manifests[repository+"@"+name].text
}

// Agents are the user agents of the requests so far, each once, sorted.
func (r *Registry) Agents() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.agents))
}

// AddLayout stores every tagged image of an OCI layout, given as its files. A tag of the form HOST/REPOSITORY:TAG gives
// the repository and the tag; another one is a tag of the repository "layout". It returns the tags.
func (r *Registry) AddLayout(t testing.TB, files map[string][]byte) []string {
	t.Helper()
	var index v1.Index
	if err := json.Unmarshal(files[v1.ImageIndexFile], &index); err != nil {
		t.Fatalf("index of the layout: %v", err)
	}
	var tags []string
	for _, d := range index.Manifests {
		name := d.Annotations[v1.AnnotationRefName]
		repository, tag := "layout", name
		if _, path, ok := strings.Cut(name, "/"); ok {
			colon := strings.LastIndex(path, ":")
			repository, tag = path[:colon], path[colon+1:]
		}
		tags = append(tags, name)
		r.addTree(t, files, repository, tag, d)
	}
	return tags
}

func (r *Registry) addTree(t testing.TB, files map[string][]byte, repository, tag string, d v1.Descriptor) {
	t.Helper()
	text, ok := files["blobs/sha256/"+d.Digest.Encoded()]
	if !ok {
		t.Fatalf("%s is not in the layout", d.Digest)
	}
	var m struct {
		Config    v1.Descriptor
		Layers    []v1.Descriptor
		Manifests []v1.Descriptor
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("manifest %s: %v", d.Digest, err)
	}
	r.AddManifest(repository, tag, d.MediaType, text)
	for _, child := range m.Manifests {
		r.addTree(t, files, repository, "", child)
	}
	if m.Config.Digest != "" {
		for _, b := range append(m.Layers, m.Config) {
			r.AddBlob(files["blobs/sha256/"+b.Digest.Encoded()])
		}
	}
}

// RegistriesConf is a registries.conf by which what is named FROM/... comes from this registry; plain HTTP is allowed.
func (r *Registry) RegistriesConf(t testing.TB, from string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registries.conf")
	text := fmt.Sprintf("[[registry]]\nprefix = %q\nlocation = %q\ninsecure = true\n", from, r.Host())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ServeHTTP implements [http.Handler].
func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, q.Method+" "+q.URL.Path)
	r.agents[q.UserAgent()] = true
	interfere := r.interfere
	r.mu.Unlock()
	if interfere != nil && interfere(w, q) {
		return
	}
	var body []byte
	var broken error
	if q.Method != http.MethodGet && q.Method != http.MethodHead {
		body, broken = io.ReadAll(q.Body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	path := strings.TrimPrefix(q.URL.Path, "/v2/")
	switch {
	case path == "" || path == "/v2":
	case strings.Contains(path, "/blobs/uploads/"):
		r.upload(w, q, body, broken)
	case strings.Contains(path, "/blobs/"):
		repository, d, _ := strings.Cut(path, "/blobs/")
		answer(w, q, r.blobs[digest.Digest(d)], "application/octet-stream", r.has(repository, digest.Digest(d)))
	case strings.Contains(path, "/manifests/"):
		repository, name, _ := strings.Cut(path, "/manifests/")
		if broken != nil {
			panic(http.ErrAbortHandler)
		}
		r.manifest(w, q, repository, name, body)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (r *Registry) manifest(w http.ResponseWriter, q *http.Request, repository, name string, text []byte) {
	if q.Method == http.MethodPut {
		if r.owned != nil && !r.complete(repository, text) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN","message":"blob unknown to registry"}]}`)
			return
		}
		tag := name
		if strings.HasPrefix(name, "sha256:") {
			tag = ""
		}
		w.Header().Set("Docker-Content-Digest", r.addManifest(repository, tag, q.Header.Get("Content-Type"), text).String())
		w.WriteHeader(http.StatusCreated)
		return
	}
	m, ok := r.manifests[repository+":"+name]
	if !ok {
		m, ok = r.manifests[repository+"@"+name]
	}
	if ok {
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(m.text).String())
	}
	answer(w, q, m.text, m.mediaType, ok)
}

func answer(w http.ResponseWriter, q *http.Request, content []byte, mediaType string, ok bool) {
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	if q.Method != http.MethodHead {
		_, _ = w.Write(content)
	}
}

// complete reports whether a repository has all blobs of a manifest.
func (r *Registry) complete(repository string, text []byte) bool {
	var m struct {
		Config            *v1.Descriptor
		Layers, Manifests []v1.Descriptor
	}
	if json.Unmarshal(text, &m) != nil {
		return false
	}
	if m.Config != nil {
		m.Layers = append(m.Layers, *m.Config)
	}
	for _, d := range m.Manifests {
		if _, ok := r.manifests[repository+"@"+d.Digest.String()]; !ok {
			return false
		}
	}
	return !slices.ContainsFunc(m.Layers, func(d v1.Descriptor) bool { return !r.has(repository, d.Digest) })
}

// upload takes a blob. What has arrived of a body that breaks off is kept.
func (r *Registry) upload(w http.ResponseWriter, q *http.Request, body []byte, broken error) {
	repository, _, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/v2/"), "/blobs/uploads/")
	have, begun := r.uploads[q.URL.Path]
	if q.Method == http.MethodPost {
		if d := digest.Digest(q.URL.Query().Get("mount")); r.mounts && r.owned != nil && r.has(q.URL.Query().Get("from"), d) {
			r.own(repository, d)
			w.Header().Set("Location", "/v2/"+repository+"/blobs/"+d.String())
			w.WriteHeader(http.StatusCreated)
			return
		}
		at := fmt.Sprintf("%s%d", q.URL.Path, len(r.uploads))
		r.uploads[at] = []byte{}
		w.Header().Set("Location", at)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if !begun {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Location", q.URL.Path)
	switch q.Method {
	case http.MethodGet:
		w.Header().Set("Range", fmt.Sprintf("0-%d", max(len(have), 1)-1))
		w.WriteHeader(http.StatusNoContent)
	case http.MethodDelete:
		delete(r.uploads, q.URL.Path)
		r.uploads[q.URL.Path+" cancelled"] = nil // the number of uploads names the next one
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPatch:
		var from int
		if part := q.Header.Get("Content-Range"); part != "" {
			if _, err := fmt.Sscanf(part, "%d-", &from); err != nil || from != len(have) {
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
		}
		r.uploads[q.URL.Path] = append(have, body...)
		if broken != nil {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusAccepted)
	case http.MethodPut:
		if broken != nil {
			panic(http.ErrAbortHandler)
		}
		content := append(have, body...)
		d := digest.FromBytes(content)
		delete(r.uploads, q.URL.Path)
		r.uploads[q.URL.Path+" done"] = nil // the number of uploads names the next one
		if q.URL.Query().Get("digest") != d.String() {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"errors":[{"code":"DIGEST_INVALID","message":"provided digest did not match uploaded content"}]}`)
			return
		}
		r.blobs[d] = content
		r.own(repository, d)
		w.Header().Del("Location")
		w.WriteHeader(http.StatusCreated)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}
