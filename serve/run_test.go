package serve

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/operator-bindery/bindery/internal/api"
)

// logged is a log in which a test waits for records.
type logged struct {
	mu    sync.Mutex
	text  strings.Builder
	read  int // number of bytes read by wait
	wrote chan struct{}
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	select {
	case l.wrote <- struct{}{}:
	default:
	}
	return len(b), nil
}

// wait reads up to the end of the next record that contains part. Its time limit only ends a failing test.
func (l *logged) wait(t testing.TB, part string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		l.mu.Lock()
		unread := l.text.String()[l.read:]
		at := strings.Index(unread, part)
		if at >= 0 {
			end := strings.IndexByte(unread[at:], '\n')
			l.read += at + end + 1
		}
		l.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-l.wrote:
		case <-timeout:
			t.Fatalf("the log does not say %q:\n%s", part, l.all())
		}
	}
}

func (l *logged) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// ran is a server that a test has started with [Run].
type ran struct {
	addr   string
	log    *logged
	reload chan<- os.Signal
	stop   func() error
}

// start runs a server on the loopback interface and waits until it serves.
func start(t testing.TB, src Source, o Options) *ran {
	t.Helper()
	return startAt(t, src, o, slog.LevelDebug)
}

// startAt is start with a log level.
func startAt(t testing.TB, src Source, o Options, level slog.Level) *ran {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := &logged{wrote: make(chan struct{}, 1)}
	reload := make(chan os.Signal)
	o.Listener, o.Reload = l, reload
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	ready := make(chan net.Addr, 1)
	o.Ready = func(a net.Addr) { ready <- a }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, src, o) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	select {
	case a := <-ready:
		return &ran{addr: a.String(), log: log, reload: reload, stop: stop}
	case err := <-ended:
		ended <- err
		t.Fatalf("the server ended with %v\n%s", err, log.all())
		return nil
	}
}

func packageNames(t testing.TB, conn *grpc.ClientConn) string {
	t.Helper()
	stream, err := api.NewRegistryClient(conn).ListPackages(t.Context(), &api.ListPackageRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for {
		p, err := stream.Recv()
		if err != nil {
			break
		}
		names = append(names, p.GetName())
	}
	return strings.Join(names, " ")
}

func directory(t testing.TB, dir string) Source {
	t.Helper()
	src, err := Directory(dir)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// listenLocally returns a listener for one of the other services.
func listenLocally(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// renamed returns a sample with another package name.
func renamed(sample, from, to string) string {
	r := strings.NewReplacer("name: "+from+"\n", "name: "+to+"\n", "package: "+from+"\n", "package: "+to+"\n",
		"packageName: "+from+",", "packageName: "+to+",")
	return r.Replace(sample)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
