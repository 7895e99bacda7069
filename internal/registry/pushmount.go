package registry

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/verify"
)

const (
	// maxSources is how many repositories are asked for one blob: each question that is answered with no has begun an upload.
	maxSources = 2
	// maxRefusals is how often a repository may refuse before it is asked no more, unless a blob was mounted from it.
	maxRefusals = 3
)

// mounter asks the repositories of one registry that may have blobs for another repository there. It is safe for concurrent
// use.
type mounter struct {
	repo *repository
	// known says which repositories have a blob, and others may have any.
	known  blobLocator
	others []string

	mu      sync.Mutex
	sources map[string]*mountSource
}

// mountSource is a repository that may have blobs.
type mountSource struct {
	repo             *repository // the one that is pushed to, with the right to read the source
	mounted, refused int
}

// candidates are the repositories to ask for a blob: in the same registry, and not known to be of no use.
func (m *mounter) candidates(d digest.Digest) (paths []string) {
	names := slices.Clone(m.others)
	if m.known != nil {
		names = append(m.known.BlobRepositories(d), names...)
	}
	for _, name := range names {
		named, err := reference.ParseNormalizedNamed(name)
		if err != nil || !reference.IsNameOnly(named) || reference.Domain(named) != reference.Domain(m.repo.name) {
			continue
		}
		path := reference.Path(named)
		if path == m.repo.path || slices.Contains(paths, path) || !m.useful(path) {
			continue
		}
		if paths = append(paths, path); len(paths) == maxSources {
			break
		}
	}
	return paths
}

func (m *mounter) useful(path string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.sources[path]
	return known == nil || known.mounted > 0 || known.refused < maxRefusals
}

// source is the repository of that path.
func (m *mounter) source(path string) *mountSource {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sources == nil {
		m.sources = map[string]*mountSource{}
	}
	if m.sources[path] == nil {
		m.sources[path] = &mountSource{repo: m.repo.readingFrom(path)}
	}
	return m.sources[path]
}

// note remembers what a source has answered.
func (m *mounter) note(of *mountSource, mounted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mounted {
		of.mounted++
	} else {
		of.refused++
	}
}

// mount asks the registry to take a blob from another of its repositories, and returns which one that was. Where none can
// lend it the upload may have begun. Nothing that goes wrong here is an error: the blob can be sent.
func (m *mounter) mount(ctx context.Context, u *blobUpload) (from string, mounted bool) {
	for _, path := range m.candidates(u.blob.Digest) {
		if ctx.Err() != nil {
			return "", false
		}
		by := m.source(path)
		query := url.Values{"mount": {u.blob.Digest.String()}, "from": {path}}.Encode()
		q := request{method: http.MethodPost, success: []int{http.StatusCreated, http.StatusAccepted}, header: idempotent, slow: true}
		resp, err := by.repo.try(ctx, q, "/blobs/uploads/", query)
		mounted := err == nil && resp.StatusCode == http.StatusCreated
		if mounted {
			stored := digest.Digest(resp.Header.Get("Docker-Content-Digest"))
			mounted = verify.Digest(stored) != nil || stored == u.blob.Digest // not another blob
		}
		m.note(by, mounted)
		switch {
		case mounted:
			return reference.Domain(m.repo.name) + "/" + path, true
		case err == nil && u.next(resp) != nil:
			u.at = nil
		}
	}
	return "", false
}
