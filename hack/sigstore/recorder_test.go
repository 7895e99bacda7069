package sigstore

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
)

// recorder stands before a server and keeps what is sent to it.
type recorder struct {
	*httptest.Server
	name string

	lock     sync.Mutex
	requests [][]byte
}

func newRecorder(name string, to http.Handler) *recorder {
	r := &recorder{name: name}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.keep(q)
		to.ServeHTTP(w, q)
	}))
	return r
}

// before records what is sent to a server.
func before(name, server string) *recorder {
	return newRecorder(name, &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(must(url.Parse(server)))
	}})
}

// host is the name of the server without the scheme.
func (r *recorder) host() string { return r.Listener.Addr().String() }

func (r *recorder) keep(q *http.Request) {
	body, err := io.ReadAll(q.Body)
	q.Body = io.NopCloser(bytes.NewReader(body))
	kept := fmt.Appendf(nil, "%s %s\n%v\n", q.Method, q.URL, q.Header)
	kept = append(kept, body...)
	if err != nil {
		kept = fmt.Appendf(kept, "\n%v", err)
	}
	if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
		plain, _ := io.ReadAll(z)
		kept = append(kept, plain...)
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.requests = append(r.requests, kept)
}

// saw is how many requests had a text in them.
func (r *recorder) saw(text string) (n int) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, q := range r.requests {
		if bytes.Contains(q, []byte(text)) {
			n++
		}
	}
	return n
}

// count is the number of requests.
func (r *recorder) count() int {
	r.lock.Lock()
	defer r.lock.Unlock()
	return len(r.requests)
}
