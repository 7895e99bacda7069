package testregistry

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Referrers configure the referrers API of a registry. Without it, requests of lists are answered with 404.
type Referrers struct {
	// API answers requests of lists, and Header adds OCI-Subject to the answers to manifests with a subject.
	API, Header bool
	// Page is how many descriptors a page has; 0 for all.
	Page int
	// WrongTypes gives descriptors the media type of the configuration as their artifact type, and no annotations.
	WrongTypes bool
}

// SetReferrers sets how the registry lists referrers.
func (r *Registry) SetReferrers(o Referrers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.referrers = o
}

// ConditionalPut makes the registry send ETags of manifests and honour If-Match and If-None-Match.
func (r *Registry) ConditionalPut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conditional = true
}

// Tags returns the tags of a repository, sorted.
func (r *Registry) Tags(repository string) (tags []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.manifests {
		if tag, ok := strings.CutPrefix(name, repository+":"); ok {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags
}

// Digests returns the digests of the manifests of a repository, sorted.
func (r *Registry) Digests(repository string) (found []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.manifests {
		if d, ok := strings.CutPrefix(name, repository+"@"); ok {
			found = append(found, d)
		}
	}
	slices.Sort(found)
	return found
}

// about is what the registry reads of a manifest.
type about struct {
	ArtifactType string            `json:"artifactType"`
	Annotations  map[string]string `json:"annotations"`
	Config       *v1.Descriptor    `json:"config"`
	Subject      *v1.Descriptor    `json:"subject"`
}

// listReferrers answers a request of a list.
func (r *Registry) listReferrers(w http.ResponseWriter, q *http.Request, repository string, subject digest.Digest) {
	if !r.referrers.API {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	found := []v1.Descriptor{}
	for name, m := range r.manifests {
		var a about
		if !strings.HasPrefix(name, repository+"@") || json.Unmarshal(m.text, &a) != nil ||
			a.Subject == nil || a.Subject.Digest != subject {
			continue
		}
		d := v1.Descriptor{MediaType: m.mediaType, Digest: digest.FromBytes(m.text), Size: int64(len(m.text)),
			ArtifactType: a.ArtifactType, Annotations: a.Annotations}
		if (d.ArtifactType == "" || r.referrers.WrongTypes) && a.Config != nil {
			d.ArtifactType = a.Config.MediaType
		}
		if r.referrers.WrongTypes {
			d.Annotations = nil
		}
		found = append(found, d)
	}
	slices.SortFunc(found, func(a, b v1.Descriptor) int { return strings.Compare(string(a.Digest), string(b.Digest)) })
	if n := r.referrers.Page; n > 0 {
		last := q.URL.Query().Get("last")
		at := slices.IndexFunc(found, func(d v1.Descriptor) bool { return string(d.Digest) > last })
		if at < 0 {
			at = len(found)
		}
		if found = found[at:]; len(found) > n {
			found = found[:n]
			w.Header().Add("Link", `</v2/>; rel="up"`)
			w.Header().Add("Link", fmt.Sprintf("<%s?last=%s>; rel=\"next\"", q.URL.Path, found[n-1].Digest))
		}
	}
	text, err := json.Marshal(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageIndex, Manifests: found})
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	answer(w, q, text, v1.MediaTypeImageIndex, true)
}

// met tells whether the conditions of a request to write a manifest are met.
func (r *Registry) met(q *http.Request, repository, name string) bool {
	if !r.conditional {
		return true
	}
	m, ok := r.manifests[repository+":"+name]
	if want := q.Header.Get("If-Match"); want != "" && (!ok || want != etag(m.text)) {
		return false
	}
	return !ok || q.Header.Get("If-None-Match") != "*"
}

func etag(text []byte) string { return `"` + digest.FromBytes(text).String() + `"` }

// Repositories returns the repositories with tags, sorted.
func (r *Registry) Repositories() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]bool{}
	for name := range r.manifests {
		if at := strings.LastIndexByte(name, ':'); at > 0 && !strings.Contains(name, "@") {
			found[name[:at]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
