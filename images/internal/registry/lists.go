package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
)

const (
	// listPage is how many names are requested at a time.
	listPage = 1000
	// maxListed and maxListPages bound lists of tags and repositories; maxListText bounds a page in bytes.
	maxListed    = 1_000_000
	maxListPages = 20_000
	maxListText  = 16 << 20
)

// ErrNoCatalog is the error of a registry that does not list its repositories, or not for these credentials.
var ErrNoCatalog = errors.New("the registry does not list its repositories")

// Tags returns the tags of the repository in the order of the registry. Unless pages is 0, it reads at most that number
// of pages of the list, with a request for each. all tells whether these are all tags. The error is [fs.ErrNotExist] if
// there is no such repository, and also [store.ErrNoRepository] if the registry says so: an address that it does not know
// is answered with 404 too.
func (r *Repository) Tags(ctx context.Context, pages int) (tags []string, all bool, err error) {
	pages = cmp.Or(pages, maxListPages)
	tags, err = r.repo.names(ctx, "/v2/"+r.repo.path+"/tags/list", "tags", pages)
	if errors.Is(err, errMorePages) && pages < maxListPages {
		return tags, false, nil
	}
	if err != nil {
		is := notFoundError(fmt.Errorf("tags of %s: %w", r.Name(), err))
		if hasStatus(err, http.StatusNotFound) && hasCode(err, "NAME_UNKNOWN") {
			r.empty.Store(true)
			is = ofClass(store.ErrNoRepository, is)
		}
		return nil, false, is
	}
	return tags, true, nil
}

// errMorePages is the error of a list with more pages than are wanted.
var errMorePages = fmt.Errorf("%w: too many pages", fault.ErrLimit)

// Repositories returns the paths of all repositories of a registry, in its order. The error is [ErrNoCatalog] if the
// registry does not tell them.
func (r *Client) Repositories(ctx context.Context, host string) ([]string, error) {
	p, err := r.openRegistry(host, "registry:catalog:*")
	if err != nil {
		return nil, redact.Error(Wrap(err))
	}
	found, err := p.names(ctx, "/v2/_catalog", "repositories", maxListPages)
	if IsUnauthorized(err) || hasStatus(err, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusNotImplemented, http.StatusBadRequest) {
		return nil, redact.Error(remoteError(fmt.Errorf("registry %s: %w: %w", host, ErrNoCatalog, err)))
	}
	if err != nil {
		return nil, redact.Error(remoteError(fmt.Errorf("repositories of %s: %w", host, err)))
	}
	return found, nil
}

// Ping asks the registry of HOST[:PORT][/PATH] whether it is one and accepts the credentials for that path.
func (r *Client) Ping(ctx context.Context, at string) error {
	p, err := r.openRegistry(at)
	if err != nil {
		return redact.Error(Wrap(err))
	}
	return r.ping(ctx, p, at)
}

// Login is like Ping, with a user name and a password in place of the credentials that are configured.
func (r *Client) Login(ctx context.Context, at, user, password string) error {
	p, err := r.openRegistry(at)
	if err != nil {
		return redact.Error(Wrap(err))
	}
	p.creds, p.known = credentials{user: user, secret: password, source: "this login"}, true
	return r.ping(ctx, p, at)
}

func (r *Client) ping(ctx context.Context, p *repository, at string) error {
	err := p.retry(ctx, r.o.Retries, func() error {
		_, err := p.try(ctx, request{})
		return err
	})
	if err != nil {
		return redact.Error(remoteError(fmt.Errorf("registry %s: %w", registryOf(at), err)))
	}
	return nil
}

// registryOf returns the registry of HOST[:PORT][/PATH].
func registryOf(at string) string {
	host, _, _ := strings.Cut(at, "/")
	return host
}

// openRegistry returns a registry as a repository without a path, with the credentials for what is at
// HOST[:PORT][/PATH].
func (r *Client) openRegistry(at string, scopes ...string) (*repository, error) {
	named, err := reference.ParseNormalizedNamed(at + "/registry")
	if err != nil || reference.Domain(named) != registryOf(at) {
		return nil, fmt.Errorf("%w: %.300q is no HOST[:PORT] of a registry", fault.ErrInvalid, at)
	}
	p, err := r.pushTo(named)
	if err != nil {
		return nil, err
	}
	p.path, p.scopes = "", scopes
	return p, nil
}

// names reads a list of names. With errMorePages the names of the first pages are returned.
func (p *repository) names(ctx context.Context, path, member string, most int) ([]string, error) {
	base, err := p.host.base(ctx)
	if err != nil {
		return nil, err
	}
	first := *base
	first.Path = path
	first.RawQuery = url.Values{"n": {fmt.Sprint(listPage)}}.Encode()
	return pages(ctx, p, request{url: &first}, most, maxListed, func(resp *http.Response) (page []string, err error) {
		text, err := readAtMost(resp, maxListText, "page")
		if err != nil {
			return nil, err
		}
		var answer map[string]json.RawMessage
		if json.Unmarshal(text, &answer) != nil || answer[member] == nil ||
			json.Unmarshal(answer[member], &page) != nil {
			return nil, fmt.Errorf("%w: the answer is no list of %s", fault.ErrInvalid, member)
		}
		return page, nil
	})
}

// pages reads a list page by page, beginning at the URL of the request; more pages than most, or more entries than
// entries, are an error. With errMorePages the entries of the first pages are returned.
func pages[T any](ctx context.Context, p *repository, q request, most, entries int,
	read func(*http.Response) ([]T, error)) (all []T, err error) {
	seen := map[string]bool{}
	for q.url != nil {
		at := q.url
		if seen[at.RawQuery] {
			return nil, fmt.Errorf("%w: a page twice", fault.ErrLimit)
		}
		if len(seen) == most {
			return all, fmt.Errorf("%w: more than %d", errMorePages, most)
		}
		seen[at.RawQuery] = true
		var page []T
		var next *url.URL
		err := p.sendRetrying(ctx, q, p.host.r.o.Retries, func(resp *http.Response) (err error) {
			if page, err = read(resp); err == nil {
				next, err = nextPage(at, resp.Header.Values("Link"))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); len(all) > entries {
			return nil, fmt.Errorf("%w: a list of more than %d", fault.ErrLimit, entries)
		}
		q.url = next
	}
	return all, nil
}

// readAtMost reads an answer, which an error calls by what it is.
func readAtMost(resp *http.Response, most int64, what string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%w: a %s of more than %d bytes", fault.ErrLimit, what, most)
	}
	return text, err
}

// Tags lists the tags of the repository of a name, in the registry or the mirror where its image would be read.
func (r *Client) Tags(ctx context.Context, named reference.Named) (tags []string, err error) {
	err = r.ask(ctx, named, func(from endpoint, _ bool) error {
		tags, _, err = (&Repository{repo: from.repo, source: true}).Tags(ctx, 0)
		return err
	})
	return tags, err
}
