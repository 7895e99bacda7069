package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
)

// A requested port that is in use is an error, except for profiles.
func TestPortsInUse(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", sampleA)
	taken := listenLocally(t)
	defer taken.Close()
	err := Run(context.Background(), directory(t, dir),
		Options{Listener: listenLocally(t), MetricsAddr: taken.Addr().String()})
	if !errors.Is(err, ErrListen) || !strings.Contains(err.Error(), "--metrics-addr") {
		t.Errorf("metrics: %v", err)
	}
	s := start(t, directory(t, dir), Options{PprofAddr: taken.Addr().String(), PprofCapture: true})
	if !strings.Contains(s.log.all(), "could not start pprof endpoint") {
		t.Errorf("profiles: %s", s.log.all())
	}
	s = start(t, directory(t, dir), Options{PprofCapture: true})
	if !strings.Contains(s.log.all(), "no profile of the start is captured") {
		t.Errorf("a profile that nobody can get: %s", s.log.all())
	}
}

// freeAddr returns an unused address.
func freeAddr(t *testing.T) string {
	t.Helper()
	l := listenLocally(t)
	defer l.Close()
	return l.Addr().String()
}

func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	resp, err := http.Get(url)
	do(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	do(t, err)
	return resp.StatusCode, body
}

func TestProfileOfTheStart(t *testing.T) {
	addr := freeAddr(t)
	url := "http://" + addr + "/debug/pprof/startup/cpu"
	during := 0
	blobs := func(yield func(declcfg.Blob, error) bool) {
		during, _ = get(t, url)
		for b := range parse(t, sampleA).Blobs() {
			if !yield(b, nil) {
				return
			}
		}
	}
	s := start(t, Blobs("sample", blobs), Options{PprofAddr: addr, PprofCapture: true})
	if during != http.StatusServiceUnavailable {
		t.Errorf("while the server starts: %d", during)
	}
	// A profile is compressed with gzip.
	if code, body := get(t, url); code != http.StatusOK || !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		t.Errorf("afterwards: %d, %d bytes", code, len(body))
	}
	if code, _ := get(t, "http://"+addr+"/debug/pprof/goroutine?debug=1"); code != http.StatusOK {
		t.Errorf("another profile: %d", code)
	}
	do(t, s.stop())
	start(t, Blobs("sample", parse(t, sampleA).Blobs()), Options{PprofAddr: addr})
	if code, _ := get(t, url); code != http.StatusNotFound {
		t.Errorf("without being asked for: %d", code)
	}
}

// Answers in progress are completed when the server stops; connections beyond the limit wait.
func TestEndpointDrainsAndIsBounded(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-goOn
		io.WriteString(w, "whole")
	})
	e, err := openEndpoint(t.Context(), "test", "127.0.0.1:0", nil, nil, nil, h, DefaultHTTPConnections, slog.New(slog.DiscardHandler))
	do(t, err)
	got := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + e.l.Addr().String())
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		got <- string(body) + errorOrNothing(err)
	}()
	<-began
	closed := make(chan struct{})
	go func() { e.close(httpDrain); close(closed) }()
	<-e.served // no more requests are accepted
	close(goOn)
	<-closed
	if text := <-got; text != "whole" {
		t.Errorf("got %q", text)
	}

}

func errorOrNothing(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestMemoryOfTheContainer(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for name, c := range map[string]struct {
		fsys fstest.MapFS
		want int64
	}{
		"nothing there": {fstest.MapFS{}, 0},
		"version 2, own group is the root": {fstest.MapFS{
			"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("67108864\n")}, 64 << 20},
		"version 2, no limit": {fstest.MapFS{
			"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n")}, 0},
		"version 2, the least of those around": {fstest.MapFS{
			"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"),
			"sys/fs/cgroup/a/b/memory.high": file("300000000\n"), "sys/fs/cgroup/a/memory.max": file("200000000\n")},
			200000000},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup": file("5:cpu,cpuacct:/x\n4:memory:/docker/1\n"),
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": file("50000000\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          file("9223372036854771712\n")}, 50000000},
		"version 1 in a container": {fstest.MapFS{
			"proc/self/cgroup":                           file("4:memory:/docker/1\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("50000000\n")}, 50000000},
		"nonsense": {fstest.MapFS{
			"proc/self/cgroup": file("0::/../../..\nx\n:::\n4:memory:../x\n"), "sys/fs/cgroup/memory.max": file("-5"),
			"sys/fs/cgroup/memory.high": file("lots")}, 0},
	} {
		got, ok := containerMemory(c.fsys)
		if ok != (c.want > 0) || ok && got != c.want {
			t.Errorf("%s: %d, %v, want %d", name, got, ok, c.want)
		}
	}
}

func TestFitProcess(t *testing.T) {
	old := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(old)
	for _, c := range []struct {
		limit       int64
		asked, want int
	}{
		{64 << 20, 0, 8 << 20},
		{1 << 40, 0, defaultAnswerMemory},
		{1 << 20, 0, 1 << 20},
		{64 << 20, 5 << 20, 5 << 20},
	} {
		debug.SetMemoryLimit(c.limit)
		l := Limits{AnswerMemory: c.asked}
		l.FitProcess(slog.New(slog.DiscardHandler))
		if l.AnswerMemory != c.want || debug.SetMemoryLimit(-1) != c.limit {
			t.Errorf("limit %d: %d bytes for answers, want %d; limit now %d", c.limit, l.AnswerMemory, c.want,
				debug.SetMemoryLimit(-1))
		}
	}
	for _, c := range []struct {
		limit       int64
		asked, want int
	}{
		{54 << 20, 0, 691},
		{1 << 30, 0, DefaultConnections},
		{1 << 20, 0, leastConnections},
		{54 << 20, DefaultConnections, DefaultConnections},
	} {
		debug.SetMemoryLimit(c.limit)
		l := Limits{Connections: c.asked}
		if l.FitProcess(slog.New(slog.DiscardHandler)); l.Connections != c.want {
			t.Errorf("limit %d: %d connections, want %d", c.limit, l.Connections, c.want)
		}
	}
	debug.SetMemoryLimit(math.MaxInt64)
	var l Limits
	l.FitProcess(slog.New(slog.DiscardHandler))
	container, ok := containerMemory(os.DirFS("/"))
	if ok != (debug.SetMemoryLimit(-1) == container/100*85) {
		t.Errorf("limit of the container %d, %v, of Go %d", container, ok, debug.SetMemoryLimit(-1))
	}
}

// Requests beyond the concurrency limit wait, and a cancelled one is not answered.
func TestRequestsWaitForOthers(t *testing.T) {
	const most = 2
	began, goOn := make(chan struct{}, 10), make(chan struct{})
	h := limitRequests(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-goOn
	}), most)
	var requests sync.WaitGroup
	ask := func(ctx context.Context) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	}
	for range most {
		requests.Go(func() { ask(t.Context()) })
		<-began
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	ask(gone)
	if len(began) > 0 {
		t.Error("a request beyond the limit was answered")
	}
	requests.Go(func() { ask(t.Context()) })
	goOn <- struct{}{}
	<-began
	close(goOn)
	requests.Wait()
}

// Metrics are available until everything else has ended: idle clients of metrics must not delay the server much.
func TestSilentClientOfMetricsDoesNotKeepTheServer(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", sampleA)
	l := listenLocally(t)
	s := start(t, directory(t, dir), Options{MetricsListener: l})
	conn, err := net.Dial("tcp", l.Addr().String())
	do(t, err)
	defer conn.Close()
	get(t, "http://"+l.Addr().String()+"/metrics") // the other connection was accepted before
	do(t, s.stop())
	if all := (Limits{}).withDefaults().Drain + time.Second + metricsDrain; all >= 20*time.Second {
		t.Errorf("a server may take %v to end", all)
	}
}

// Every HTTP service over loopback refuses the names of other sites, and answers those that are given.
func TestHTTPServicesRefuseNamesOfOtherSites(t *testing.T) {
	pprof := listenLocally(t)
	profiles := pprof.Addr().String()
	do(t, pprof.Close())
	site, metrics := listenLocally(t), listenLocally(t)
	o := Options{HTTPListener: site, MetricsListener: metrics, PprofAddr: profiles}
	do(t, o.SetHTTPHosts("catalog.test"))
	catalog, _ := sampleDirs(t)
	start(t, directory(t, catalog), o)
	for _, at := range []string{site.Addr().String() + "/api/v1/all", site.Addr().String() + "/",
		metrics.Addr().String() + "/metrics", profiles + "/debug/pprof/"} {
		for host, want := range map[string]int{"": 200, "localhost": 200, "catalog.test:80": 200, "evil.test": 421} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at, nil)
			do(t, err)
			r.Host = host
			answer, err := http.DefaultClient.Do(r)
			do(t, err)
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s as %q: %s", at, host, answer.Status)
			}
		}
	}
}
