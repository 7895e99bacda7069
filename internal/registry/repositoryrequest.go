package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
)

// againError is an error after which another attempt is made, whatever its kind.
type againError struct{ error }

func (e *againError) Unwrap() error { return e.error }

// pushTo returns the repository for pushes. Mirrors are only for reading (containers-registries.conf(5)). The error is
// that of [Client.allowed].
func (r *Client) pushTo(named reference.Named) (*repository, error) {
	found, err := r.allowed(named)
	if err != nil {
		return nil, err
	}
	host, err := r.host(reference.Domain(named), found != nil && found.Insecure)
	if err != nil {
		return nil, err
	}
	p := &repository{host: host, path: reference.Path(named), name: reference.TrimNamed(named)}
	p.scopes = []string{"repository:" + p.path + ":pull,push"}
	return p, nil
}

// readingFrom returns the same repository with a token that can also read another repository, for mounts.
func (p *repository) readingFrom(from string) *repository {
	return &repository{host: p.host, path: p.path, name: p.name,
		scopes: append(slices.Clone(p.scopes), "repository:"+from+":pull")}
}

// try sends a request once, and closes the body of the answer. A status that is a success in HTTP but not in the
// registry's protocol means that the server is no registry.
func (p *repository) try(ctx context.Context, q request, path, query string) (*http.Response, error) {
	base, err := p.host.base(ctx)
	if err != nil {
		return nil, err
	}
	if q.url == nil {
		if q.url, err = p.at(base, path, query); err != nil {
			return nil, err
		}
	}
	resp, err := p.exchange(ctx, base, q)
	if err != nil {
		var status *StatusError
		if errors.As(err, &status) && status.Status < 300 {
			err = fmt.Errorf("%w: %s does not answer as a registry does: %w", fault.ErrIntegrity, p.host.name, err)
		}
		return nil, err
	}
	return resp, resp.Body.Close()
}

// at returns the address of something in the repository. Its name is a tag or a digest wherever it comes from: a list of
// a registry could have one that leads to another repository.
func (p *repository) at(base *url.URL, path, query string) (*url.URL, error) {
	kind, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	valid := true
	switch kind {
	case "manifests":
		valid = anchoredTag.MatchString(name) || digest.Digest(name).Validate() == nil
	case "blobs":
		valid = name == "uploads/" || digest.Digest(name).Validate() == nil
	}
	if !valid {
		return nil, classified{fmt.Errorf("%w: %s: %.140q is neither a tag nor a digest", fault.ErrInvalid, p.name.Name(), name)}
	}
	u := *base
	u.Path, u.RawQuery = "/v2/"+p.path+path, query
	return &u, nil
}

var anchoredTag = regexp.MustCompile("^" + reference.TagRegexp.String() + "$")

// location returns where an upload continues, and whether that is another server. Addresses are checked like those of
// redirects.
func (p *repository) location(resp *http.Response) (_ *url.URL, foreign bool, err error) {
	text, at := resp.Header.Get("Location"), resp.Request.URL
	to, err := at.Parse(text)
	if text == "" || err != nil || to.Host == "" {
		return nil, false,
			classified{fmt.Errorf("registry %s: invalid Location %.200q of an upload", p.host.name, redact.Text(text))}
	}
	to.User, to.Fragment = nil, ""
	// A registry may not know that a proxy before it adds or removes TLS.
	switch {
	case at.Scheme == "https" && to.Scheme == "http" && strings.EqualFold(at.Hostname(), to.Hostname()):
		to.Scheme, to.Host = "https", at.Host
	case at.Scheme == "http" && to.Scheme == "https" && to.Port() != "" && strings.EqualFold(at.Host, to.Host):
		to.Scheme = "http"
	}
	if to.Scheme != "https" && (to.Scheme != "http" || at.Scheme == "https") {
		return nil, false, classified{fmt.Errorf("registry %s: refusing %.10s after https: upload at %.100q",
			p.host.name, to.Scheme, to.Host)}
	}
	if err := checkAddress(at.Hostname(), to.Hostname()); err != nil {
		return nil, false, classified{fmt.Errorf("registry %s: upload: %w", p.host.name, err)}
	}
	home := p.host.address
	return to, hostPort(to) != hostPort(&url.URL{Scheme: to.Scheme, Host: home}), nil
}

// hasStatus tells whether an error is an answer of a registry with one of the statuses.
func hasStatus(err error, statuses ...int) bool {
	var status *StatusError
	return errors.As(err, &status) && slices.Contains(statuses, status.Status)
}

// hasCode tells whether an error is an answer of a registry with one of the codes.
func hasCode(err error, codes ...string) bool {
	var status *StatusError
	return errors.As(err, &status) && slices.ContainsFunc(status.Codes,
		func(c string) bool { return slices.Contains(codes, c) })
}

// hasCodes tells whether an error is an answer of a registry with any code.
func hasCodes(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && len(status.Codes) > 0
}
