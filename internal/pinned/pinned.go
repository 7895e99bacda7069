// Package pinned asks services that get tokens: each request goes to the host that it is for, and to no other one.
package pinned

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ParseURL takes https, and http to this machine alone. Its errors have neither a password nor a query.
func ParseURL(text string) (*url.URL, error) {
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

// Transport sends requests to URLs that [ParseURL] takes. One that fails, or is answered with 429 or 5xx, is repeated
// three times; each time may take 30 seconds. No redirection is followed: it could take a token to another host. Errors
// have no more of a URL than those of ParseURL. It is safe for concurrent use.
type Transport struct {
	// Context ends all requests, as some clients of libraries take none.
	Context context.Context
	// Most is the size of the largest answer in bytes.
	Most int64
	// Pause is the time before the first repetition, and doubles with each; a second if it is 0.
	Pause time.Duration
	// Answer, unless nil, is called with the body of each answer.
	Answer func([]byte)
}

// MaxRefusal is how many bytes of an answer that is an error are kept.
const MaxRefusal = 2 << 10

// cause returns why the context has ended, if it has, else the error.
func (t *Transport) cause(err error) error {
	if t.Context.Err() != nil {
		return context.Cause(t.Context)
	}
	return err
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := check(req.URL); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	defer context.AfterFunc(t.Context, func() { cancel(context.Cause(t.Context)) })()
	pause := cmp.Or(t.Pause, time.Second)
	repeat := retryablehttp.RoundTripper{Client: &retryablehttp.Client{
		HTTPClient: &http.Client{Timeout: 30 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		RetryWaitMin: pause, RetryWaitMax: 10 * pause, RetryMax: 3, CheckRetry: retryablehttp.DefaultRetryPolicy,
		Backoff: func(least, most time.Duration, n int, _ *http.Response) time.Duration {
			return retryablehttp.DefaultBackoff(least, most, n, nil) // a service does not say how long
		},
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}}
	resp, err := repeat.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, t.cause(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 3 {
		return nil, fmt.Errorf("%s redirects to another place (status %d), which is not followed", req.URL.Host,
			resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, t.Most+1))
	if err != nil {
		return nil, t.cause(err)
	}
	if int64(len(body)) > t.Most {
		return nil, fmt.Errorf("%w: %s answers with more than %d bytes", fault.ErrLimit, req.URL.Host, t.Most)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		// It becomes part of a message, and some servers repeat what they were sent.
		if _, token, ok := strings.Cut(req.Header.Get("Authorization"), " "); ok && token != "" {
			body = bytes.ReplaceAll(body, []byte(token), []byte("(the token)"))
		}
		body = body[:min(len(body), MaxRefusal)]
	}
	if t.Answer != nil {
		t.Answer(body)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
