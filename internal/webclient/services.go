package webclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
)

// ParseServiceURL takes https, and http to this machine alone. Its errors have neither a password nor a query.
func ParseServiceURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: it is no URL, expected https://HOST", fault.ErrInvalid)
	}
	return u, check(u)
}

func check(u *url.URL) error {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	switch {
	case u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%w: %q, expected https://HOST", fault.ErrInvalid, shown.String())
	case u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback():
		return fmt.Errorf("%w: %q is not encrypted: http:// is for services of this machine (localhost)",
			errors.ErrUnsupported, shown.String())
	}
	return nil
}

// Service sends requests that have a token to URLs that [ParseServiceURL] takes. Each goes to the host that it is for, and
// to no other one: no redirect is followed. One that fails, or is answered with 429 or 5xx, is repeated three times; each
// time may take 30 seconds, and a service does not say how long to wait. Errors have no more of a URL than those of
// ParseServiceURL. It is safe for concurrent use.
type Service struct {
	// Context ends all requests, as some clients of libraries take none.
	Context context.Context
	// Most is the size of the largest answer in bytes.
	Most int64
	// Pause is the time before the first repetition, and doubles with each; a second if it is 0.
	Pause time.Duration
	// Answer, unless nil, is called with the body of each answer.
	Answer func([]byte)
}

const (
	// MaxRefusal is how many bytes of an answer that is an error are kept.
	MaxRefusal = 2 << 10
	// maxServiceBody is the size of the largest request.
	maxServiceBody = 64 << 20
	serviceRetries = 3
	serviceTime    = 30 * time.Second
)

// serviceTransport is that of all services.
var serviceTransport = sync.OnceValue(func() *http.Transport {
	return NewTransport(&tls.Config{MinVersion: tls.VersionTLS12})
})

// Client returns a client that sends its requests through the service.
func (t *Service) Client() *http.Client { return &http.Client{Transport: t} }

// RoundTrip implements [http.RoundTripper].
func (t *Service) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := check(req.URL); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	defer context.AfterFunc(t.Context, func() { cancel(context.Cause(t.Context)) })()
	var sent []byte
	if req.Body != nil {
		var err error
		sent, err = io.ReadAll(io.LimitReader(req.Body, maxServiceBody+1))
		if err = errors.Join(err, req.Body.Close()); err != nil {
			return nil, err
		}
		if len(sent) > maxServiceBody {
			return nil, fmt.Errorf("%w: a request of more than %d bytes", fault.ErrLimit, maxServiceBody)
		}
	}
	var resp *http.Response
	var body []byte
	for attempt := 1; ; attempt++ {
		var err error
		resp, body, err = t.once(ctx, req, sent)
		again := err != nil && IsTransient(err) || err == nil && IsTransientStatus(resp.StatusCode)
		if attempt <= serviceRetries && again && ctx.Err() == nil {
			_ = Sleep(ctx, Pause(cmp.Or(t.Pause, time.Second), attempt, 0))
			if ctx.Err() == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		break
	}
	if resp.StatusCode/100 == 3 {
		return nil, fmt.Errorf("%s redirects to another place (status %d), which is not followed", req.URL.Host,
			resp.StatusCode)
	}
	if int64(len(body)) > t.Most {
		return nil, fmt.Errorf("%w: %s answers with more than %d bytes", fault.ErrLimit, req.URL.Host, t.Most)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		// It becomes part of a message, and some servers repeat what they were sent.
		if _, token, ok := strings.Cut(req.Header.Get("Authorization"), " "); ok && token != "" {
			body = []byte(redact.NewToken(token).Text(string(body[:min(len(body), 16*MaxRefusal)])))
		}
		body = body[:min(len(body), MaxRefusal)]
	}
	if t.Answer != nil {
		t.Answer(body)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// once sends a request once, and reads one byte more than the largest answer has.
func (t *Service) once(ctx context.Context, req *http.Request, sent []byte) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, serviceTime, fmt.Errorf("%w for %v", ErrStalled, serviceTime))
	defer cancel()
	req = req.Clone(ctx)
	if req.Body != nil {
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(bytes.NewReader(sent)), nil, int64(len(sent))
	}
	resp, err := serviceTransport().RoundTrip(req)
	var body []byte
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(io.LimitReader(resp.Body, t.Most+1))
	}
	if err != nil && errors.Is(context.Cause(ctx), ErrStalled) {
		err = context.Cause(ctx)
	}
	return resp, body, err
}
