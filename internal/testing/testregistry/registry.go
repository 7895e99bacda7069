// Package testregistry is a container registry in memory. It implements the part of the distribution protocol that
// clients use, counts requests, and lets a test answer instead: with errors, truncated bodies, or wrong content.
package testregistry

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
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
	owned     map[string]map[digest.Digest]bool // by repository; nil if every repository has every blob
	mounts    bool
	onePost   bool // see OnePost
	requests  []string
	agents    map[string]bool
	interfere func(w http.ResponseWriter, r *http.Request) bool

	referrers   Referrers
	conditional bool // see ConditionalPut
	rules       Rules
}

type stored struct {
	text      []byte
	mediaType string
}

// New starts a registry with plain HTTP and stops it when the test ends.
func New(t testing.TB) *Registry {
	r := Start()
	t.Cleanup(r.Close)
	return r
}

// Start is New for an example, which must close the registry.
func Start() *Registry {
	r := empty()
	r.server = httptest.NewServer(r)
	return r
}

// Copy starts a registry with the images of this one.
func (r *Registry) Copy(t testing.TB) *Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := empty()
	c.blobs, c.manifests = maps.Clone(r.blobs), maps.Clone(r.manifests)
	for repository, blobs := range r.owned {
		if c.owned == nil {
			c.owned = map[string]map[digest.Digest]bool{}
		}
		c.owned[repository] = maps.Clone(blobs)
	}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// Close stops the registry.
func (r *Registry) Close() { r.server.Close() }

// NewTLS starts a registry with TLS and a self-signed certificate, see [Registry.CAFile].
func NewTLS(t testing.TB) *Registry {
	r := empty()
	r.server = httptest.NewTLSServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func empty() *Registry {
	return &Registry{blobs: map[digest.Digest][]byte{}, manifests: map[string]stored{}, uploads: map[string][]byte{},
		agents: map[string]bool{}}
}

// Host returns the registry's address, HOST:PORT.
func (r *Registry) Host() string {
	_, host, _ := strings.Cut(r.server.URL, "://")
	return host
}

// CAFile returns a file with the certificate of a registry from [NewTLS].
func (r *Registry) CAFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Interfere sets a function that may answer a request instead of the registry and then returns true; nil removes it. It
// is called concurrently.
func (r *Registry) Interfere(f func(w http.ResponseWriter, r *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interfere = f
}

// RefuseOCI answers to manifests of OCI as old registries do, in repositories whose names have a part.
func (r *Registry) RefuseOCI(part string) {
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method != http.MethodPut || !strings.Contains(q.URL.Path, part) || !strings.Contains(q.URL.Path, "/manifests/") ||
			!strings.Contains(q.Header.Get("Content-Type"), "oci") {
			return false
		}
		w.WriteHeader(http.StatusUnsupportedMediaType)
		fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_INVALID","message":"media type not allowed"}]}`)
		return true
	})
}

// Separate gives every repository separate blobs, as in real registries; blobs from AddBlob are in all of them.
// Manifests with missing blobs are refused. Blobs can be mounted from other repositories if mounts is set.
func (r *Registry) Separate(mounts bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owned, r.mounts = map[string]map[digest.Digest]bool{}, mounts
}

// OnePost has the registry take blobs in the request that opens their upload.
func (r *Registry) OnePost() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onePost = true
}

// DeleteBlob removes a blob from all repositories.
func (r *Registry) DeleteBlob(d digest.Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.blobs, d)
	for _, owned := range r.owned {
		delete(owned, d)
	}
}

// everywhere is the pseudo-repository of blobs that are in all repositories.
const everywhere = ""

// has reports whether a repository has a blob.
func (r *Registry) has(repository string, d digest.Digest) bool {
	_, ok := r.blobs[d]
	return ok && (r.owned == nil || r.owned[repository][d] || r.owned[everywhere][d])
}

// addTo adds a blob to a repository.
func (r *Registry) addTo(repository string, d digest.Digest) {
	if r.owned == nil {
		return
	}
	if r.owned[repository] == nil {
		r.owned[repository] = map[digest.Digest]bool{}
	}
	r.owned[repository][d] = true
}

// Requests returns the requests so far as "METHOD PATH", in order of arrival.
func (r *Registry) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Count returns the number of requests so far that begin with the prefix.
func (r *Registry) Count(prefix string) (n int) {
	for _, q := range r.Requests() {
		if strings.HasPrefix(q, prefix) {
			n++
		}
	}
	return n
}

// Forget clears the list of requests.
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
	r.addTo(everywhere, d)
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

// Untag removes a tag. The manifest stays under its digest.
func (r *Registry) Untag(repository, tag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.manifests, repository+":"+tag)
}

// Clear removes all content, and with [Registry.Separate] what each repository has. Rules and the list of requests stay.
func (r *Registry) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.blobs)
	clear(r.manifests)
	clear(r.owned)
}

// Manifest returns the manifest under a tag or digest of a repository; nil if there is none.
func (r *Registry) Manifest(repository, name string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.manifests[repository+":"+name]; ok {
		return m.text
	}
	return r.manifests[repository+"@"+name].text
}

// Agents returns the distinct user agents of the requests so far, sorted.
func (r *Registry) Agents() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.agents))
}

// AddLayout stores every tagged image of an OCI layout, given as its files, and returns the tags. A tag of the form
// HOST/REPOSITORY:TAG determines the repository and tag; other tags are stored in the repository "layout".
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

// RegistriesConf returns a registries.conf that redirects names FROM/... to this registry, with plain HTTP.
func (r *Registry) RegistriesConf(t testing.TB, from string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registries.conf")
	text := fmt.Sprintf("[[registry]]\nprefix = %q\nlocation = %q\ninsecure = true\n", from, r.Host())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
