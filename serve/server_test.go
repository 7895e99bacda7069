package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/api"
)

func dial(t testing.TB, addr string, o ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, append(o, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func check(t testing.TB, conn *grpc.ClientConn, service string) healthpb.HealthCheckResponse_ServingStatus {
	t.Helper()
	answer, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetStatus()
}

func TestHealth(t *testing.T) {
	s := newServer(Limits{}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	conn := dial(t, l.Addr().String())
	for _, service := range []string{"", "Registry", "api.Registry", "nosuch"} {
		if got := check(t, conn, service); got != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("%q before a catalog: %v", service, got)
		}
	}
	if _, err := call(t, conn, "ListPackages", json.RawMessage(`{}`)); status.Code(err) != codes.Unavailable {
		t.Errorf("a call before a catalog: %v", err)
	}
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "any"})
	if err != nil {
		t.Fatal(err)
	}
	next := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		got, err := watch.Recv()
		if err != nil || got.GetStatus() != want {
			t.Errorf("watch: %v, %v, want %v", got, err, want)
		}
	}
	next(healthpb.HealthCheckResponse_NOT_SERVING)
	s.SetStore(catalogStore(t, parse(t, sampleA)))
	next(healthpb.HealthCheckResponse_SERVING)
	for _, service := range []string{"", "Registry", "api.Registry", "nosuch"} {
		if got := check(t, conn, service); got != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q with a catalog: %v", service, got)
		}
	}
	list, err := healthpb.NewHealthClient(conn).List(t.Context(), &healthpb.HealthListRequest{})
	if err != nil || list.GetStatuses()[""].GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("list: %v, %v", list, err)
	}
	cancel()
	next(healthpb.HealthCheckResponse_NOT_SERVING)
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the watch goes on: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func TestReflection(t *testing.T) {
	conn := startServer(t, sampleServer(t, Limits{}))
	s, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(req *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		t.Helper()
		if err := s.Send(req); err != nil {
			t.Fatal(err)
		}
		answer, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	answer := ask(
		&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	var names []string
	for _, service := range answer.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	const want = "api.ExperimentalRegistry api.Registry grpc.health.v1.Health grpc.reflection.v1.ServerReflection " +
		"grpc.reflection.v1alpha.ServerReflection"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("services %s, want %s", got, want)
	}
	answer = ask(
		&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "api.Registry"}})
	if len(answer.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("api.Registry is not described: %v", answer)
	}
}

// brokenReader panics when a record is read.
type brokenReader struct{}

func (brokenReader) ReadAt([]byte, int64) (int, error) { panic("broken") }

func TestPanicEndsOneCall(t *testing.T) {
	var log bytes.Buffer
	s := newServer(Limits{}, slog.New(slog.NewTextHandler(&log, nil)))
	store := catalogStore(t, parse(t, sampleA+sampleB))
	for _, p := range store.Packages() {
		if p.name == "b" {
			p.r = brokenReader{}
		}
	}
	s.SetStore(store)
	conn := startServer(t, s)
	for rpc, req := range map[string]string{"GetPackage": `{"name":"b"}`, "ListBundles": `{}`} {
		if _, err := call(t, conn, rpc, json.RawMessage(req)); status.Code(err) != codes.Internal ||
			strings.Contains(err.Error(), "broken") {
			t.Errorf("%s: %v", rpc, err)
		}
	}
	if _, err := call(t, conn, "GetPackage", json.RawMessage(`{"name":"a"}`)); err != nil {
		t.Errorf("the server is dead: %v", err)
	}
	if !strings.Contains(log.String(), "/api.Registry/GetPackage") {
		t.Errorf("log: %s", log.String())
	}
}

func TestLimits(t *testing.T) {
	conn := startServer(t, sampleServer(t, Limits{}))
	client := api.NewRegistryClient(conn)
	_, err := client.GetPackage(t.Context(), &api.GetPackageRequest{Name: strings.Repeat("x", 70<<10)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large request: %v", err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-large", strings.Repeat("x", 16<<10))
	if _, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: "a"}); err == nil {
		t.Error("a large header was taken")
	}
	if err := conn.Invoke(t.Context(), "/api.Registry/NoSuch", &api.GetPackageRequest{},
		&api.Package{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("an unknown method: %v", err)
	}
	if _, err := client.GetPackage(t.Context(), &api.GetPackageRequest{Name: "a"}); err != nil {
		t.Errorf("the server does not answer any more: %v", err)
	}
}

// largeCatalog is a package whose bundles are large and have no image, so that the list of bundles contains their
// manifests.
func largeCatalog(t testing.TB, bundles, size int) *declcfg.Catalog {
	t.Helper()
	c := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "big", DefaultChannel: "c"}}}
	channel := declcfg.Channel{Name: "c", Package: "big"}
	for i := range bundles {
		name := fmt.Sprintf("big.v0.0.%d", i)
		entry := declcfg.ChannelEntry{Name: name}
		if i > 0 {
			entry.Replaces = fmt.Sprintf("big.v0.0.%d", i-1)
		}
		channel.Entries = append(channel.Entries, entry)
		version, err := declcfg.NewProperty(declcfg.PropertyPackage,
			property.Package{PackageName: "big", Version: fmt.Sprintf("0.0.%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		object := fmt.Appendf(nil, `{"kind":"ClusterServiceVersion","x":%q}`, strings.Repeat("x", size))
		c.Bundles = append(c.Bundles, declcfg.Bundle{Name: name, Package: "big", HasObjects: true,
			Properties: []declcfg.Property{version, declcfg.NewBundleObject(object)}})
	}
	c.Channels = append(c.Channels, channel)
	return c
}

func TestLargeBundlesAreReported(t *testing.T) {
	c := largeCatalog(t, 2, 2<<20)
	graph, err := c.Graph()
	if err != nil {
		t.Fatal(err)
	}
	e, err := encodePackage(nil, c, graph, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	// csvJson and object contain the manifest once each.
	if len(e.large) != 2 || e.large[0].Bundle != "big.v0.0.0" || e.large[0].Channel != "c" ||
		e.large[0].Size <= ClientMessageLimit {
		t.Errorf("got %+v", e.large)
	}
}

// TestSlowReaders has clients that open the list of all bundles and do not read it: the memory for answers stays
// bounded, and the server stops in time.
func TestSlowReaders(t *testing.T) {
	limits := Limits{AnswerMemory: 4 << 20, AnswerWait: 50 * time.Millisecond, Drain: 500 * time.Millisecond}
	s := newServer(limits, nil)
	s.SetStore(catalogStore(t, largeCatalog(t, 50, 200<<10)))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	for range 10 {
		conn := dial(t, l.Addr().String(), grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
		for range 10 {
			if _, err := api.NewRegistryClient(conn).ListBundles(t.Context(), &api.ListBundlesRequest{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Small answers are not blocked by readers of large ones.
	fast := api.NewRegistryClient(dial(t, l.Addr().String()))
	for range 20 {
		if _, err := fast.GetPackage(t.Context(), &api.GetPackageRequest{Name: "big"}); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	cancel()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the server does not stop")
	}
	if took := time.Since(start); took < limits.Drain/2 {
		t.Errorf("open calls were ended after %v", took)
	}
}

func TestBudget(t *testing.T) {
	b := &budget{limit: 10 << 10, wait: time.Hour}
	_, first, err := b.allocate(t.Context(), 8<<10)
	if err != nil {
		t.Fatal(err)
	}
	b.wait = time.Millisecond
	if _, _, err := b.allocate(t.Context(), 4<<10); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("more than the budget: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.wait = time.Hour
	if _, _, err := b.allocate(ctx, 4<<10); status.Code(err) != codes.Canceled {
		t.Errorf("a cancelled call: %v", err)
	}
	got := make(chan error)
	go func() {
		_, pool, err := b.allocate(t.Context(), 4<<10)
		if err == nil {
			pool.Put(new([]byte))
		}
		got <- err
	}()
	buf := make([]byte, 8<<10)
	first.Put(&buf)
	if err := <-got; err != nil {
		t.Errorf("after bytes came back: %v", err)
	}
	// An answer larger than the whole budget gets all of it.
	_, large, err := b.allocate(t.Context(), 100<<10)
	if err != nil {
		t.Fatal(err)
	}
	large.Put(new([]byte))
	if b.used != 0 || b.waiters.Len() != 0 || len(b.clients) != 0 {
		t.Errorf("%d bytes, %d waiters and %d clients are left", b.used, b.waiters.Len(), len(b.clients))
	}
}

// A connection whose client reads nothing gets a quarter of the budget; others are not blocked, even behind its calls.
func TestBudgetOfOneConnection(t *testing.T) {
	b := &budget{limit: 64 << 10, wait: time.Hour}
	from := func(port int) context.Context {
		return peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{Port: port}})
	}
	var held []func()
	hold := func(port, size int) {
		t.Helper()
		buf, pool, err := b.allocate(from(port), size)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, func() { pool.Put(buf) })
	}
	for range 4 {
		hold(1, 4<<10)
	}
	fifth := make(chan error)
	go func() {
		buf, pool, err := b.allocate(from(1), 4<<10)
		if err == nil {
			pool.Put(buf)
		}
		fifth <- err
	}()
	for port := 2; port < 5; port++ {
		hold(port, 16<<10)
	}
	select {
	case err := <-fifth:
		t.Errorf("more than its share: %v", err)
	default:
	}
	for _, giveBack := range held {
		giveBack()
	}
	if err := <-fifth; err != nil {
		t.Error(err)
	}
	if b.used != 0 || b.waiters.Len() != 0 || len(b.clients) != 0 {
		t.Errorf("%d bytes, %d waiters and %d clients are left", b.used, b.waiters.Len(), len(b.clients))
	}
}

// TestCatalogIsReplaced replaces the catalog repeatedly during calls: no call is lost, and none sees two catalogs.
func TestCatalogIsReplaced(t *testing.T) {
	first, second := parse(t, sampleA), parse(t, strings.ReplaceAll(sampleA, "example.test/", "example.test/new-"))
	s := newServer(Limits{}, nil)
	s.SetStore(catalogStore(t, first))
	conn := startServer(t, s)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				answers, err := call(t, conn, "ListBundles", json.RawMessage(`{}`))
				if err != nil {
					t.Error(err)
					return
				}
				changed := 0
				for _, a := range answers {
					if strings.Contains(string(a), "example.test/new-a") {
						changed++
					}
				}
				if len(answers) != 3 || changed != 0 && changed != 3 {
					t.Errorf("%d answers, %d of the second catalog", len(answers), changed)
					return
				}
			}
		})
	}
	for i := range 200 {
		c := first
		if i%2 == 0 {
			c = second
		}
		s.SetStore(catalogStore(t, c))
	}
	close(done)
	wg.Wait()
}

func TestHalfOpenConnections(t *testing.T) {
	s := sampleServer(t, Limits{Handshake: 100 * time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	var silent []net.Conn
	for i := range 50 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			if _, err := c.Write([]byte("PRI * HTTP")); err != nil {
				t.Fatal(err)
			}
		}
		silent = append(silent, c)
	}
	if got := check(t, dial(t, l.Addr().String()), ""); got != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health beside silent clients: %v", got)
	}
	for _, c := range silent {
		if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a silent client is kept: %v", err)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestConnectionLimit(t *testing.T) {
	s := sampleServer(t, Limits{Connections: 2})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	first := dial(t, l.Addr().String())
	check(t, first, "")
	check(t, dial(t, l.Addr().String()), "")
	third := dial(t, l.Addr().String())
	waiting, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	if _, err := healthpb.NewHealthClient(third).Check(waiting, &healthpb.HealthCheckRequest{}); err == nil {
		t.Error("a third connection is served beside two")
	}
	third.Close()
	first.Close()
	if got := check(t, dial(t, l.Addr().String()), ""); got != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("after one was closed: %v", got)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestRun(t *testing.T) {
	catalog := t.TempDir()
	writeTree(t, catalog, map[string]string{"a/catalog.yaml": sampleA})
	src, err := Directory(catalog)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log syncBuffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, src, Options{
			Listener:       l,
			PprofAddr:      taken.Addr().String(),
			TerminationLog: filepath.Join(catalog, "a"), // a directory
			Log:            slog.New(slog.NewTextHandler(&log, nil)),
			Ready:          func(a net.Addr) { ready <- a },
		})
	}()
	conn := dial(t, (<-ready).String())
	ctxSecret := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer secret-token")
	if _, err := api.NewRegistryClient(conn).GetPackage(ctxSecret, &api.GetPackageRequest{Name: "a"}); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
	for _, want := range []string{"serving registry", "could not start pprof endpoint",
		"unable to set termination log path"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log says %q %d times", want, strings.Count(log.String(), want))
		}
	}
	if strings.Contains(log.String(), "secret-token") {
		t.Error("the log has a request's metadata")
	}
}

// The null device means no termination log, without a log message.
func TestNoTerminationLog(t *testing.T) {
	var text bytes.Buffer
	log := openTerminationLog(os.DevNull, slog.New(slog.NewTextHandler(&text, nil)))
	log.close(errors.New("broken"))
	if text.Len() > 0 {
		t.Errorf("the log says %s", &text)
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestRunErrors(t *testing.T) {
	catalog := t.TempDir()
	writeTree(t, catalog, map[string]string{"a/catalog.yaml": "{"})
	src, err := Directory(catalog)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	terminationLog := filepath.Join(t.TempDir(), "log")
	err = Run(t.Context(), src, Options{TerminationLog: terminationLog})
	if err == nil || !strings.Contains(err.Error(), "failed to load or rebuild cache: ") {
		t.Errorf("a broken catalog: %v", err)
	}
	if got, readErr := os.ReadFile(terminationLog); readErr != nil || err == nil || string(got) != err.Error()+"\n" {
		t.Errorf("termination log %q, %v", got, readErr)
	}
	err = Run(t.Context(), src, Options{Port: taken.Addr().(*net.TCPAddr).Port})
	if !errors.Is(err, ErrListen) {
		t.Errorf("a port that is taken: %v", err)
	}
	if err := Run(t.Context(), src, Options{EnforceIntegrity: true}); !errors.Is(err, ErrNoCacheDir) {
		t.Errorf("integrity without a cache: %v", err)
	}
}

func TestCacheOnly(t *testing.T) {
	catalog, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	writeTree(t, catalog, map[string]string{"a/catalog.yaml": sampleA})
	src, err := Directory(catalog)
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), src, Options{CacheDir: cache, CacheOnly: true}); err != nil {
		t.Fatal(err)
	}
	if got := cacheFiles(t, cache); len(got) != 1 || got[0] != "a.cache" {
		t.Errorf("cache files %v", got)
	}
	if err := Run(t.Context(), src, Options{CacheOnly: true}); !errors.Is(err, ErrNoCacheDir) {
		t.Errorf("without a cache directory: %v", err)
	}
}
