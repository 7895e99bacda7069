package webclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// Options configure [NewClient].
type Options struct {
	// CAFile, unless empty, has authorities that are trusted beside those of the system.
	CAFile string
	// SkipTLSVerify accepts any certificate.
	SkipTLSVerify bool
	// UserAgent names the program.
	UserAgent string
	// Retries is how often a request is repeated if the server is busy or fails, or the connection breaks. However long
	// the server asks to wait, all pauses that it asks for have [MaxPause] together.
	Retries int
	// Pause is the time before the first repetition, and doubles with each; a second if it is 0.
	Pause time.Duration
	// Stall ends an attempt in which fewer than 16 KiB arrive in this time; a minute if it is 0.
	Stall time.Duration
	// Time is how long a document may take with all attempts; ten minutes if it is 0.
	Time time.Duration
}

// Client gets documents that need no credentials: graphs of updates, signatures, archives. Errors of its requests are of
// the class [fault.Network], and show no password and no query of a URL. It is safe for concurrent use.
type Client struct {
	o    Options
	http *http.Client
}

// NewClient returns a client.
func NewClient(ctx context.Context, o Options) (*Client, error) {
	o.Pause, o.Stall, o.Time = cmp.Or(o.Pause, time.Second), cmp.Or(o.Stall, defaultStall), cmp.Or(o.Time, 10*time.Minute)
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.SkipTLSVerify} //nolint:gosec // a user asks for it
	if o.CAFile != "" {
		text, err := regularfile.ReadMounted(ctx, o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("CA file: %w", err)
		}
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			return nil, err
		}
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%w: no certificate in %s", fault.ErrInvalid, o.CAFile)
		}
	}
	return &Client{o, New(NewTransport(config))}, nil
}

// Answer is what a server has answered, of any status.
type Answer struct {
	Status int
	// Type is the content type.
	Type string
	Body []byte

	elsewhere string // the host of another server that has answered, after a redirect
}

// maxShown is how many bytes of an answer a message has.
const maxShown = 100

// String describes an answer that is not what was wanted: its status, its type and its first bytes. Those of a server
// that was not asked, but redirected to, may be for others than the reader of a message.
func (a *Answer) String() string {
	text := fmt.Sprintf("status %d, %s", a.Status, cmp.Or(printable.Text(a.Type), "no content type"))
	if a.elsewhere != "" {
		return text + fmt.Sprintf(", of %s, to which it redirects", printable.Text(fault.Clip(a.elsewhere, maxShown)))
	}
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
	limited, cancel := context.WithTimeoutCause(ctx, c.o.Time, fmt.Errorf("it takes longer than %v", c.o.Time))
	asked := MaxPause
	for attempt := 1; ; attempt++ {
		b, resp, err := c.send(limited, u, accept)
		if attempt > c.o.Retries || limited.Err() != nil || err != nil && !IsTransient(err) ||
			err == nil && !IsTransientStatus(resp.StatusCode) {
			if err != nil {
				err = failed(ctx, limited, u, err)
				cancel()
				return nil, nil, err
			}
			b.cancel = cancel
			a := &Answer{Status: resp.StatusCode, Type: resp.Header.Get("Content-Type")}
			if from := resp.Request.URL; HostPort(from) != HostPort(u) {
				a.elsewhere = from.Host
			}
			return b, a, nil
		}
		var wait time.Duration
		if err == nil {
			wait = min(RetryAfter(resp.Header), asked)
			asked -= wait
			_ = b.Close()
		}
		_ = Sleep(limited, Pause(c.o.Pause, attempt, wait)) // the next attempt reports the end of the context
	}
}

// send sends a request once.
func (c *Client) send(ctx context.Context, u *url.URL, accept string) (*body, *http.Response, error) {
	w := NewWatch(ctx, c.o.Stall)
	req, err := http.NewRequestWithContext(w.Context, http.MethodGet, u.String(), nil)
	if err != nil {
		w.Stop()
		return nil, nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if c.o.UserAgent != "" {
		req.Header.Set("User-Agent", c.o.UserAgent)
	}
	done := w.Wait(MaxHeaderWait)
	resp, err := c.http.Do(req)
	done()
	if err != nil {
		err = w.Cause(err)
		w.Stop()
		return nil, nil, err
	}
	return &body{ctx: ctx, watch: w, from: resp.Body, url: u}, resp, nil
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

// failed is the error of a request, whose context ends with ctx or when its time is over.
func failed(ctx, limited context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if limited.Err() != nil {
		err = context.Cause(limited)
	}
	var e *url.Error
	if errors.As(err, &e) { // its text has the query
		err = e.Err
	}
	return networkError{fmt.Errorf("%s: %w", shown(u), err)}
}

// body is the body of an answer, read under a watch.
type body struct {
	ctx    context.Context // of all attempts
	cancel context.CancelFunc
	watch  *Watch
	from   io.ReadCloser
	url    *url.URL
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.watch.Read(b.from, p)
	if err != nil && err != io.EOF {
		err = networkError{fmt.Errorf("%s: %w", shown(b.url), cmp.Or(context.Cause(b.ctx), err))}
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.watch.Stop()
	if b.cancel != nil {
		b.cancel()
	}
	return b.from.Close()
}
