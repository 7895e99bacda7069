package webclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
)

func TestRetryAfterIsCapped(t *testing.T) {
	for text, want := range map[string][2]time.Duration{
		"1": {time.Second, time.Second}, "0": {}, "-5": {}, "1000000000000000000": {MaxPause, MaxPause},
		"99999999999999999999": {}, "soon": {}, "": {},
		"Tue, 01 Jan 2130 00:00:00 GMT": {MaxPause, MaxPause}, "Thu, 01 Jan 1970 00:00:00 GMT": {},
	} {
		if got := RetryAfter(http.Header{"Retry-After": {text}}); got < want[0] || got > want[1] {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A server outside leads nowhere inside, and no server to where clouds keep their credentials.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"example.com", "cdn.example.org", true},
		{"example.com", "203.0.113.7", true},
		{"example.com", "10.0.0.1", false},
		{"example.com", "127.0.0.1", false},
		{"example.com", "127.8.9.1", false},
		{"example.com", "0.0.0.0", false},
		{"example.com", "[::1]", false},
		{"example.com", "::ffff:127.0.0.1", false},
		{"example.com", "64:ff9b::a9fe:a9fe", false},
		{"example.com", "localhost", false},
		{"example.com", "LOCALHOST.", false},
		{"example.com", "a.localhost", false},
		{"203.0.113.7", "10.0.0.1", false},
		{"registry.lan", "10.0.0.1", true},
		{"registry", "10.0.0.1", true},
		{"localhost", "127.0.0.1", true},
		{"127.0.0.1", "localhost", true},
		{"10.0.0.1", "10.0.0.2", true},
		{"registry.lan", "169.254.169.254", false},
		{"localhost", "169.254.169.254", false},
		{"127.0.0.1", "169.254.169.254", false},
		{"10.0.0.1", "fe80::1%eth0", false},
		{"10.0.0.1", "fd00:ec2::254", false},
		{"10.0.0.1", "100.100.100.200", false},
		{"10.0.0.1", "metadata.google.internal", false},
		{"169.254.1.1", "169.254.169.254", false},
		{"169.254.1.1", "169.254.1.1", true},
	} {
		if err := CheckAddress(c.from, c.to); (err == nil) != c.ok {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
	for address, ok := range map[string]bool{"169.254.169.254:80": false, "[fe80::1%eth0]:80": false, "10.0.0.1:80": true} {
		if err := checkResolved("tcp", address, nil); (err == nil) != ok {
			t.Errorf("a name that resolves to %s: %v", address, err)
		}
	}
}

// TestRedirects follows the redirects of a server: of documents as of registries.
func TestRedirects(t *testing.T) {
	var elsewhere *httptest.Server
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, map[string]string{"/elsewhere": elsewhere.URL, "/file": "file:///etc/passwd", "/loop": "/loop",
			"/metadata": "http://169.254.169.254/latest/meta-data"}[r.URL.Path], http.StatusFound)
	}))
	defer s.Close()
	elsewhere = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "secret")
	}))
	defer elsewhere.Close()
	c, err := NewClient(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for path, message := range map[string]string{"/metadata": "refusing the private address 169.254.169.254",
		"/file": "file", "/loop": "more than 10 redirects"} {
		_, err := c.Get(t.Context(), s.URL+path, "", 100)
		if err == nil || !strings.Contains(err.Error(), message) || !errors.Is(err, fault.ErrRegistry) {
			t.Errorf("%s: %v", path, err)
		}
	}
	a, err := c.Get(t.Context(), s.URL+"/elsewhere", "", 100)
	if err != nil || a.Status != http.StatusForbidden || strings.Contains(a.String(), "secret") {
		t.Errorf("a message shows what a server says that was not asked: %v, %v", a, err)
	}
}

// pipes is a listener in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestTimes gets documents of servers that hold a client, in the time of a bubble.
func TestTimes(t *testing.T) {
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		least   time.Duration
		most    time.Duration
		message string
	}{
		"a Retry-After of a day": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "99999")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, MaxPause, 45 * time.Second, "status 503"},
		"one byte a second": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, " "); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				time.Sleep(time.Second)
			}
		}, time.Minute, 61 * time.Second, "nothing has moved"},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			4 * MaxHeaderWait, 4*MaxHeaderWait + 7*time.Second, "nothing has moved"},
		"fast enough, and without an end": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				time.Sleep(time.Second)
			}
		}, 10 * time.Minute, 10*time.Minute + time.Second, "it takes longer than 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, err := NewClient(t.Context(), Options{Retries: 3})
				if err != nil {
					t.Fatal(err)
				}
				listener := make(pipes)
				transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					listener <- far
					return near, nil
				}}
				client.http = New(transport)
				var serving sync.WaitGroup
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					serving.Add(1)
					defer serving.Done()
					c.answer(w, r)
				})}
				go func() { _ = server.Serve(listener) }()
				start := time.Now()
				text := ""
				if a, err := client.Get(t.Context(), "http://example.com/", "", 1<<30); err != nil {
					text = err.Error()
				} else {
					text = a.String()
				}
				if took := time.Since(start); !strings.Contains(text, c.message) || took < c.least || took > c.most {
					t.Errorf("after %v: %s", took, text)
				}
				transport.CloseIdleConnections()
				_ = server.Close()
				serving.Wait()
			})
		})
	}
}
