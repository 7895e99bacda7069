package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// manifestTypes are the media types of manifests that are accepted.
var manifestTypes = []string{
	v1.MediaTypeImageIndex, v1.MediaTypeImageManifest, manifest.DockerV2ListMediaType,
	manifest.DockerV2Schema2MediaType,
}

// request is one request to a registry.
type request struct {
	method        string   // GET by default, POST with a form
	url           *url.URL // by default that of the path in the repository, with the query
	path, query   string
	accept        []string
	authorization string
	from          int64 // the first byte of the range; 0 for all
	size          int64 // of the whole, with from, if it is known: not every registry takes a range without an end
	form          url.Values
	payload       *payload    // the body; nil for none
	header        http.Header // further headers
	success       []int       // the statuses of success; by default 200, and 206 with from
	slow          bool        // the registry works before it answers
	foreign       bool        // the URL is on another server, which gets no credentials
}

func (q *request) succeeded(status int) bool {
	if q.success != nil {
		return slices.Contains(q.success, status)
	}
	return status == http.StatusOK || status == http.StatusPartialContent && q.from > 0
}

func (q *request) build(ctx context.Context) (*http.Request, error) {
	method, body := q.method, io.Reader(nil)
	if q.form != nil {
		method, body = http.MethodPost, strings.NewReader(q.form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, method, q.url.String(), body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, q.header)
	if q.form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req, nil
}

// send sends a request once. The caller closes the body, whose Read fails when the transfer stalls.
func (h *host) send(ctx context.Context, q *request) (*http.Response, error) {
	ctx, release, err := h.r.o.Throttle.enter(ctx, h.address)
	if err != nil {
		return nil, err
	}
	w := &stallWatch{webclient.NewWatch(ctx, h.r.o.Stall), h.r.o.Throttle, release}
	req, err := q.build(w.Context)
	var up *uploading
	if err == nil && q.payload != nil {
		up, err = q.payload.attach(req, w)
	}
	if err != nil {
		w.stop()
		return nil, err
	}
	req.Header["Accept"] = q.accept
	if q.authorization != "" {
		req.Header.Set("Authorization", q.authorization)
	}
	if q.from > 0 {
		text := fmt.Sprintf("bytes=%d-", q.from)
		if q.size > 0 {
			text += fmt.Sprint(q.size - 1)
		}
		req.Header.Set("Range", text)
	}
	if agent := h.r.o.Registry.UserAgent; agent != "" {
		req.Header.Set("User-Agent", agent)
	}
	resp, err := h.do(req, q, w, up)
	if err != nil {
		w.stop()
		err = w.Cause(err)
		if failed := up.close(); failed != nil {
			err = failed // the error of the source is the cause
		}
		return nil, err
	}
	resp.Body = &watchedBody{body: resp.Body, watch: w, up: up}
	for _, text := range resp.Header.Values("Warning") {
		h.r.warn(h.name+text, store.Event{Kind: store.EventWarning, Destination: h.name,
			Err: fmt.Errorf("registry %s warns: %.300q", h.name, redact.Text(text))})
	}
	return resp, nil
}

// do sends a request under its watch. A body is watched while it is sent.
func (h *host) do(req *http.Request, q *request, w *stallWatch, up *uploading) (*http.Response, error) {
	switch {
	case up != nil:
		defer up.stop()
	case q.slow:
		defer w.Wait(w.Limit)()
	default:
		defer w.Wait(webclient.MaxHeaderWait)()
	}
	resp, err := h.client.Do(req)
	var of *url.Error
	if errors.As(err, &of) {
		// The query may have a signature for the storage of blobs.
		of.URL, _, _ = strings.Cut(of.URL, "?")
		of.URL = cutURL(of.URL)
	}
	if errors.Is(err, http.ErrSchemeMismatch) && h.skip && !h.plain {
		err = Wrap(fmt.Errorf("registry %s %w", h.name, ErrPlainHTTP))
	}
	return resp, err
}

// sendRetrying sends a request with the credentials, and repeats it after temporary failures. An error of reading the
// answer counts like a failure of the request.
func (p *repository) sendRetrying(ctx context.Context, q request, retries int, read func(*http.Response) error) error {
	return p.retry(ctx, retries, func() error {
		resp, err := p.sendOnce(ctx, q)
		if err != nil {
			return err
		}
		return errors.Join(read(resp), resp.Body.Close())
	})
}

// try sends a request once, and closes the body of the answer. A status that is a success in HTTP but not in the
// registry's protocol means that the server is no registry.
func (p *repository) try(ctx context.Context, q request) (*http.Response, error) {
	resp, err := p.sendOnce(ctx, q)
	if err != nil {
		var status *StatusError
		if errors.As(err, &status) && status.Status < 300 {
			err = fmt.Errorf("%w: %s does not answer as a registry does: %w", fault.ErrIntegrity, p.host.name, err)
		}
		return nil, err
	}
	return resp, resp.Body.Close()
}

// sendOnce sends a request with the credentials that the registry requires, as far as they are known, and once more if
// it answers with another challenge, as it does for the first request and for expired tokens.
func (p *repository) sendOnce(ctx context.Context, q request) (*http.Response, error) {
	base, err := p.host.base(ctx)
	if err != nil {
		return nil, err
	}
	if q.url == nil {
		if q.url, err = p.urlOf(base, q.path, q.query); err != nil {
			return nil, err
		}
	}
	return p.exchange(ctx, base, q)
}

// exchange is like sendOnce, for a request whose URL is set.
func (p *repository) exchange(ctx context.Context, base *url.URL, q request) (_ *http.Response, err error) {
	defer func() { err = p.host.r.withEnd(err) }()
	for second := false; ; second = true {
		if !q.foreign {
			if q.authorization, err = p.authorize(ctx, base, q.authorization); err != nil {
				return nil, err
			}
		}
		resp, err := p.host.send(ctx, &q)
		if err != nil {
			return nil, err
		}
		if q.succeeded(resp.StatusCode) {
			return resp, nil
		}
		if q.foreign {
			defer resp.Body.Close()
			return nil, statusError(resp)
		}
		if resp.StatusCode != http.StatusUnauthorized || second {
			defer resp.Body.Close()
			known, creds := p.credentials()
			return nil, refusal(resp, known, creds, q.authorization != "")
		}
		passOver(resp)
		p.host.learn(resp.Header)
		if len(p.host.wanted()) == 0 {
			// Some registries send the challenge only here.
			ping, err := p.host.send(ctx, &request{url: base})
			if err != nil {
				return nil, err
			}
			passOver(ping)
			p.host.learn(ping.Header)
		}
	}
}

// manifest reads a manifest by its tag or digest, and returns the header of the answer too.
func (p *repository) manifest(ctx context.Context, name string, accept []string,
	retries int) (text []byte, kind string, header http.Header, err error) {
	q := request{path: "/manifests/" + name, accept: accept}
	err = p.sendRetrying(ctx, q, retries, func(resp *http.Response) error {
		header = resp.Header
		kind, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
		text, err = io.ReadAll(io.LimitReader(resp.Body, limit.MaxManifest+1))
		switch {
		case err != nil:
			return err
		case len(text) > limit.MaxManifest:
			return fmt.Errorf("manifest: %w: more than %d bytes", fault.ErrLimit, limit.MaxManifest)
		case kind == "text/html" || bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")):
			return ofClass(store.ErrNoManifest, Wrap(fmt.Errorf(
				"%s answers with a page of %q: not a registry manifest", resp.Request.URL.Host, kind)))
		}
		return checkContentDigest(resp.Header, text)
	})
	return text, kind, header, err
}

// checkContentDigest compares a manifest with the digest in the header.
func checkContentDigest(header http.Header, text []byte) error {
	said := digest.Digest(header.Get("Docker-Content-Digest"))
	if said == "" || said.Validate() == nil && said.Algorithm() != digest.SHA256 {
		return nil
	}
	if got := digest.FromBytes(text); said != got {
		return fmt.Errorf("manifest: %w: Docker-Content-Digest is %.120q and the content has %s", fault.ErrIntegrity,
			string(said), got)
	}
	return nil
}

// urlOf returns the address of something in the repository. Its name is a tag or a digest wherever it comes from: a
// list of a registry could have one that leads to another repository.
func (p *repository) urlOf(base *url.URL, path, query string) (*url.URL, error) {
	kind, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	valid := true
	switch kind {
	case "manifests":
		valid = anchoredTag().MatchString(name) || digest.Digest(name).Validate() == nil
	case "blobs":
		valid = name == "uploads/" || digest.Digest(name).Validate() == nil
	}
	if !valid {
		return nil, Wrap(fmt.Errorf("%w: %s: %.140q is neither a tag nor a digest", fault.ErrInvalid, p.name.Name(),
			name))
	}
	u := *base
	u.Path, u.RawQuery = "/v2/"+p.path+path, query
	return &u, nil
}

var anchoredTag = lazyregexp.New("^" + reference.TagRegexp.String() + "$")

// location returns where an upload continues, and whether that is another server. Addresses are checked like those of
// redirects.
func (p *repository) location(resp *http.Response) (_ *url.URL, foreign bool, err error) {
	text, at := resp.Header.Get("Location"), resp.Request.URL
	to, err := at.Parse(text)
	if text == "" || err != nil || to.Host == "" {
		return nil, false,
			Wrap(fmt.Errorf("registry %s: invalid Location %.200q of an upload", p.host.name, redact.Text(text)))
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
		return nil, false, Wrap(fmt.Errorf("registry %s: refusing %.10s after https: upload at %.100q",
			p.host.name, to.Scheme, to.Host))
	}
	if err := webclient.CheckAddress(at.Hostname(), to.Hostname()); err != nil {
		return nil, false, Wrap(fmt.Errorf("registry %s: upload: %w", p.host.name, err))
	}
	home := p.host.address
	return to, webclient.HostPort(to) != webclient.HostPort(&url.URL{Scheme: to.Scheme, Host: home}), nil
}
