package registry

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/verify"
)

const (
	// maxSources is how many repositories are tried for one blob: a registry that does not mount it opens an upload
	// session.
	maxSources = 2
	// maxRefusals is after how many refusals a repository is not tried again, unless a blob was mounted from it.
	maxRefusals = 3
)

// mounter mounts blobs from other repositories of the same registry. It is safe for concurrent use.
type mounter struct {
	repo    *repository
	sources sync.Map // of a path: a *mountSource
}

// mountSource is a repository to mount from.
type mountSource struct {
	repo             *repository // the target, with a token that can also read the source
	mounted, refused atomic.Int32
}

// candidates returns the paths of the repositories to try out of names: those in the same registry, without those that
// refused too often.
func (m *mounter) candidates(names []string) (paths []string) {
	for _, name := range names {
		named, err := reference.ParseNormalizedNamed(name)
		if err != nil || !reference.IsNameOnly(named) || reference.Domain(named) != reference.Domain(m.repo.name) {
			continue
		}
		if _, err := m.repo.host.r.allowed(named); err != nil {
			continue // what must not be read must not be mounted
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
	known, tried := m.sources.Load(path)
	return !tried || known.(*mountSource).mounted.Load() > 0 || known.(*mountSource).refused.Load() < maxRefusals
}

func (m *mounter) source(path string) *mountSource {
	reading := m.repo.withScopes(append(slices.Clone(m.repo.scopes), "repository:"+path+":pull")...)
	source, _ := m.sources.LoadOrStore(path, &mountSource{repo: reading})
	return source.(*mountSource)
}

// mount tries to mount a blob from repositories and returns the one that it came from. If no source has it, an upload
// session may be open. Failures are not errors, since the blob can be sent.
func (m *mounter) mount(ctx context.Context, u *blobUpload, names []string) (from string, mounted bool) {
	for _, path := range m.candidates(names) {
		if ctx.Err() != nil {
			return "", false
		}
		by := m.source(path)
		q := request{method: http.MethodPost, path: "/blobs/uploads/",
			query:   url.Values{"mount": {u.blob.Digest.String()}, "from": {path}}.Encode(),
			success: []int{http.StatusCreated, http.StatusAccepted}, header: idempotent, slow: true}
		resp, err := by.repo.try(ctx, q)
		mounted := err == nil && resp.StatusCode == http.StatusCreated
		if mounted {
			stored := digest.Digest(resp.Header.Get("Docker-Content-Digest"))
			// A registry that names another digest has not mounted the blob.
			mounted = verify.Digest(stored) != nil || stored == u.blob.Digest
		}
		if mounted {
			by.mounted.Add(1)
			return reference.Domain(m.repo.name) + "/" + path, true
		}
		by.refused.Add(1)
		if err == nil && u.next(resp) != nil {
			u.at = nil
		}
	}
	return "", false
}
