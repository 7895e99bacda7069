package serve

import (
	"bytes"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc/metadata"

	"github.com/operator-bindery/bindery/internal/api"
)

// scraped are metrics parsed by Prometheus' own parser.
type scraped map[string]*dto.MetricFamily

func scrape(t testing.TB, url string) scraped {
	t.Helper()
	resp, err := http.Get(url)
	do(t, err)
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != metricsType {
		t.Fatalf("%s: %s, %s", url, resp.Status, got)
	}
	text, err := io.ReadAll(resp.Body)
	do(t, err)
	return parseMetrics(t, text)
}

func parseMetrics(t testing.TB, text []byte) scraped {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return families
}

// find returns the one metric of a family with these labels.
func (s scraped) find(t testing.TB, name string, labels ...string) *dto.Metric {
	t.Helper()
	var found []*dto.Metric
	for _, m := range s[name].GetMetric() {
		fits := 0
		for _, l := range m.GetLabel() {
			for i := 0; i < len(labels); i += 2 {
				if l.GetName() == labels[i] && l.GetValue() == labels[i+1] {
					fits++
				}
			}
		}
		if fits == len(labels)/2 {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d metrics %s%v", len(found), name, labels)
	}
	return found[0]
}

func (s scraped) value(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	m := s.find(t, name, labels...)
	if m.GetCounter() != nil {
		return m.GetCounter().GetValue()
	}
	return m.GetGauge().GetValue()
}

func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/catalog.yaml", sampleA+sampleB)
	l := listenLocally(t)
	s := start(t, directory(t, dir), Options{MetricsListener: l, Version: `v1"\` + "\n"})
	conn := dial(t, s.addr)
	client := api.NewRegistryClient(conn)
	p, err := client.GetPackage(t.Context(), &api.GetPackageRequest{Name: "a"})
	if err != nil || p.GetName() != "a" {
		t.Fatal(p, err)
	}
	if _, err := client.GetPackage(t.Context(), &api.GetPackageRequest{Name: "nosuch"}); err == nil {
		t.Fatal("there is such a package")
	}
	_ = conn.Invoke(t.Context(), "/api.Registry/Sent by a client", &api.GetPackageRequest{}, &api.Package{})
	check(t, conn, "")
	if got := packageNames(t, conn); got != "a b" {
		t.Fatal(got)
	}
	url := "http://" + l.Addr().String()
	m := scrape(t, url+"/metrics")
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{2, "grpc_server_started_total",
			[]string{"grpc_service", "api.Registry", "grpc_method", "GetPackage", "grpc_type", "unary"}},
		{1, "grpc_server_handled_total", []string{"grpc_method", "GetPackage", "grpc_code", "OK"}},
		{1, "grpc_server_handled_total", []string{"grpc_method", "GetPackage", "grpc_code", "NotFound"}},
		{1, "grpc_server_handled_total",
			[]string{"grpc_service", "grpc.health.v1.Health", "grpc_method", "Check", "grpc_code", "OK"}},
		{2, "grpc_server_msg_sent_total", []string{"grpc_method", "ListPackages", "grpc_type", "server_stream"}},
		{6, "bindery_server_sent_bytes_total", []string{"grpc_method", "ListPackages"}},
		{0, "grpc_server_started_total", []string{"grpc_method", "ListBundles"}},
		{1, "bindery_server_connections", nil},
		{1, "bindery_server_connections_accepted_total", nil},
		{DefaultConnections, "bindery_server_connections_limit", nil},
		{0, "bindery_server_answer_bytes", nil},
		{1, "bindery_catalog_ready", nil},
		{2, "bindery_catalog_packages", nil},
		{3, "bindery_catalog_channels", nil},
		{3, "bindery_catalog_bundles", nil},
		{1, "bindery_catalog_loads_total", []string{"result", "success"}},
		{0, "bindery_catalog_last_load_failed", nil},
		{1, "bindery_build_info", []string{"version", `v1"\` + "\n"}},
	} {
		if got := m.value(t, c.name, c.labels...); got != c.want {
			t.Errorf("%s%v is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	for _, name := range []string{"go_goroutines", "go_memstats_sys_bytes", "bindery_catalog_cache_bytes",
		"bindery_catalog_loaded_timestamp_seconds", "bindery_catalog_load_duration_seconds"} {
		if got := m.value(t, name); got <= 0 {
			t.Errorf("%s is %v", name, got)
		}
	}
	h := m.find(t, "grpc_server_handling_seconds", "grpc_method", "GetPackage").GetHistogram()
	if n := len(h.GetBucket()); h.GetSampleCount() != 2 || n != len(latencyBuckets)+1 ||
		!math.IsInf(h.GetBucket()[n-1].GetUpperBound(), 1) || h.GetSampleSum() <= 0 {
		t.Errorf("histogram %v", h)
	}
	for _, f := range m {
		for _, metric := range f.GetMetric() {
			for _, l := range metric.GetLabel() {
				if strings.Contains(l.GetValue(), "Sent by") {
					t.Errorf("%s has a label of a request: %v", f.GetName(), l)
				}
			}
		}
	}
	checkStatus(t, "GET", url+"/", http.StatusNotFound)
	checkStatus(t, "POST", url+"/metrics", http.StatusMethodNotAllowed)
	checkStatus(t, "HEAD", url+"/metrics", http.StatusOK)
}

func checkStatus(t *testing.T, method, url string, want int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(""))
	do(t, err)
	resp, err := http.DefaultClient.Do(req)
	do(t, err)
	resp.Body.Close()
	if resp.StatusCode != want {
		t.Errorf("%s %s: %s, want %d", method, url, resp.Status, want)
	}
}

func TestMetricsOfHTTP(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/catalog.yaml", sampleA)
	l, site := listenLocally(t), listenLocally(t)
	start(t, directory(t, dir), Options{MetricsListener: l, HTTPListener: site})
	for path, want := range map[string]int{"/api/v1/all": http.StatusOK, "/nosuch/page": http.StatusNotFound} {
		if code, _ := get(t, "http://"+site.Addr().String()+path); code != want {
			t.Errorf("%s: %d", path, code)
		}
	}
	for _, body := range []string{`{"query":"{__typename}"}`, `{"query":"{"}`, "no query"} {
		resp, err := http.Post("http://"+site.Addr().String()+"/api/v1/graphql", "", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	m := scrape(t, "http://"+l.Addr().String()+"/metrics")
	for class, want := range map[string]float64{"2xx": 2, "3xx": 0, "4xx": 1, "5xx": 0} {
		if got := m.value(t, "bindery_http_queries_total", "code", class); got != want {
			t.Errorf("%s: %v queries, want %v", class, got, want)
		}
	}
	for class, want := range map[string]float64{"2xx": 3, "3xx": 0, "4xx": 2, "5xx": 0} {
		if got := m.value(t, "bindery_http_requests_total", "code", class); got != want {
			t.Errorf("%s: %v requests, want %v", class, got, want)
		}
	}
	if got := m.value(t, "bindery_http_sent_bytes_total"); got <= 0 {
		t.Errorf("%v bytes were sent", got)
	}
}

// Every gauge and counter exists before there is a catalog.
func TestMetricsBeforeCatalog(t *testing.T) {
	e := &exposition{server: newServer(Limits{}, nil), loads: &loadMetrics{}}
	m := parseMetrics(t, e.text())
	if m.value(t, "bindery_catalog_ready") != 0 || m.value(t, "bindery_catalog_packages") != 0 || m.value(t,
		"bindery_catalog_loaded_timestamp_seconds") != 0 {
		t.Errorf("%v", m)
	}
}

// At debug level the log has a record of each call with the method, and nothing else that the client sent.
func TestCallsInTheLog(t *testing.T) {
	for _, c := range []struct {
		level slog.Level
		want  bool
	}{{slog.LevelInfo, false}, {slog.LevelDebug, true}} {
		var log bytes.Buffer
		s := newServer(Limits{}, slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: c.level})))
		s.SetStore(catalogStore(t, parse(t, sampleA)))
		conn := startServer(t, s)
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer secret-token", "x-other",
			"secret-token")
		if _, err := api.NewRegistryClient(conn).GetPackage(ctx,
			&api.GetPackageRequest{Name: "secret-name"}); err == nil {
			t.Fatal("there is such a package")
		}
		conn.Close()
		s.grpc.GracefulStop() // the record is written when the handler has ended
		text := log.String()
		if got := strings.Contains(text, `"method":"GetPackage","code":"NotFound"`); got != c.want {
			t.Errorf("%v: %s", c.level, text)
		}
		if strings.Contains(text, "secret") || strings.Contains(text, "127.0.0.1") {
			t.Errorf("%v: the log has parts of the request: %s", c.level, text)
		}
	}
}

func TestPromText(t *testing.T) {
	x := &promText{}
	x.family("m", "gauge", "a \\ b\nc \"d\"")
	x.sample("m", math.Inf(1), "l", "a\\b\nc\"d", "k", "v")
	x.sample("m", 0.25)
	x.sample("m", 1e18, "l", "")
	const want = "# HELP m a \\\\ b\\nc \"d\"\n# TYPE m gauge\nm{l=\"a\\\\b\\nc\\\"d\",k=\"v\"} +Inf\nm " +
		"0.25\nm{l=\"\"} 1e+18\n"
	if got := string(x.b); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
