package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/redact"
)

// manifestTypes are the media types of manifests that are accepted.
var manifestTypes = []string{
	v1.MediaTypeImageIndex, v1.MediaTypeImageManifest, manifest.DockerV2ListMediaType,
	manifest.DockerV2Schema2MediaType,
}

// request is one request to a registry.
type request struct {
	method        string // GET by default, POST with a form
	url           *url.URL
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

// succeeded tells whether a status is one of success.
func (q *request) succeeded(status int) bool {
	if q.success != nil {
		return slices.Contains(q.success, status)
	}
	return status == http.StatusOK || status == http.StatusPartialContent && q.from > 0
}

// build returns the request of net/http.
func (q *request) build(ctx context.Context) (*http.Request, error) {
	method, body := q.method, io.Reader(nil)
	if method == "" {
		method = http.MethodGet
	}
	if q.form != nil {
		method, body = http.MethodPost, strings.NewReader(q.form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, method, q.url.String(), body)
	if err != nil {
		return nil, err
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
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
	w := newStallWatch(ctx, h.r.o.Stall)
	w.throttle, w.release = h.r.o.Throttle, release
	req, err := q.build(w.ctx)
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
	if agent := h.r.o.Config.UserAgent; agent != "" {
		req.Header.Set("User-Agent", agent)
	}
	resp, err := h.do(req, q, w, up)
	if err != nil {
		w.stop()
		err = w.cause(h.explain(err))
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
		defer w.wait(w.limit)()
	default:
		defer w.wait(maxHeaderWait)()
	}
	resp, err := h.client.Do(req)
	var of *url.Error
	if errors.As(err, &of) {
		// The query may have a signature for the storage of blobs.
		of.URL, _, _ = strings.Cut(of.URL, "?")
		of.URL = cutURL(of.URL)
	}
	return resp, err
}

// explain replaces net/http's errors about a server without TLS.
func (h *host) explain(err error) error {
	if errors.Is(err, http.ErrSchemeMismatch) && h.skip && !h.plain {
		return classified{fmt.Errorf("registry %s %w", h.name, ErrPlainHTTP)}
	}
	return err
}

// get sends a request with the credentials, and repeats it after temporary failures. read, unless nil, reads the
// answer; its error counts like a failure of the request.
func (p *repository) get(ctx context.Context, path string, q request, retries int,
	read func(*http.Response) error) (resp *http.Response, err error) {
	err = retry(ctx, retries, p.host.r.backoff(), p.again, func() error {
		if resp, err = p.once(ctx, path, q); err != nil {
			return err
		}
		if read == nil {
			return nil
		}
		err := read(resp)
		return errors.Join(err, resp.Body.Close())
	})
	return resp, err
}

// again reports that a request is repeated.
func (p *repository) again(attempt int, err error) {
	p.host.r.event(store.Event{Kind: store.EventRetry, Destination: p.name.Name(), Attempt: attempt,
		Err: redact.Error(err)})
}

func (r *Client) backoff() time.Duration {
	if r.o.Backoff > 0 {
		return r.o.Backoff
	}
	return time.Second
}

// once sends a request with the credentials that the registry requires, as far as they are known, and once more if it
// answers with another challenge, as it does for the first request and for expired tokens.
func (p *repository) once(ctx context.Context, path string, q request) (*http.Response, error) {
	base, err := p.host.base(ctx)
	if err != nil {
		return nil, err
	}
	if q.url == nil {
		if q.url, err = p.at(base, path, ""); err != nil {
			return nil, err
		}
	}
	return p.exchange(ctx, base, q)
}

// exchange is once for a request whose URL is set.
func (p *repository) exchange(ctx context.Context, base *url.URL, q request) (_ *http.Response, err error) {
	if q.foreign {
		resp, err := p.host.send(ctx, &q)
		if err != nil {
			return nil, err
		}
		if !q.succeeded(resp.StatusCode) {
			defer resp.Body.Close()
			return nil, statusError(resp)
		}
		return resp, nil
	}
	for second := false; ; second = true {
		if q.authorization, err = p.authorize(ctx, base, q.authorization); err != nil {
			return nil, err
		}
		resp, err := p.host.send(ctx, &q)
		if err != nil {
			return nil, err
		}
		if q.succeeded(resp.StatusCode) {
			return resp, nil
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

// manifest reads a manifest by its tag or digest.
func (p *repository) manifest(ctx context.Context, name string, retries int) (text []byte, kind string, err error) {
	text, kind, _, err = p.manifestAnswer(ctx, name, request{accept: manifestTypes}, retries)
	return text, kind, err
}

// manifestAnswer is manifest with another request. It returns the header of the answer too.
func (p *repository) manifestAnswer(ctx context.Context, name string, q request,
	retries int) (text []byte, kind string, header http.Header, err error) {
	_, err = p.get(ctx, "/manifests/"+name, q, retries, func(resp *http.Response) error {
		header = resp.Header
		kind, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
		text, err = io.ReadAll(io.LimitReader(resp.Body, limit.MaxManifest+1))
		switch {
		case err != nil:
			return err
		case len(text) > limit.MaxManifest:
			return fmt.Errorf("manifest: %w: more than %d bytes", fault.ErrLimit, limit.MaxManifest)
		case kind == "text/html" || bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")):
			return ofClass(store.ErrNoManifest, classified{fmt.Errorf(
				"%s answers with a page of %q: not a registry manifest", resp.Request.URL.Host, kind)})
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

// StatusError is an answer of a registry that is no success.
type StatusError struct {
	// Status is the HTTP status, and Request the method and URL without credentials.
	Status  int
	Request string
	// Codes are the error codes in the answer (distribution specification, "Error Codes").
	Codes []string
	// Credentials is the file or helper of the credentials in the request; empty if it had none.
	Credentials string
	// NoSpace tells that the registry has no more space to write to. It is not asked again.
	NoSpace bool

	text       string
	retryAfter time.Duration
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: status %d %s%s", e.Request, e.Status, http.StatusText(e.Status), e.text)
}

// unauthorized tells whether the registry refuses the credentials.
func (e *StatusError) unauthorized() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && !slices.Contains(e.Codes,
		"TOOMANYREQUESTS")
}

// statusError reads an answer that is no success. It keeps a few codes and messages of the body.
func statusError(resp *http.Response) *StatusError {
	u := *resp.Request.URL
	u.RawQuery = ""
	e := &StatusError{Status: resp.StatusCode, Request: resp.Request.Method + " " + cutURL(u.Redacted()),
		retryAfter: retryAfter(resp.Header.Get("Retry-After"))}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var answer struct {
		Errors []struct{ Code, Message string }
	}
	if err == nil && json.Unmarshal(body, &answer) == nil {
		for _, one := range answer.Errors[:min(len(answer.Errors), 3)] {
			e.Codes = append(e.Codes, one.Code)
			e.text += fmt.Sprintf(": %.80q %.200q", one.Code, redact.Text(one.Message))
		}
	}
	if e.NoSpace = noSpace(resp.StatusCode, body); e.NoSpace {
		e.text += ": the registry has no more space"
	}
	return e
}

// noSpace tells whether an answer says that the registry's disk is full, or its quota used up. Docker's has the error
// of its system in the details of a status 500, as a text or as a number: ENOSPC and EDQUOT of Linux.
func noSpace(status int, body []byte) bool {
	if status < http.StatusInternalServerError || status == http.StatusInsufficientStorage {
		return status == http.StatusInsufficientStorage
	}
	return slices.ContainsFunc([]string{"no space left on device", "disk quota exceeded", `"Err":28}`, `"Err":122}`},
		func(text string) bool { return bytes.Contains(body, []byte(text)) })
}

// refusal is [statusError] for a request that may have had credentials. If they can be the reason, the error names
// their source: known tells whether they have been looked up, and shown whether the request had them.
func refusal(resp *http.Response, known bool, creds credentials, shown bool) error {
	e := statusError(resp)
	if !e.unauthorized() {
		return e
	}
	switch {
	case !known:
		e.text += " (sent without credentials: the registry named no way to show them)"
	case creds == credentials{}:
		e.text += " (no credentials were found for it)"
	case !shown:
		e.text += fmt.Sprintf(" (sent without credentials: those of %s are a token, "+
			"and the registry asks for a user and a password)", creds.source)
	default:
		e.Credentials = creds.source
		e.text += fmt.Sprintf(" (with the credentials of %s)", creds.source)
	}
	return e
}

// cutURL shortens a URL for messages: a registry may choose any for an upload.
func cutURL(u string) string {
	const most = 400
	if len(u) <= most {
		return u
	}
	return u[:most] + "..."
}

// retryAfter reads the header Retry-After: seconds or a time (RFC 9110). The result is at most maxBackoff.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(max(0, min(seconds, int64(maxBackoff/time.Second)))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(time.Until(at), maxBackoff))
	}
	return 0
}
