package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"path"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// metricsType is the content type of Prometheus' text format.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// loadMetrics count how loading catalogs went. They are safe for concurrent use.
type loadMetrics struct {
	loaded, failed, torn atomic.Uint64
	lastFailed           atomic.Bool  // the last attempt failed
	loadedAt             atomic.Int64 // Unix milliseconds; 0 before the first catalog
	took                 atomic.Int64 // nanoseconds, of the last loaded catalog
}

func (m *loadMetrics) done(start time.Time, err error) {
	m.lastFailed.Store(err != nil)
	if err != nil {
		m.failed.Add(1)
		return
	}
	m.loaded.Add(1)
	m.took.Store(int64(time.Since(start)))
	m.loadedAt.Store(time.Now().UnixMilli())
}

// exposition is the content of /metrics.
type exposition struct {
	server  *server
	loads   *loadMetrics
	cert    *certificate // nil without TLS
	http    *httpMetrics // nil without an HTTP service
	version string
}

func (e *exposition) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != "/metrics":
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(30 * time.Second))
	text := e.text()
	h := w.Header()
	h.Set("Content-Type", metricsType)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.Write(text)
}

func (e *exposition) text() []byte {
	t := &promText{b: make([]byte, 0, 32<<10)}
	writeCallMetrics(t, e.server.calls)
	e.server.writeMetrics(t)
	e.writeLoads(t)
	if e.http != nil {
		e.http.write(t)
	}
	writeRuntime(t)
	writeProcess(t)
	t.family("bindery_build_info", "gauge", "The program that serves; always 1.")
	t.sample("bindery_build_info", 1, "version", e.version, "goversion", runtime.Version(), "goos", runtime.GOOS,
		"goarch", runtime.GOARCH)
	return t.b
}

func (e *exposition) writeLoads(t *promText) {
	m := e.loads
	const name = "bindery_catalog_loads_total"
	t.family(name, "counter",
		"Attempts to load the catalog; changed means that it changed meanwhile, so that it was loaded again.")
	t.sample(name, float64(m.loaded.Load()), "result", "success")
	t.sample(name, float64(m.failed.Load()), "result", "failure")
	t.sample(name, float64(m.torn.Load()), "result", "changed")
	failed := 0.
	if m.lastFailed.Load() {
		failed = 1
	}
	t.single("bindery_catalog_last_load_failed", "gauge",
		"Whether the last attempt to load the catalog failed, so that an older one is served or none.", failed)
	t.single("bindery_catalog_loaded_timestamp_seconds", "gauge", "When the catalog was loaded; 0 before that.",
		float64(m.loadedAt.Load())/1e3)
	t.single("bindery_catalog_load_duration_seconds", "gauge", "How long loading that catalog took.",
		time.Duration(m.took.Load()).Seconds())
	if e.cert != nil {
		t.single("bindery_tls_certificate_not_after_timestamp_seconds", "gauge", "When the TLS certificate runs out.",
			float64(e.cert.notAfter().Unix()))
		t.single("bindery_tls_certificate_load_failures_total", "counter",
			"How often changed TLS files could not be used.", float64(e.cert.failures.Load()))
	}
}

// writeMetrics adds the metrics of connections and the catalog.
func (s *server) writeMetrics(t *promText) {
	if g := s.gate.Load(); g != nil {
		t.single("bindery_server_connections", "gauge", "Connections that are open.", float64(g.open.Load()))
		t.single("bindery_server_connections_accepted_total", "counter", "Connections that were taken.",
			float64(g.accepted.Load()))
		t.single("bindery_server_connections_evicted_total", "counter",
			"Connections that were closed before they had said anything, for others.", float64(g.evicted.Load()))
	}
	t.single("bindery_server_connections_limit", "gauge", "How many connections may be open.",
		float64(s.limits.Connections))
	t.single("bindery_server_answer_bytes", "gauge", "Memory of the answers that are being sent.",
		float64(s.budget.taken()))
	t.single("bindery_server_answer_bytes_limit", "gauge", "How much memory these answers may take.",
		float64(s.budget.limit))
	var packages, channels, bundles int
	var size int64
	ready := 0.
	if c, err := s.catalog(); err == nil {
		ready = 1
		packages = len(c.packages)
		for _, p := range c.packages {
			channels += len(p.channels)
			bundles += len(p.bundles)
		}
		for _, p := range c.customs {
			size += p.size
		}
		c.release()
	}
	t.single("bindery_catalog_ready", "gauge", "Whether there is a catalog to serve.", ready)
	t.single("bindery_catalog_packages", "gauge", "Packages of the catalog.", float64(packages))
	t.single("bindery_catalog_channels", "gauge", "Channels of the catalog.", float64(channels))
	t.single("bindery_catalog_bundles", "gauge", "Bundles of the catalog.", float64(bundles))
	t.single("bindery_catalog_cache_bytes", "gauge", "Bytes of the cache files from which the catalog is served.",
		float64(size))
}

// runtimeMetrics are Go runtime metrics under the names of Prometheus' Go client.
var runtimeMetrics = [...]struct{ from, name, kind, help string }{
	{"/sched/goroutines:goroutines", "go_goroutines", "gauge", "Goroutines that exist."},
	{"/gc/cycles/total:gc-cycles", "go_gc_cycles_total", "counter", "Garbage collections that were completed."},
	{"/gc/gomemlimit:bytes", "go_gc_gomemlimit_bytes", "gauge", "The limit of memory that Go has been given."},
	{"/gc/heap/live:bytes", "go_gc_heap_live_bytes", "gauge", "Heap that the last garbage collection found in use."},
	{"/memory/classes/heap/objects:bytes", "go_memstats_heap_alloc_bytes", "gauge", "Heap in use, garbage included."},
	{"/memory/classes/total:bytes", "go_memstats_sys_bytes", "gauge", "Memory that Go has mapped."},
	{"/memory/classes/heap/released:bytes", "go_memstats_heap_released_bytes", "gauge",
		"Of it what was given back to the system."},
}

func writeRuntime(t *promText) {
	samples := make([]metrics.Sample, len(runtimeMetrics))
	for i, m := range runtimeMetrics {
		samples[i].Name = m.from
	}
	metrics.Read(samples)
	for i, m := range runtimeMetrics {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			t.single(m.name, m.kind, m.help, float64(samples[i].Value.Uint64()))
		}
	}
}

// latencyBuckets are the upper bounds of the histogram of durations, in seconds.
var latencyBuckets = [...]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
	30}

// numCodes is one more than the largest code of gRPC.
const numCodes = int(codes.Unauthenticated) + 1

// callMetrics are the metrics of one method. They are safe for concurrent use.
type callMetrics struct {
	service, method, kind string

	started  atomic.Uint64
	handled  [numCodes]atomic.Uint64
	messages atomic.Uint64 // sent
	bytes    atomic.Uint64 // of these, before compression and framing
	buckets  [len(latencyBuckets) + 1]atomic.Uint64
	nanos    atomic.Int64
}

// newCallMetrics returns metrics for all methods of a server by full name. Other names have none, so that a request
// never creates a label.
func newCallMetrics(s *grpc.Server) map[string]*callMetrics {
	all := map[string]*callMetrics{}
	for service, info := range s.GetServiceInfo() {
		for _, m := range info.Methods {
			kind := "unary"
			switch {
			case m.IsClientStream && m.IsServerStream:
				kind = "bidi_stream"
			case m.IsClientStream:
				kind = "client_stream"
			case m.IsServerStream:
				kind = "server_stream"
			}
			all["/"+service+"/"+m.Name] = &callMetrics{service: service, method: m.Name, kind: kind}
		}
	}
	return all
}

// codeOf returns the status code that a client receives.
func codeOf(err error) codes.Code {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Code()
	}
	return status.Code(err)
}

func (m *callMetrics) done(took time.Duration, code codes.Code, messages, bytes uint64) {
	if m == nil {
		return
	}
	if int(code) >= numCodes {
		code = codes.Unknown
	}
	m.messages.Add(messages)
	m.bytes.Add(bytes)
	m.nanos.Add(int64(took))
	at, _ := slices.BinarySearch(latencyBuckets[:], took.Seconds())
	m.buckets[at].Add(1)
	m.handled[code].Add(1)
}

// observe counts a call that ends when the returned function is called. At debug level it logs the method and the
// result, but nothing of the request.
func (s *server) observe(ctx context.Context, fullMethod string) func(err error, messages, bytes uint64) {
	m := s.calls[fullMethod]
	if m != nil {
		m.started.Add(1)
	}
	start := time.Now()
	return func(err error, messages, bytes uint64) {
		took, code := time.Since(start), codeOf(err)
		m.done(took, code, messages, bytes)
		if s.log.Enabled(ctx, slog.LevelDebug) {
			s.log.LogAttrs(ctx, slog.LevelDebug, "call", slog.String("method", path.Base(fullMethod)),
				slog.String("code", code.String()),
				slog.Duration("duration", took), slog.Uint64("messages", messages), slog.Uint64("bytes", bytes))
		}
	}
}

// messageSize returns the size of a message in wire form. It must be called before the message is sent.
func messageSize(m any) uint64 {
	switch m := m.(type) {
	case answer:
		return uint64(m.data.Len())
	case proto.Message:
		return uint64(proto.Size(m))
	}
	return 0
}

func (s *server) observeUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler) (_ any, err error) {
	requestCame(ctx)
	done := s.observe(ctx, info.FullMethod)
	var sent, size uint64
	defer func() { done(err, sent, size) }()
	defer s.recover(info.FullMethod, &err)
	reply, err := handler(ctx, req)
	if err == nil {
		sent, size = 1, messageSize(reply)
	}
	return reply, err
}

func (s *server) observeStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handler grpc.StreamHandler) (err error) {
	counted := &countedStream{ServerStream: timedStream{stream}}
	done := s.observe(stream.Context(), info.FullMethod)
	defer func() { done(err, counted.messages, counted.bytes) }()
	defer s.recover(info.FullMethod, &err)
	return handler(srv, counted)
}

// countedStream counts sent messages. Like any stream it has one sender at a time.
type countedStream struct {
	grpc.ServerStream
	messages, bytes uint64
}

func (s *countedStream) SendMsg(m any) error {
	size := messageSize(m)
	if err := s.ServerStream.SendMsg(m); err != nil {
		return err
	}
	s.messages++
	s.bytes += size
	return nil
}

// writeCallMetrics adds the metrics of all methods under the usual names for gRPC servers.
func writeCallMetrics(t *promText, all map[string]*callMetrics) {
	sorted := slices.SortedFunc(maps.Values(all), func(a, b *callMetrics) int {
		return cmp.Or(strings.Compare(a.service, b.service), strings.Compare(a.method, b.method))
	})
	labels := func(m *callMetrics, more ...string) []string {
		return append([]string{"grpc_type", m.kind, "grpc_service", m.service, "grpc_method", m.method}, more...)
	}
	counter := func(name, help string, value func(*callMetrics) uint64) {
		t.family(name, "counter", help)
		for _, m := range sorted {
			t.sample(name, float64(value(m)), labels(m)...)
		}
	}
	// Read before the number of started calls: otherwise more calls could have ended than started.
	handled := make([][numCodes]uint64, len(sorted))
	for i, m := range sorted {
		for code := range m.handled {
			handled[i][code] = m.handled[code].Load()
		}
	}
	counter("grpc_server_started_total", "Calls that were begun.",
		func(m *callMetrics) uint64 { return m.started.Load() })
	const name = "grpc_server_handled_total"
	t.family(name, "counter", "Calls that have ended, by the code that the client was told.")
	for i, m := range sorted {
		for code, n := range handled[i] {
			if n > 0 || code == int(codes.OK) {
				t.sample(name, float64(n), labels(m, "grpc_code", codes.Code(code).String())...)
			}
		}
	}
	counter("grpc_server_msg_sent_total", "Messages that were sent.",
		func(m *callMetrics) uint64 { return m.messages.Load() })
	counter("bindery_server_sent_bytes_total", "Bytes of the messages that were sent.",
		func(m *callMetrics) uint64 { return m.bytes.Load() })
	writeLatency(t, sorted, labels)
}

func writeLatency(t *promText, sorted []*callMetrics, labels func(*callMetrics, ...string) []string) {
	const name = "grpc_server_handling_seconds"
	t.family(name, "histogram", "Time from the request to the end of the answer.")
	for _, m := range sorted {
		var sum uint64
		nanos := m.nanos.Load()
		for i := range m.buckets {
			sum += m.buckets[i].Load()
			bound := "+Inf"
			if i < len(latencyBuckets) {
				bound = string(appendValue(nil, latencyBuckets[i]))
			}
			t.sample(name+"_bucket", float64(sum), labels(m, "le", bound)...)
		}
		t.sample(name+"_sum", time.Duration(nanos).Seconds(), labels(m)...)
		t.sample(name+"_count", float64(sum), labels(m)...)
	}
}

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

// promText writes Prometheus' text format, version 0.0.4. Prometheus' client library would add 0.75 MB to the small
// server in every image, more than all of this package.
type promText struct{ b []byte }

// family begins a metric of a type: counter, gauge or histogram.
func (t *promText) family(name, kind, help string) {
	t.b = append(t.b, "# HELP "...)
	t.b = append(t.b, name...)
	t.b = append(t.b, ' ')
	t.b = appendEscaped(t.b, help, false)
	t.b = append(t.b, "\n# TYPE "...)
	t.b = append(t.b, name...)
	t.b = append(t.b, ' ')
	t.b = append(t.b, kind...)
	t.b = append(t.b, '\n')
}

// sample writes a value. labels are alternating names and values.
func (t *promText) sample(name string, value float64, labels ...string) {
	t.b = append(t.b, name...)
	for i := 0; i+1 < len(labels); i += 2 {
		t.b = append(t.b, "{,"[min(i, 1)])
		t.b = append(t.b, labels[i]...)
		t.b = append(t.b, '=', '"')
		t.b = appendEscaped(t.b, labels[i+1], true)
		t.b = append(t.b, '"')
	}
	if len(labels) > 1 {
		t.b = append(t.b, '}')
	}
	t.b = append(t.b, ' ')
	t.b = appendValue(t.b, value)
	t.b = append(t.b, '\n')
}

// single writes a metric with one value.
func (t *promText) single(name, kind, help string, value float64) {
	t.family(name, kind, help)
	t.sample(name, value)
}

func appendValue(b []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(b, "+Inf"...)
	case math.IsInf(v, -1):
		return append(b, "-Inf"...)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

func appendEscaped(b []byte, s string, quotes bool) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			b = append(b, '\\', '\\')
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '"' && quotes:
			b = append(b, '\\', '"')
		default:
			b = append(b, c)
		}
	}
	return b
}
