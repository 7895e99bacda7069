package images

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
	// maxLenders is how many repositories are asked for one blob: each question that is answered with no has begun an upload.
	maxLenders = 2
	// maxRefusals is how often a repository may refuse before it is asked no more, unless it has lent something.
	maxRefusals = 3
)

// lending are the repositories of one registry that may lend blobs to one of its repositories. It is safe for concurrent
// use.
type lending struct {
	repo *repository
	// from is who might have a blob, beside others.
	from   Lenders
	others []string

	mu      sync.Mutex
	lenders map[string]*lender
}

// lender is one repository that may lend.
type lender struct {
	repo          *repository // the borrower, with the right to read the lender
	lent, refused int
}

// candidates are the repositories to ask for a blob: in the same registry, and not known to be of no use.
func (l *lending) candidates(d digest.Digest) (paths []string) {
	names := slices.Clone(l.others)
	if l.from != nil {
		names = append(l.from.Lenders(d), names...)
	}
	for _, name := range names {
		named, err := reference.ParseNormalizedNamed(name)
		if err != nil || !reference.IsNameOnly(named) || reference.Domain(named) != reference.Domain(l.repo.name) {
			continue
		}
		path := reference.Path(named)
		if path == l.repo.path || slices.Contains(paths, path) || !l.useful(path) {
			continue
		}
		if paths = append(paths, path); len(paths) == maxLenders {
			break
		}
	}
	return paths
}

func (l *lending) useful(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.lenders[path]
	return known == nil || known.lent > 0 || known.refused < maxRefusals
}

// lender finds the lender of that path.
func (l *lending) lender(path string) *lender {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lenders == nil {
		l.lenders = map[string]*lender{}
	}
	if l.lenders[path] == nil {
		l.lenders[path] = &lender{repo: l.repo.borrowing(path)}
	}
	return l.lenders[path]
}

// note remembers what a lender has answered.
func (l *lending) note(of *lender, lent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lent {
		of.lent++
	} else {
		of.refused++
	}
}

// mount asks the registry to take a blob from another of its repositories, and returns which one that was. Where none can
// lend it the upload may have begun. Nothing that goes wrong here is an error: the blob can be sent.
func (l *lending) mount(ctx context.Context, u *blobUpload) (from string, mounted bool) {
	for _, path := range l.candidates(u.blob.Digest) {
		if ctx.Err() != nil {
			return "", false
		}
		by := l.lender(path)
		query := url.Values{"mount": {u.blob.Digest.String()}, "from": {path}}.Encode()
		q := request{method: http.MethodPost, success: []int{http.StatusCreated, http.StatusAccepted}, header: idempotent, slow: true}
		resp, err := by.repo.try(ctx, q, "/blobs/uploads/", query)
		lent := err == nil && resp.StatusCode == http.StatusCreated
		if lent {
			said := digest.Digest(resp.Header.Get("Docker-Content-Digest"))
			lent = verify.Digest(said) != nil || said == u.blob.Digest // or something else was
		}
		l.note(by, lent)
		switch {
		case lent:
			return reference.Domain(l.repo.name) + "/" + path, true
		case err == nil && u.next(resp) != nil:
			u.at = nil
		}
	}
	return "", false
}
