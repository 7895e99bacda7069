package testregistry

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
)

// Rules are the ways in which a registry differs from one that accepts everything; the zero value has none of them.
// Listing tags and repositories, and deleting, is always possible.
type Rules struct {
	// Ranges answers requests of a part of a blob with that part.
	Ranges bool
	// Children refuses manifests whose blobs or manifests are missing, as docker distribution does.
	Children bool
	// NoDelete refuses to delete manifests, and NoCatalog to list repositories.
	NoDelete, NoCatalog bool
	// Untags deletes tags alone, as the distribution specification has it.
	Untags bool
	// NoHead refuses HEAD, and NoDigest leaves out Docker-Content-Digest.
	NoHead, NoDigest bool
	// Page is how many names a page of tags or repositories has; 0 for all.
	Page int
	// MaxBlob is the size of the largest blob, in bytes; 0 for no limit. Larger ones are answered with 413.
	MaxBlob int
	// MaxPath is how many components the path of a repository may have; 0 for no limit.
	MaxPath int
	// Existing are the repositories that there are; nil for all. Others are unknown, and cannot be written.
	Existing []string
}

// SetRules replaces the rules of the registry.
func (r *Registry) SetRules(o Rules) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = o
}

// repositoryIn returns the repository of a request; empty for requests without one.
func repositoryIn(path string) string {
	for _, part := range []string{"/blobs/", "/manifests/", "/tags/list", "/referrers/"} {
		if name, _, ok := strings.Cut(path, part); ok {
			return name
		}
	}
	return ""
}

// ruled answers a request that breaks a rule, and tells whether it did.
func (r *Registry) ruled(w http.ResponseWriter, q *http.Request, path string, body []byte) bool {
	name := repositoryIn(path)
	switch o := r.rules; {
	case o.NoHead && q.Method == http.MethodHead && strings.Contains(path, "/manifests/"):
		refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED")
	case o.MaxPath > 0 && strings.Count(name, "/") >= o.MaxPath:
		refuse(w, http.StatusBadRequest, "NAME_INVALID")
	case o.Existing != nil && name != "" && !slices.Contains(o.Existing, name):
		refuse(w, http.StatusNotFound, "NAME_UNKNOWN")
	case o.MaxBlob > 0 && strings.Contains(path, "/uploads/") && len(body) > o.MaxBlob:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	default:
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errors":[{"code":%q,"message":"refused by a rule"}]}`, code)
}

// blob answers with a blob, or with a part of it.
func (r *Registry) blob(w http.ResponseWriter, q *http.Request, repository string, d digest.Digest) {
	content, there := r.blobs[d], r.has(repository, d)
	if there && r.rules.Ranges && q.Header.Get("Range") != "" {
		http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(content))
		return
	}
	answer(w, q, content, "application/octet-stream", there)
}

// listTags answers with the tags of a repository.
func (r *Registry) listTags(w http.ResponseWriter, q *http.Request, repository string) {
	tags := map[string]bool{}
	known := false
	for name := range r.manifests {
		known = known || strings.HasPrefix(name, repository+":") || strings.HasPrefix(name, repository+"@")
		if tag, ok := strings.CutPrefix(name, repository+":"); ok {
			tags[tag] = true
		}
	}
	if !known {
		refuse(w, http.StatusNotFound, "NAME_UNKNOWN")
		return
	}
	r.page(w, q, "tags", slices.Sorted(maps.Keys(tags)))
}

// listRepositories answers with the repositories.
func (r *Registry) listRepositories(w http.ResponseWriter, q *http.Request) {
	if r.rules.NoCatalog {
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED")
		return
	}
	names := map[string]bool{}
	for name := range r.manifests {
		names[name[:strings.IndexAny(name, ":@")]] = true
	}
	r.page(w, q, "repositories", slices.Sorted(maps.Keys(names)))
}

// page answers with a page of a sorted list.
func (r *Registry) page(w http.ResponseWriter, q *http.Request, member string, all []string) {
	query := q.URL.Query()
	last, most := query.Get("last"), r.rules.Page
	if n, err := strconv.Atoi(query.Get("n")); err == nil && n > 0 && (most == 0 || n < most) {
		most = n
	}
	at, found := slices.BinarySearch(all, last)
	if found {
		at++
	}
	if all = all[at:]; most > 0 && len(all) > most {
		all = all[:most]
		next := url.Values{"last": {all[most-1]}, "n": {fmt.Sprint(most)}}
		w.Header().Set("Link", fmt.Sprintf("<%s?%s>; rel=\"next\"", q.URL.Path, next.Encode()))
	}
	w.Header().Set("Content-Type", "application/json")
	var quoted []string
	for _, name := range all {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	fmt.Fprintf(w, `{%q:[%s]}`, member, strings.Join(quoted, ","))
}

// deleteManifest deletes a manifest and its tags.
func (r *Registry) deleteManifest(w http.ResponseWriter, repository, name string) {
	d := digest.Digest(name)
	if _, there := r.manifests[repository+":"+name]; there && r.rules.Untags {
		delete(r.manifests, repository+":"+name)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	_, there := r.manifests[repository+"@"+name]
	switch {
	case r.rules.NoDelete || d.Validate() != nil:
		refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED")
		return
	case !there:
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN")
		return
	}
	maps.DeleteFunc(r.manifests, func(key string, m stored) bool {
		return digest.FromBytes(m.text) == d && (strings.HasPrefix(key, repository+":") ||
			strings.HasPrefix(key, repository+"@"))
	})
	w.WriteHeader(http.StatusAccepted)
}
