package serve

import (
	"net/http"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"time"
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
