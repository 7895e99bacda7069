package serve

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// httpMetrics count the HTTP service for people and catalogd's clients: requests by status class, and bytes. They are
// safe for concurrent use.
type httpMetrics struct {
	answers [6]atomic.Uint64 // by the first digit of the status
	queries [6]atomic.Uint64 // those of GraphQL queries
	bytes   atomic.Uint64    // of answers as sent, without headers
	open    atomic.Int64     // requests
}

// count wraps a handler and counts its answers before the client sees them.
func (m *httpMetrics) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.open.Add(1)
		defer m.open.Add(-1)
		query := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/api/v1/graphql")
		h.ServeHTTP(&countedAnswer{ResponseWriter: w, metrics: m, query: query}, r)
	})
}

func (m *httpMetrics) write(t *promText) {
	const name = "bindery_http_requests_total"
	t.family(name, "counter", "Requests to --http-addr that were answered, by the class of the status.")
	for class := 2; class < len(m.answers); class++ {
		t.sample(name, float64(m.answers[class].Load()), "code", strconv.Itoa(class)+"xx")
	}
	const queries = "bindery_http_queries_total"
	t.family(queries, "counter", "GraphQL queries among these requests, by the class of the status.")
	for class := 2; class < len(m.queries); class++ {
		t.sample(queries, float64(m.queries[class].Load()), "code", strconv.Itoa(class)+"xx")
	}
	t.single("bindery_http_requests_open", "gauge", "Requests to --http-addr that are being answered.",
		float64(m.open.Load()))
	t.single("bindery_http_sent_bytes_total", "counter", "Bytes of these answers, compressed as they are.",
		float64(m.bytes.Load()))
}

// countedAnswer counts an answer when it begins, and its bytes.
type countedAnswer struct {
	http.ResponseWriter
	metrics *httpMetrics
	query   bool
	begun   bool
}

func (c *countedAnswer) begin(status int) {
	if !c.begun && status >= 200 {
		c.begun = true
		class := min(status/100, len(c.metrics.answers)-1)
		c.metrics.answers[class].Add(1)
		if c.query {
			c.metrics.queries[class].Add(1)
		}
	}
}

func (c *countedAnswer) WriteHeader(status int) {
	c.begin(status)
	c.ResponseWriter.WriteHeader(status)
}

func (c *countedAnswer) Write(b []byte) (int, error) {
	c.begin(http.StatusOK)
	c.metrics.bytes.Add(uint64(len(b)))
	return c.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] find the underlying writer.
func (c *countedAnswer) Unwrap() http.ResponseWriter { return c.ResponseWriter }
