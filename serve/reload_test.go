package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/api"
	"github.com/operator-bindery/bindery/sqlite"
)

// The ways to replace a directory: the old one has package a, the new one b.
func TestChangedDirectoryIsServed(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(t *testing.T, dir string)
	}{
		"a file is added": {
			func(t *testing.T, dir string) { write(t, dir+"/catalog/a.yaml", sampleA) },
			func(t *testing.T, dir string) {
				write(t, dir+"/catalog/b.yaml", sampleB)
				do(t, os.Remove(dir+"/catalog/a.yaml"))
			},
		},
		"a file is written in place": {
			func(t *testing.T, dir string) { write(t, dir+"/catalog/a.yaml", sampleA) },
			func(t *testing.T, dir string) { write(t, dir+"/catalog/a.yaml", sampleB) },
		},
		"a file of the same size and time takes its place": {
			func(t *testing.T, dir string) {
				write(t, dir+"/catalog/a.yaml", renamed(sampleB, "b", "a"))
				do(t, os.Chtimes(dir+"/catalog/a.yaml", time.Unix(1e9, 0), time.Unix(1e9, 0)))
			},
			func(t *testing.T, dir string) {
				write(t, dir+"/b.yaml", sampleB)
				do(t, os.Chtimes(dir+"/b.yaml", time.Unix(1e9, 0), time.Unix(1e9, 0)))
				do(t, os.Rename(dir+"/b.yaml", dir+"/catalog/a.yaml"))
			},
		},
		"the directory is another one": {
			func(t *testing.T, dir string) { write(t, dir+"/catalog/a.yaml", sampleA) },
			func(t *testing.T, dir string) {
				write(t, dir+"/next/a.yaml", sampleB)
				do(t, os.Rename(dir+"/catalog", dir+"/old"))
				do(t, os.Rename(dir+"/next", dir+"/catalog"))
			},
		},
		"the directory is a link that leads elsewhere": {
			func(t *testing.T, dir string) {
				write(t, dir+"/one/a.yaml", sampleA)
				do(t, os.Symlink("one", dir+"/catalog"))
			},
			func(t *testing.T, dir string) {
				write(t, dir+"/two/a.yaml", sampleB)
				do(t, os.Symlink("two", dir+"/next"))
				do(t, os.Rename(dir+"/next", dir+"/catalog"))
			},
		},
		"a volume of Kubernetes is swapped": {
			func(t *testing.T, dir string) {
				write(t, dir+"/catalog/..2026_1/a.yaml", sampleA)
				do(t, os.Symlink("..2026_1", dir+"/catalog/..data"))
				do(t, os.Symlink("..data/a.yaml", dir+"/catalog/a.yaml"))
			},
			func(t *testing.T, dir string) {
				write(t, dir+"/catalog/..2026_2/a.yaml", sampleB)
				do(t, os.Symlink("..2026_2", dir+"/catalog/..data_tmp"))
				do(t, os.Rename(dir+"/catalog/..data_tmp", dir+"/catalog/..data"))
				do(t, os.RemoveAll(dir+"/catalog/..2026_1"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.before(t, dir)
			s := start(t, directory(t, dir+"/catalog"), Options{ReloadEvery: 5 * time.Millisecond})
			conn := dial(t, s.addr)
			if got := packageNames(t, conn); got != "a" {
				t.Fatalf("first %q", got)
			}
			c.after(t, dir)
			// An intermediate state may have been loaded too.
			for got := "a"; got != "b"; got = packageNames(t, conn) {
				s.log.wait(t, "the catalog was loaded again")
			}
		})
	}
}

func TestChangedDatabaseIsServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	create := func(path, catalog string) {
		t.Helper()
		_, err := sqlite.Create(t.Context(), path, parse(t, catalog).Blobs(), sqlite.WriteOptions{})
		do(t, err)
	}
	create(path, sampleB)
	s := start(t, Database(t.Context(), path, sqlite.Options{}), Options{ReloadEvery: 5 * time.Millisecond})
	conn := dial(t, s.addr)
	if got := packageNames(t, conn); got != "b" {
		t.Fatalf("first %q", got)
	}
	create(path+".next", renamed(sampleB, "b", "c"))
	do(t, os.Rename(path+".next", path))
	s.log.wait(t, "the catalog was loaded again")
	if got := packageNames(t, conn); got != "c" {
		t.Errorf("then %q", got)
	}
}

// A signal reloads the catalog even without looking for changes. If that fails, the old catalog stays, the failure is
// logged once and counted, and a repaired catalog is loaded.
func TestBrokenCatalogLeavesTheOneBefore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	write(t, file, sampleA)
	metrics := listenLocally(t)
	s := start(t, directory(t, dir), Options{MetricsListener: metrics})
	conn := dial(t, s.addr)
	expect := func(packages string, loaded, failed float64) {
		t.Helper()
		if got := packageNames(t, conn); got != packages {
			t.Errorf("packages %q, want %q", got, packages)
		}
		m := scrape(t, "http://"+metrics.Addr().String()+"/metrics")
		if l, f := m.value(t, "bindery_catalog_loads_total", "result", "success"), m.value(t,
			"bindery_catalog_loads_total", "result", "failure"); l != loaded || f != failed {
			t.Errorf("%v were loaded and %v failed, want %v and %v", l, f, loaded, failed)
		}
		if got := check(t, conn, ""); got != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health %v", got)
		}
	}
	expect("a", 1, 0)
	write(t, file, sampleA[:len(sampleA)/2])
	s.reload <- syscall.SIGHUP
	s.log.wait(t, "level=ERROR")
	expect("a", 1, 1)
	s.reload <- syscall.SIGHUP
	s.log.wait(t, "level=ERROR")
	expect("a", 1, 2)
	do(t, os.RemoveAll(dir))
	s.reload <- syscall.SIGHUP
	s.log.wait(t, "level=ERROR")
	expect("a", 1, 3)
	write(t, file, sampleA+sampleB)
	s.reload <- syscall.SIGHUP
	s.log.wait(t, "the catalog was loaded again")
	expect("a b", 2, 3)
	do(t, os.Remove(file)) // as when a volume is gone
	s.reload <- syscall.SIGHUP
	s.log.wait(t, "has no packages any more")
	expect("a b", 2, 4)
	write(t, file, sampleB)
	s.reload <- syscall.SIGHUP
	s.log.wait(t, "the catalog was loaded again")
	expect("b", 3, 4)
}

// A database without packages in the place of one that had some is a damage as any other.
func TestEmptiedDatabaseLeavesTheOneBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	create := func(path, catalog string) {
		t.Helper()
		_, err := sqlite.Create(t.Context(), path, parse(t, catalog).Blobs(), sqlite.WriteOptions{})
		do(t, err)
	}
	create(path, sampleB)
	s := start(t, Database(t.Context(), path, sqlite.Options{}), Options{})
	conn := dial(t, s.addr)
	create(path+".next", "")
	do(t, os.Rename(path+".next", path))
	s.reload <- syscall.SIGHUP
	s.log.wait(t, "has no packages any more")
	if got := packageNames(t, conn); got != "b" {
		t.Errorf("%q", got)
	}
}

// A catalog that could not be loaded is not tried again until it changes.
func TestBrokenCatalogIsTriedOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	write(t, file, sampleA)
	loader := &catalogLoader{src: directory(t, dir), log: slog.New(slog.DiscardHandler),
		use: func(h held) { h.Close() }}
	store, err := loader.loadFirst(t.Context())
	do(t, err)
	do(t, store.Close())
	look := func(want string) {
		t.Helper()
		load, soon := loader.changed()
		if got := fmt.Sprintf("load %v, soon %v", load, soon); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	look("load false, soon false")
	write(t, file, "{")
	look("load false, soon true")
	look("load true, soon false")
	if loader.reload(t.Context()) || loader.metrics.failed.Load() != 1 {
		t.Errorf("%d have failed", loader.metrics.failed.Load())
	}
	look("load false, soon false")
	write(t, file, "{{")
	look("load false, soon true")
	write(t, file, sampleB) // between two looks
	look("load false, soon true")
	look("load true, soon false")
	if loader.reload(t.Context()); loader.metrics.loaded.Load() != 2 {
		t.Errorf("%d were loaded", loader.metrics.loaded.Load())
	}
	look("load false, soon false")
}

// After a temporary failure an unchanged catalog is tried again, at growing intervals.
func TestCatalogIsTriedAgainAfterPassingErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), sampleA)
	src := directory(t, dir)
	var short error
	open := src.open
	src.open = func(ctx context.Context) (Source, error) {
		if short != nil {
			return Source{}, short
		}
		return open(ctx)
	}
	var told bytes.Buffer
	loader := &catalogLoader{src: src, every: time.Millisecond, log: slog.New(slog.NewTextHandler(&told, nil)),
		use: func(h held) { h.Close() }}
	store, err := loader.loadFirst(t.Context())
	do(t, err)
	do(t, store.Close())
	short = &os.PathError{Op: "open", Path: "a.yaml", Err: syscall.EMFILE}
	for _, want := range []time.Duration{1, 2, 4} {
		if loader.reload(t.Context()); loader.wait != want*time.Millisecond {
			t.Errorf("waits %v, want %d ms", loader.wait, want)
		}
		loader.retry = time.Now().Add(time.Hour)
		if load, _ := loader.changed(); load {
			t.Error("it is tried again at once")
		}
		loader.retry = time.Now()
		if load, _ := loader.changed(); !load {
			t.Error("it is not tried again")
		}
	}
	if !strings.Contains(told.String(), "served until it can") || !strings.Contains(told.String(), "again in") {
		t.Errorf("told %s", told.String())
	}
	for range 100 {
		loader.retryAfter(short)
	}
	if loader.wait != mostRetryWait {
		t.Errorf("waits %v", loader.wait)
	}
	short = nil
	if loader.reload(t.Context()); loader.wait != 0 || loader.metrics.loaded.Load() != 2 {
		t.Errorf("waits %v, %d were loaded", loader.wait, loader.metrics.loaded.Load())
	}
	if loader.retryAfter(errors.New("not valid")); loader.wait != 0 {
		t.Error("what is wrong with a catalog does not pass")
	}
}

// A catalog that is replaced while it is read is read again, at the start and later.
func TestTornCatalogIsNeverServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	write(t, path, sampleA)
	var changes, opened, closed atomic.Int32
	changes.Store(2)
	// read reads the file, which is then replaced as often as changes requires.
	read := func(yield func(declcfg.Blob, error) bool) {
		c := parse(t, string(readFile(t, path)))
		if changes.Add(-1) >= 0 {
			write(t, path, fmt.Sprintf("# %d\n%s", changes.Load(), sampleB))
		}
		for b := range c.Blobs() {
			if !yield(b, nil) {
				return
			}
		}
	}
	open := func(context.Context) (Source, error) {
		opened.Add(1)
		return Blobs("changing", read).Watched(path).Closing(func() error { closed.Add(1); return nil }), nil
	}
	src, _ := open(t.Context())
	src = src.Reopened(open)
	s := start(t, src, Options{})
	conn := dial(t, s.addr)
	if got := packageNames(t, conn); got != "b" || !strings.Contains(s.log.all(), errChanged.Error()) {
		t.Errorf("%q is served\n%s", got, s.log.all())
	}
	write(t, path, sampleA)
	changes.Store(1)
	s.reload <- syscall.SIGHUP
	s.log.wait(t, "when it has come to rest")
	if got := packageNames(t, conn); got != "b" {
		t.Errorf("%q is served meanwhile", got)
	}
	s.log.wait(t, "the catalog was loaded again")
	if got := packageNames(t, conn); got != "b" {
		t.Errorf("%q is served in the end", got)
	}
	do(t, s.stop())
	if opened.Load() != closed.Load() || opened.Load() != 5 {
		t.Errorf("%d sources were opened and %d closed", opened.Load(), closed.Load())
	}
}

// generation returns a catalog of packages whose bundles all have one number.
func generation(n int) string {
	var b strings.Builder
	for i := range 8 {
		b.WriteString(strings.ReplaceAll(renamed(sampleB, "b", fmt.Sprintf("p%d", i)), "b.v1.0.0",
			fmt.Sprintf("p%d.v%d.0.0", i, n)))
	}
	return b.String()
}

// openFDs counts the process's file descriptors on Linux.
func openFDs(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no /proc/self/fd")
	}
	do(t, err)
	return len(entries)
}

// The catalog is replaced repeatedly while clients ask: each list is of one catalog, no call fails, the server is
// always healthy, and no files are left. BINDERY_RELOADS sets the number of reloads.
func TestReloadsUnderClients(t *testing.T) {
	reloads := 20
	if text := os.Getenv("BINDERY_RELOADS"); text != "" {
		n, err := strconv.Atoi(text)
		do(t, err)
		reloads = n
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "0", "catalog.yaml"), generation(0))
	link := filepath.Join(dir, "catalog")
	do(t, os.Symlink("0", link))
	s := startAt(t, directory(t, link), Options{}, slog.LevelInfo)
	var (
		stop    = make(chan struct{})
		clients sync.WaitGroup
		lists   atomic.Int64
	)
	watcher := dial(t, s.addr)
	watch, err := healthpb.NewHealthClient(watcher).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	do(t, err)
	first, err := watch.Recv()
	do(t, err)
	unhealthy := make(chan string, 1)
	go func() {
		next, err := watch.Recv()
		unhealthy <- fmt.Sprint(next, err)
	}()
	for range 4 {
		conn := dial(t, s.addr)
		clients.Go(func() {
			for {
				select {
				case <-stop:
					conn.Close()
					return
				default:
				}
				if err := listOneGeneration(t, api.NewRegistryClient(conn)); err != nil {
					t.Error(err)
					return
				}
				lists.Add(1)
			}
		})
	}
	replace := func(i int) {
		next := filepath.Join(dir, strconv.Itoa(i))
		write(t, filepath.Join(next, "catalog.yaml"), generation(i))
		do(t, os.Symlink(strconv.Itoa(i), link+".next"))
		do(t, os.Rename(link+".next", link))
		s.reload <- syscall.SIGHUP
		s.log.wait(t, "the catalog was loaded again")
		do(t, os.RemoveAll(filepath.Join(dir, strconv.Itoa(i-1))))
	}
	var fds, goroutines int
	var heap runtime.MemStats
	for i := 1; i <= reloads; i++ {
		replace(i)
		if i == 5 {
			fds, goroutines = openFDs(t), runtime.NumGoroutine()
			runtime.GC()
			runtime.ReadMemStats(&heap)
		}
	}
	select {
	case got := <-unhealthy:
		t.Errorf("the health changed from %v to %s", first, got)
	default:
	}
	if watcher.GetState() != connectivity.Ready {
		t.Errorf("a connection was lost: %v", watcher.GetState())
	}
	close(stop)
	clients.Wait()
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	// The calls in progress at the first measurement account for some.
	if now := openFDs(t); now > fds+8 {
		t.Errorf("%d file descriptors after 5 reloads, %d after %d", fds, now, reloads)
	}
	if now := runtime.NumGoroutine(); now > goroutines+16 {
		t.Errorf("%d goroutines after 5 reloads, %d after %d", goroutines, now, reloads)
	}
	if after.HeapAlloc > heap.HeapAlloc+8<<20 {
		t.Errorf("%d bytes after 5 reloads, %d after %d", heap.HeapAlloc, after.HeapAlloc, reloads)
	}
	t.Logf("%d reloads, %d lists, %d fds, %d goroutines, heap %d -> %d", reloads, lists.Load(), fds, goroutines,
		heap.HeapAlloc, after.HeapAlloc)
}

// listOneGeneration lists all bundles and fails unless they are exactly those of one generation.
func listOneGeneration(t *testing.T, client api.RegistryClient) error {
	stream, err := client.ListBundles(t.Context(), &api.ListBundlesRequest{})
	if err != nil {
		return err
	}
	versions, n := map[string]bool{}, 0
	for {
		b, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		_, version, _ := strings.Cut(b.GetCsvName(), ".")
		versions[version] = true
		n++
	}
	if n != 8 || len(versions) != 1 {
		return fmt.Errorf("%d bundles of the versions %v", n, versions)
	}
	return nil
}

func TestFingerprint(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", "a")
	old := lookAt(dir)
	if !lookAt(dir).same(old) {
		t.Error("two looks at the same differ")
	}
	for name, change := range map[string]func(){
		"size":      func() { write(t, dir+"/a.yaml", "aa") },
		"time":      func() { do(t, os.Chtimes(dir+"/a.yaml", time.Unix(1, 0), time.Unix(1, 0))) },
		"name":      func() { do(t, os.Rename(dir+"/a.yaml", dir+"/b.yaml")) },
		"new file":  func() { write(t, dir+"/c/c.yaml", "") },
		"not there": func() { do(t, os.RemoveAll(dir)) },
	} {
		before := lookAt(dir)
		change()
		if lookAt(dir).same(before) {
			t.Errorf("%s: the change is not seen", name)
		}
	}
	if f := (fingerprint{newest: time.Now().Add(time.Hour)}); f.unsettled() != settling {
		t.Errorf("a time in the future is waited for %v", f.unsettled())
	}
	if f := (fingerprint{newest: time.Now().Add(-time.Hour)}); f.unsettled() > 0 {
		t.Errorf("an old time is waited for %v", f.unsettled())
	}
}

// If a directory is replaced after it was opened, the new one is loaded, at the start and later.
func TestDirectoryThatIsReplacedAfterItWasOpened(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/catalog"
	replace := func(catalog string) {
		write(t, dir+"/next/c.yaml", catalog)
		do(t, os.RemoveAll(path))
		do(t, os.Rename(dir+"/next", path))
	}
	replace(sampleA)
	src := directory(t, path)
	replace(sampleB)
	opened := src.open
	replaceOnce := func() {}
	src = src.Reopened(func(ctx context.Context) (Source, error) {
		src, err := opened(ctx)
		replaceOnce()
		replaceOnce = func() {}
		return src, err
	})
	s := start(t, src, Options{})
	conn := dial(t, s.addr)
	if got := packageNames(t, conn); got != "b" {
		t.Errorf("at the start %q", got)
	}
	replaceOnce = func() { replace(renamed(sampleB, "b", "c")) }
	s.reload <- syscall.SIGHUP
	s.log.wait(t, "the catalog was loaded again")
	if got := packageNames(t, conn); got != "c" {
		t.Errorf("later %q", got)
	}
}
