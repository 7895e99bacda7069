// Package download gets documents from web servers that take no credentials: graphs of updates, signatures, archives.
package download

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// Options configure [New].
type Options struct {
	// CAFile, unless empty, has authorities that are trusted beside those of the system.
	CAFile string
	// UserAgent names the program.
	UserAgent string
	// Retries is how often a request is repeated that fails, or is answered with 429 or 5xx.
	Retries int
	// Pause is the time before the first repetition, and doubles with each; a second if it is 0.
	Pause time.Duration
	// Stall is how long a server may send nothing; a minute if it is 0.
	Stall time.Duration
}

// Client gets documents. It follows redirections, but from https to https only, and uses the proxies of the
// environment. Errors of its requests are of the class [fault.Network], and show no password and no query of a URL. It
// is safe for concurrent use.
type Client struct {
	o    Options
	http *retryablehttp.Client
}

// New returns a client.
func New(ctx context.Context, o Options) (*Client, error) {
	o.Stall = cmp.Or(o.Stall, time.Minute)
	pause := cmp.Or(o.Pause, time.Second)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = o.Stall
	if o.CAFile != "" {
		text, err := regularfile.ReadMounted(ctx, o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("CA file: %w", err)
		}
		roots, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		if !roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%w: no certificate in %s", fault.ErrInvalid, o.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &Client{o, &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		RetryWaitMin: pause, RetryWaitMax: 10 * pause, RetryMax: o.Retries,
		CheckRetry: retryablehttp.DefaultRetryPolicy, ErrorHandler: retryablehttp.PassthroughErrorHandler,
		Backoff: retryablehttp.DefaultBackoff,
	}}, nil
}

// maxRedirects is how many redirections are followed.
const maxRedirects = 10

func checkRedirect(to *http.Request, from []*http.Request) error {
	switch {
	case len(from) >= maxRedirects:
		return fmt.Errorf("more than %d redirections", maxRedirects)
	case to.URL.Scheme != "https" && from[0].URL.Scheme == "https":
		return fmt.Errorf("redirection to %s, which is not encrypted", shown(to.URL))
	}
	return nil
}

// Answer is what a server has answered, of any status.
type Answer struct {
	Status int
	// Type is the content type.
	Type string
	Body []byte
}

// maxShown is how many bytes of an answer a message has.
const maxShown = 100

// String describes an answer that is not what was wanted: its status, its type and its first bytes.
func (a *Answer) String() string {
	text := fmt.Sprintf("status %d, %s", a.Status, cmp.Or(printable.Text(a.Type), "no content type"))
	if body := bytes.TrimSpace(a.Body); len(body) > 0 {
		text += fmt.Sprintf(": %q", body[:min(len(body), maxShown)])
	}
	return text
}

// Get gets a document of at most so many bytes; a larger one is [fault.ErrLimit]. Other statuses than 200 are no error.
func (c *Client) Get(ctx context.Context, at, accept string, most int64) (*Answer, error) {
	body, a, err := c.Open(ctx, at, accept)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if a.Body, err = io.ReadAll(io.LimitReader(body, most+1)); err != nil {
		return nil, err
	}
	if int64(len(a.Body)) > most {
		return nil, fmt.Errorf("%w: %s answers with more than %d bytes", fault.ErrLimit, redact.Text(at), most)
	}
	return a, nil
}

// Open gets a document as a stream; the body of the answer is in it alone. The caller closes it.
func (c *Client) Open(ctx context.Context, at, accept string) (io.ReadCloser, *Answer, error) {
	u, err := ParseURL(at)
	if err != nil {
		return nil, nil, err
	}
	watched, cancel := context.WithCancelCause(ctx)
	req, err := retryablehttp.NewRequestWithContext(watched, http.MethodGet, u.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if c.o.UserAgent != "" {
		req.Header.Set("User-Agent", c.o.UserAgent)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		cancel(nil)
		return nil, nil, failed(ctx, u, err)
	}
	b := &body{ctx: watched, cancel: cancel, from: resp.Body, url: u, stall: c.o.Stall}
	return b, &Answer{Status: resp.StatusCode, Type: resp.Header.Get("Content-Type")}, nil
}

// ParseURL takes http and https with a host.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: %s is no URL, expected https://HOST/PATH", fault.ErrInvalid,
			fault.Quote(redact.Text(text)))
	}
	return u, nil
}

// shown is a URL without what may be secret.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// failed is the error of a request.
func failed(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := err.(*url.Error); ok { // its text has the query
		err = e.Err
	}
	return fmt.Errorf("%w: %s: %w", fault.ErrRegistry, shown(u), err)
}

// body is the body of an answer, whose reading ends when nothing comes.
type body struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	from   io.ReadCloser
	url    *url.URL
	stall  time.Duration
}

func (b *body) Read(p []byte) (int, error) {
	timer := time.AfterFunc(b.stall, func() { b.cancel(fmt.Errorf("nothing came for %s", b.stall)) })
	n, err := b.from.Read(p)
	timer.Stop()
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %s: %w", fault.ErrRegistry, shown(b.url), cmp.Or(context.Cause(b.ctx), err))
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.cancel(nil)
	return b.from.Close()
}
