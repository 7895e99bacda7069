package releasetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Large is an unsigned release in a registry, and a registry to mirror it to. The layers of its components are zeros of
// different lengths, which neither registry has in memory.
type Large struct {
	Source, Target *testregistry.Registry
	// Release is its name at [Host], by digest, and Bytes the size of the layers of all components.
	Release string
	Bytes   int64
	// Uploaded is called after each layer that the target got; nil for nothing. Calls may be concurrent.
	Uploaded func()

	zeros map[digest.Digest]int64 // the sizes of the layers

	mu      sync.Mutex
	have    map[digest.Digest]bool // layers that the target has
	uploads map[string]*upload
}

// upload is what the target got of a blob: how much, and the first bytes, which are all of a blob that is no layer.
type upload struct {
	size  int64
	first bytes.Buffer
}

// smallBlob is more than any blob of the release has but for its layers.
const smallBlob = 4 << 20

// NewLarge starts the registries with a release of so many components, each with a layer of somewhat more than
// layerBytes, which must be more than [smallBlob].
func NewLarge(t testing.TB, components int, layerBytes int64) *Large {
	t.Helper()
	l := &Large{Source: testregistry.New(t), Target: testregistry.New(t), zeros: map[digest.Digest]int64{},
		have: map[digest.Digest]bool{}, uploads: map[string]*upload{}}
	type from struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	}
	type tag struct {
		Name string `json:"name"`
		From from   `json:"from"`
	}
	var tags []tag
	sum := sha256.New()
	size := layerBytes
	if _, err := io.CopyN(sum, zeroes{}, size); err != nil {
		t.Fatal(err)
	}
	for i := range components {
		sum.Write([]byte{0})
		size++
		one, err := sum.(hash.Cloner).Clone() // the digest of so many zeros
		if err != nil {
			t.Fatal(err)
		}
		d := digest.NewDigest(digest.SHA256, one)
		l.zeros[d] = size
		l.Bytes += size
		config := v1.Image{Platform: v1.Platform{OS: "linux", Architecture: "amd64"}}
		config.RootFS = v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{d}}
		text := marshal(t, config)
		image := marshal(t, v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2},
			MediaType: v1.MediaTypeImageManifest,
			Config: v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: l.Source.AddBlob(text),
				Size: int64(len(text))},
			Layers: []v1.Descriptor{{MediaType: v1.MediaTypeImageLayer, Digest: d, Size: size}}})
		tags = append(tags, tag{fmt.Sprintf("component-%03d", i), from{"DockerImage", Host + "/" + Components + "@" +
			l.Source.AddManifest(Components, "", v1.MediaTypeImageManifest, image).String()}})
	}
	references := marshal(t, map[string]any{"kind": "ImageStream", "apiVersion": "image.openshift.io/v1",
		"metadata": map[string]string{"name": "4.99.0"}, "spec": map[string]any{"tags": tags}})
	l.Release = Host + "/" + Releases + "@" + l.Source.AddImage(t, Releases, "4.99.0-x86_64", testregistry.Image{
		Labels: map[string]string{"io.openshift.release": "4.99.0"},
		Layers: []map[string]string{{"release-manifests/image-references": string(references)}}}).String()
	l.Source.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		_, name, ok := strings.Cut(q.URL.Path, "/blobs/")
		return ok && l.layer(w, q, digest.Digest(name))
	})
	l.Target.Interfere(l.receive)
	return l
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// layer answers with a layer, and tells whether it is one.
func (l *Large) layer(w http.ResponseWriter, q *http.Request, d digest.Digest) bool {
	size, ok := l.zeros[d]
	if ok && (q.Method == http.MethodGet || q.Method == http.MethodHead) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Docker-Content-Digest", d.String())
		http.ServeContent(w, q, "", time.Time{}, io.NewSectionReader(zeroes{}, 0, size))
	}
	return ok
}

// receive is the part of the target that takes blobs.
func (l *Large) receive(w http.ResponseWriter, q *http.Request) bool {
	_, name, ok := strings.Cut(q.URL.Path, "/blobs/")
	if !ok {
		return false
	}
	if !strings.HasPrefix(name, "uploads/") {
		l.mu.Lock()
		have := l.have[digest.Digest(name)]
		l.mu.Unlock()
		return have && l.layer(w, q, digest.Digest(name))
	}
	l.mu.Lock()
	u := l.uploads[q.URL.Path]
	if q.Method == http.MethodPost {
		u = &upload{}
		at := fmt.Sprint(q.URL.Path, len(l.uploads))
		l.uploads[at] = u
		w.Header().Set("Location", at)
	}
	l.mu.Unlock()
	if u == nil {
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	_, err := io.CopyN(&u.first, q.Body, smallBlob-int64(u.first.Len()))
	if err == nil {
		_, err = io.Copy(u, q.Body)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		panic(http.ErrAbortHandler)
	}
	switch q.Method {
	case http.MethodPost:
		w.WriteHeader(http.StatusAccepted)
	case http.MethodPatch:
		w.Header().Set("Location", q.URL.Path)
		w.Header().Set("Range", fmt.Sprintf("0-%d", max(u.size+int64(u.first.Len()), 1)-1))
		w.WriteHeader(http.StatusAccepted)
	case http.MethodPut:
		w.WriteHeader(l.store(u, digest.Digest(q.URL.Query().Get("digest"))))
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
	return true
}

// Write counts what follows the first bytes.
func (u *upload) Write(p []byte) (int, error) {
	u.size += int64(len(p))
	return len(p), nil
}

// store ends an upload, and returns the status to answer with.
func (l *Large) store(u *upload, d digest.Digest) int {
	size, ok := l.zeros[d]
	switch {
	case !ok && (u.size > 0 || l.Target.AddBlob(u.first.Bytes()) != d), ok && size != u.size+int64(u.first.Len()):
		return http.StatusBadRequest
	case ok:
		u.first = bytes.Buffer{}
		l.mu.Lock()
		l.have[d] = true
		l.mu.Unlock()
		if l.Uploaded != nil {
			l.Uploaded()
		}
	}
	return http.StatusCreated
}

// zeroes are any number of zeros.
type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func (zeroes) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}
