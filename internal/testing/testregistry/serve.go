package testregistry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

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
	if r.ruled(w, q, path, body) {
		return
	}
	switch {
	case path == "" || path == "/v2":
	case path == "_catalog":
		r.listRepositories(w, q)
	case strings.HasSuffix(path, "/tags/list"):
		r.listTags(w, q, strings.TrimSuffix(path, "/tags/list"))
	case strings.Contains(path, "/blobs/uploads/"):
		r.upload(w, q, body, broken)
	case strings.Contains(path, "/blobs/"):
		repository, d, _ := strings.Cut(path, "/blobs/")
		r.blob(w, q, repository, digest.Digest(d))
	case strings.Contains(path, "/referrers/"):
		repository, d, _ := strings.Cut(path, "/referrers/")
		r.listReferrers(w, q, repository, digest.Digest(d))
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
	if q.Method == http.MethodDelete {
		r.deleteManifest(w, repository, name)
		return
	}
	if q.Method == http.MethodPut {
		if (r.owned != nil || r.rules.Children) && !r.complete(repository, text) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN","message":"blob unknown to registry"}]}`)
			return
		}
		if !r.met(q, repository, name) {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		var a about
		if r.referrers.Header && json.Unmarshal(text, &a) == nil && a.Subject != nil {
			w.Header().Set("OCI-Subject", a.Subject.Digest.String())
		}
		tag := name
		if strings.HasPrefix(name, "sha256:") {
			tag = ""
		}
		w.Header().Set("Docker-Content-Digest",
			r.addManifest(repository, tag, q.Header.Get("Content-Type"), text).String())
		w.WriteHeader(http.StatusCreated)
		return
	}
	m, ok := r.manifests[repository+":"+name]
	if !ok {
		m, ok = r.manifests[repository+"@"+name]
	}
	if ok && !r.rules.NoDigest {
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(m.text).String())
		if r.conditional {
			w.Header().Set("ETag", etag(m.text))
		}
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

// upload handles a blob upload. What arrived of an interrupted body is kept.
func (r *Registry) upload(w http.ResponseWriter, q *http.Request, body []byte, broken error) {
	repository, _, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/v2/"), "/blobs/uploads/")
	have, begun := r.uploads[q.URL.Path]
	if q.Method == http.MethodPost {
		if d := digest.Digest(q.URL.Query().Get("mount")); r.mounts && r.owned != nil && r.has(
			q.URL.Query().Get("from"), d) {
			r.addTo(repository, d)
			w.Header().Set("Location", "/v2/"+repository+"/blobs/"+d.String())
			w.WriteHeader(http.StatusCreated)
			return
		}
		if d := digest.Digest(q.URL.Query().Get("digest")); r.onePost && broken == nil && d == digest.FromBytes(body) {
			r.blobs[d] = body
			r.addTo(repository, d)
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
		// the entry keeps the length of the map, from which the next upload gets its name
		r.uploads[q.URL.Path+" cancelled"] = nil
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
		// the entry keeps the length of the map, from which the next upload gets its name
		r.uploads[q.URL.Path+" done"] = nil
		if q.URL.Query().Get("digest") != d.String() {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w,
				`{"errors":[{"code":"DIGEST_INVALID","message":"provided digest did not match uploaded content"}]}`)
			return
		}
		r.blobs[d] = content
		r.addTo(repository, d)
		w.Header().Del("Location")
		w.WriteHeader(http.StatusCreated)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}
