//go:build hostile

package hostile

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/operator-bindery/bindery/internal/api"
)

// server is a running server.
type server struct {
	t    *testing.T
	b    *box
	cmd  *exec.Cmd
	addr string
	log  *os.File
	done chan error
}

// serve starts the program and waits until it reports its address.
func (b *box) serve(args ...string) *server {
	b.t.Helper()
	return b.start(exec.Command(bindery, append([]string{"serve", "--port", "0", "--log-level", "debug"}, args...)...))
}

func (b *box) start(cmd *exec.Cmd) *server {
	b.t.Helper()
	log, err := os.CreateTemp(b.home, "log")
	check(b.t, err)
	if cmd.Dir == "" {
		cmd.Dir = b.dir
	}
	if cmd.Env == nil {
		cmd.Env = b.env
	}
	cmd.Stderr, cmd.Stdout = log, log
	check(b.t, cmd.Start())
	s := &server{t: b.t, b: b, cmd: cmd, log: log, done: make(chan error, 1)}
	go func() { s.done <- cmd.Wait() }()
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill() // most have exited already
		log.Close()
	})
	address := regexp.MustCompile(`(?m)address=\S*:([0-9]+)`)
	for range 1000 {
		if m := address.FindStringSubmatch(s.text()); m != nil {
			s.addr = "127.0.0.1:" + m[1]
			return s
		}
		select {
		case err := <-s.done:
			b.t.Fatalf("the server ended: %v\n%s", err, s.text())
		case <-time.After(10 * time.Millisecond):
		}
	}
	b.t.Fatalf("the server does not say where it listens:\n%s", s.text())
	return nil
}

func (s *server) text() string {
	data, err := os.ReadFile(s.log.Name())
	check(s.t, err)
	return string(data)
}

// stop sends SIGTERM and requires that the server exits properly within the time.
func (s *server) stop(within time.Duration) {
	s.t.Helper()
	start := time.Now()
	check(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-s.done:
		if err != nil {
			s.t.Errorf("the server ended with %v:\n%s", err, s.text())
		}
	case <-time.After(within + 5*time.Second):
		s.t.Fatalf("the server does not end")
	}
	if took := time.Since(start); took > within {
		s.t.Errorf("the server took %s to end", took)
	}
	s.b.noTemp("server")
	if text := s.text(); strings.Contains(text, "panic") || strings.Contains(text, secret) {
		s.t.Errorf("log:\n%.3000s", text)
	}
}

// answers requires that a well-behaved client is served within the time.
func (s *server) answers(within time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	conn, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(s.t, err)
	defer conn.Close()
	client := api.NewRegistryClient(conn)
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+secret)
	p, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: "foo"}, grpc.WaitForReady(true))
	if err != nil || p.Name != "foo" {
		s.t.Errorf("GetPackage: %v, %v", p, err)
		return
	}
	bundle, err := client.GetBundle(ctx,
		&api.GetBundleRequest{PkgName: "foo", ChannelName: "stable", CsvName: "foo.v1.0.0"})
	if err != nil || bundle.BundlePath != "example.com/foo:v1.0.0" {
		s.t.Errorf("GetBundle: %v, %v", bundle, err)
	}
}

// memory returns the resident memory of the server in bytes.
func (s *server) memory() int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	check(s.t, err)
	m := regexp.MustCompile(`VmRSS:\s+([0-9]+) kB`).FindStringSubmatch(string(data))
	n, err := strconv.ParseInt(m[1], 10, 64)
	check(s.t, err)
	return n << 10
}

// raw is a client that writes arbitrary HTTP/2 frames.
type raw struct {
	net.Conn
	*http2.Framer
	headers *hpack.Encoder
	block   strings.Builder
}

func (s *server) raw() *raw {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	check(s.t, err)
	c := &raw{Conn: conn}
	c.headers = hpack.NewEncoder(&c.block)
	c.Framer = http2.NewFramer(conn, conn)
	c.AllowIllegalWrites = true
	_, err = io.WriteString(conn, http2.ClientPreface)
	check(s.t, err)
	check(s.t, c.WriteSettings())
	return c
}

// call begins a call.
func (c *raw) call(stream uint32, path string, more ...string) error {
	c.block.Reset()
	fields := append([]string{":method", "POST", ":scheme", "http", ":path", path, ":authority", "x", "content-type",
		"application/grpc", "te", "trailers"}, more...)
	for i := 0; i < len(fields); i += 2 {
		if err := c.headers.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return err
		}
	}
	block := []byte(c.block.String())
	first := block[:min(len(block), 16<<10)]
	err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first,
		EndHeaders: len(first) == len(block)})
	for rest := block[len(first):]; len(rest) > 0 && err == nil; {
		part := rest[:min(len(rest), 16<<10)]
		rest = rest[len(part):]
		err = c.WriteContinuation(stream, len(rest) == 0, part)
	}
	return err
}

// drop discards everything that the server sends until it closes the connection.
func (c *raw) drop() { _, _ = io.Copy(io.Discard, c.Conn) }

func serving(t *testing.T) (*box, *server) {
	t.Helper()
	b := newBox(t)
	b.write("cat/foo/catalog.yaml", healthy)
	s := b.serve("cat")
	s.answers(5 * time.Second)
	return b, s
}

// Ten thousand connections that send nothing, little, invalid data, or a valid start need little memory, and other
// clients are served meanwhile.
func TestManyConnections(t *testing.T) {
	var l syscall.Rlimit
	check(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l))
	const connections = 10_000
	if l.Max < connections+1000 {
		t.Skipf("only %d open files are allowed", l.Max)
	}
	l.Cur = l.Max
	check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l))
	_, s := serving(t)
	before := s.memory()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for i := range connections {
		c, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err != nil {
			break // the accept queue is full
		}
		conns = append(conns, c)
		switch i % 5 {
		case 1:
			_, _ = io.WriteString(c, http2.ClientPreface[:10]) // the server may close the connection at any time
		case 2:
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		case 3:
			conf := &tls.Config{InsecureSkipVerify: true}
			go func() { _ = tls.Client(c, conf).Handshake() }() // no answer is expected
		case 4:
			_, _ = io.WriteString(c, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00") // with empty settings
		}
	}
	start := time.Now()
	s.answers(15 * time.Second)
	grown := s.memory() - before
	t.Logf("%d connections: others are served after %s; %d MB more memory", len(conns),
		time.Since(start).Round(time.Millisecond), grown>>20)
	if grown > 100<<20 {
		t.Errorf("%d MB more memory", grown>>20)
	}
	s.stop(20 * time.Second)
}

// Floods of frames, headers and messages end the connection or the call; the server's memory stays small and it serves
// others.
func TestFloods(t *testing.T) {
	const list = "/api.Registry/ListBundles"
	floods := map[string]func(*raw) error{
		"streams that are reset at once": func(c *raw) error {
			for i := range uint32(100_000) {
				if err := c.call(2*i+1, list); err != nil {
					return err
				}
				if err := c.WriteRSTStream(2*i+1, http2.ErrCodeCancel); err != nil {
					return err
				}
			}
			return nil
		},
		"settings": func(c *raw) error {
			for range 1_000_000 {
				if err := c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535}); err != nil {
					return err
				}
			}
			return nil
		},
		"pings": func(c *raw) error {
			for range 300_000 {
				if err := c.WritePing(false, [8]byte{}); err != nil {
					return err
				}
			}
			return nil
		},
		"headers of 1 MiB": func(c *raw) error { return c.call(1, list, "x", strings.Repeat("x", 1<<20)) },
		"10,000 headers": func(c *raw) error {
			var more []string
			for i := range 10_000 {
				more = append(more, fmt.Sprintf("x-%d", i), "y")
			}
			return c.call(1, list, more...)
		},
		"continuations without end": func(c *raw) error {
			if err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: false}); err != nil {
				return err
			}
			for range 100_000 {
				if err := c.WriteContinuation(1, false, make([]byte, 1000)); err != nil {
					return err
				}
			}
			return nil
		},
		"message of 10 MiB": func(c *raw) error {
			if err := c.call(1, list); err != nil {
				return err
			}
			if err := c.WriteData(1, false, []byte{0, 0, 0xa0, 0, 0}); err != nil {
				return err
			}
			for range 640 {
				if err := c.WriteData(1, false, make([]byte, 16<<10)); err != nil {
					return err
				}
			}
			return nil
		},
		"10,000 calls at once": func(c *raw) error {
			for i := range uint32(10_000) {
				if err := c.call(2*i+1, list); err != nil {
					return err
				}
			}
			return nil
		},
		"path without a slash": func(c *raw) error { return c.call(1, "nothing") },
		"data without a call":  func(c *raw) error { return c.WriteData(7, true, []byte("x")) },
		"priority": func(c *raw) error {
			return c.WriteRawFrame(http2.FramePriority, 0, 1, make([]byte, 5))
		},
		"frame of 16 MiB": func(c *raw) error {
			return c.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 1<<24-1))
		},
		"garbage": func(c *raw) error {
			_, err := c.Conn.Write([]byte(strings.Repeat("\xff", 1<<20)))
			return err
		},
		"windows": func(c *raw) error {
			for range 10 {
				if err := c.WriteWindowUpdate(0, 1<<31-1); err != nil {
					return err
				}
			}
			return nil
		},
	}
	_, s := serving(t)
	before := s.memory()
	var wg sync.WaitGroup
	for _, flood := range floods {
		wg.Go(func() {
			c := s.raw()
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(10 * time.Second)) // an open connection has a deadline
			go c.drop()
			_ = flood(c) // most are closed by the server
		})
	}
	wg.Wait()
	s.answers(5 * time.Second)
	if grown := s.memory() - before; grown > 100<<20 {
		t.Errorf("%d MB more memory", grown>>20)
	}
	s.stop(20 * time.Second)
}

func TestUnknownMethods(t *testing.T) {
	t.Parallel()
	_, s := serving(t)
	conn, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(t, err)
	defer conn.Close()
	for _, method := range []string{"/api.Registry/Nothing", "/nothing/x", "/x", "//", "/api.Registry/"} {
		err := conn.Invoke(context.Background(), method, &api.GetPackageRequest{}, &api.Package{})
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", method, err)
		}
	}
	client := api.NewRegistryClient(conn)
	for _, name := range []string{"", "../foo", strings.Repeat("x", 60_000), "\x00", "%00", "foo\n"} {
		if _, err := client.GetPackage(context.Background(),
			&api.GetPackageRequest{Name: name}); status.Code(err) == codes.OK || status.Code(err) == codes.Internal {
			t.Errorf("package %.20q: %v", name, err)
		}
	}
	s.stop(20 * time.Second)
}

// A client that reads nothing does not prevent the server from stopping.
func TestStoppedReader(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	big := strings.Replace(healthy, "relatedImages:",
		"- {type: x, value: \""+strings.Repeat("x", 1<<20)+"\"}\nrelatedImages:", 1)
	b.write("cat/foo/catalog.yaml", big)
	s := b.serve("cat")
	s.answers(5 * time.Second)
	c := s.raw()
	defer c.Close()
	for i := range uint32(50) {
		check(t, c.call(2*i+1, "/api.Registry/ListBundles"))
		check(t, c.WriteData(2*i+1, true, make([]byte, 5)))
	}
	time.Sleep(200 * time.Millisecond) // the answers fill the flow control windows
	s.answers(5 * time.Second)
	s.stop(20 * time.Second)
}

// A second signal ends a server immediately.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	_, s := serving(t)
	c := s.raw()
	defer c.Close()
	check(t, c.call(1, "/grpc.health.v1.Health/Watch"))
	check(t, c.WriteData(1, true, make([]byte, 5)))
	time.Sleep(100 * time.Millisecond) // the call is in progress
	start := time.Now()
	for range 2 {
		check(t, s.cmd.Process.Signal(syscall.SIGTERM))
		time.Sleep(50 * time.Millisecond) // equal signals in quick succession are merged
	}
	<-s.done
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
	b := s.b
	b.noTemp("second signal")
}

// A port in use is a local error, also in the termination log; other missing resources are not fatal.
func TestServerSurroundings(t *testing.T) {
	t.Parallel()
	b, s := serving(t)
	_, port, err := net.SplitHostPort(s.addr)
	check(t, err)
	term := b.write("termination", "")
	o := b.run("--error-format=json", "serve", "cat", "--port", port, "--termination-log", term)
	if o.status != 1 || o.class != local || !strings.Contains(o.message, "in use") {
		t.Errorf("status %d: %s", o.status, o.stderr)
	}
	if data, err := os.ReadFile(term); err != nil || !strings.Contains(string(data), "in use") {
		t.Errorf("termination log: %q, %v", data, err)
	}
	for _, args := range [][]string{
		{"--termination-log", "/nowhere/log"}, {"--termination-log", "/"}, {"--pprof-addr", s.addr},
		{"--cache-dir", "/proc/nothing"}, {"--cache-dir", "/dev/null/x"},
	} {
		other := b.serve(append(args, "cat")...)
		other.answers(5 * time.Second)
		other.stop(20 * time.Second)
		if !strings.Contains(other.text(), "warn") && !strings.Contains(other.text(), "Warn") {
			t.Errorf("%q: no warning:\n%s", args, other.text())
		}
	}
	s.stop(20 * time.Second)
}

// Caches of every kind: one that does not match is refused with --cache-enforce-integrity, and otherwise does not
// affect the answers.
func TestCaches(t *testing.T) {
	fill := func(t *testing.T, b *box, cat, cache string) {
		b.accepted("serve", cat, "--cache-dir", cache, "--cache-only")
	}
	file := func(b *box) string { return filepath.Join(b.dir, "cache", "foo.cache") }
	for _, c := range []struct {
		name    string
		make    func(t *testing.T, b *box)
		refused bool
	}{
		{"as it was filled", func(t *testing.T, b *box) {}, false},
		{"byte flipped", func(t *testing.T, b *box) {
			data, err := os.ReadFile(file(b))
			check(t, err)
			data[len(data)/2] ^= 1
			check(t, os.WriteFile(file(b), data, 0o644))
		}, true},
		{"truncated", func(t *testing.T, b *box) { check(t, os.Truncate(file(b), 100)) }, true},
		{"empty file", func(t *testing.T, b *box) { check(t, os.Truncate(file(b), 0)) }, true},
		{"1 GiB file", func(t *testing.T, b *box) { check(t, os.Truncate(file(b), 1<<30)) }, true},
		{"file added", func(t *testing.T, b *box) { b.write("cache/bar.cache", "x") }, true},
		{"foreign file added", func(t *testing.T, b *box) { b.write("cache/mine", "x") }, true},
		{"file removed", func(t *testing.T, b *box) { check(t, os.Remove(file(b))) }, true},
		{"files swapped", func(t *testing.T, b *box) {
			other := filepath.Join(b.dir, "cache", "bar.cache")
			check(t, os.Rename(file(b), other))
		}, true},
		{"cache of another catalog", func(t *testing.T, b *box) {
			check(t, os.RemoveAll(filepath.Join(b.dir, "cache")))
			b.write("other/foo/catalog.yaml", strings.ReplaceAll(healthy, "example.com", "evil.example.com"))
			fill(t, b, "other", "cache")
		}, true},
		{"empty directory", func(t *testing.T, b *box) {
			check(t, os.RemoveAll(filepath.Join(b.dir, "cache")))
			check(t, os.Mkdir(filepath.Join(b.dir, "cache"), 0o755))
		}, true},
		{"no directory", func(t *testing.T, b *box) { check(t, os.RemoveAll(filepath.Join(b.dir, "cache"))) }, true},
		{"another program's cache", func(t *testing.T, b *box) {
			check(t, os.RemoveAll(filepath.Join(b.dir, "cache")))
			b.write("cache/pogreb.v1/digest", "9a684d83768a7d25")
			b.write("cache/pogreb.v1/db/main.pix", "x")
		}, true},
		{"FIFO", func(t *testing.T, b *box) {
			check(t, os.Remove(file(b)))
			check(t, syscall.Mkfifo(file(b), 0o644))
		}, true},
		{"link outside", func(t *testing.T, b *box) {
			check(t, os.Remove(file(b)))
			check(t, os.Symlink("../../canary/secret", file(b)))
		}, true},
		{"directory in place of a file", func(t *testing.T, b *box) {
			check(t, os.Remove(file(b)))
			check(t, os.Mkdir(file(b), 0o755))
		}, true},
		{"leftovers of a killed writer",
			func(t *testing.T, b *box) { b.write("cache/.foo.cache.bindery-0123456789abcdef", "x") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.write("cat/foo/catalog.yaml", healthy)
			fill(t, b, "cat", "cache")
			c.make(t, b)
			if c.refused {
				b.refused(integrity, "integrity check failed", "serve", "cat", "--cache-dir", "cache",
					"--cache-enforce-integrity", "--port", "0")
			}
			s := b.serve("cat", "--cache-dir", "cache")
			s.answers(5 * time.Second)
			s.stop(20 * time.Second)
			if got := fingerprint(t, b.canary); !strings.Contains(got, "secret -rw------- 18") {
				t.Errorf("canary: %s", got)
			}
		})
	}
}

// A restricted pod: an arbitrary user with group 0 and a read-only root directory with only the program, the catalog
// and its cache.
func TestPod(t *testing.T) {
	needRoot(t)
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
	}{
		{"with a cache", []string{"/bin/opm", "serve", "/configs", "--cache-dir=/cache", "--port", "0",
			"--termination-log", "/dev/termination-log"}},
		{"without a cache", []string{"/bin/opm", "serve", "/configs", "--port", "0"}},
		{"cache that is enforced",
			[]string{"/bin/opm", "serve", "/configs", "--cache-dir=/cache", "--cache-enforce-integrity", "--port",
				"0"}},
		{"database", []string{"/bin/bindery", "registry", "serve", "-d", "/index.db", "--port", "0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			b.write("configs/foo/catalog.yaml", healthy)
			b.accepted("serve", "configs", "--cache-dir", "cache", "--cache-only")
			root := t.TempDir()
			mountTmpfs(t, root, "size=200m,mode=755")
			check(t, os.CopyFS(filepath.Join(root), os.DirFS(b.dir)))
			check(t, os.WriteFile(filepath.Join(root, "index.db"), smallDatabase(t), 0o444))
			program, err := os.ReadFile(bindery)
			check(t, err)
			check(t, os.Mkdir(filepath.Join(root, "bin"), 0o755))
			check(t, os.WriteFile(filepath.Join(root, "bin", "bindery"), program, 0o755))
			check(t, os.Symlink("bindery", filepath.Join(root, "bin", "opm")))
			check(t, remountReadOnly(root))
			before := fingerprint(t, root)
			cmd := &exec.Cmd{Path: c.args[0], Args: c.args, Dir: "/", Env: []string{"KUBERNETES_SERVICE_HOST=x"}}
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root,
				Credential: &syscall.Credential{Uid: 1000690000, Gid: 0}}
			s := b.start(cmd)
			if c.name == "database" {
				if o := b.run("probe", "-addr", s.addr, "-connect-timeout", "5s", "-rpc-timeout", "5s"); o.status != 0 {
					t.Errorf("probe: %s%s", o.stdout, o.stderr)
				}
			} else {
				s.answers(5 * time.Second)
			}
			s.stop(20 * time.Second)
			if after := fingerprint(t, root); after != before {
				t.Errorf("the root directory has changed:%s", difference(before, after))
			}
		})
	}
}

// remountReadOnly makes a mounted file system read-only. It retries while a file is open for writing in a process that
// was started meanwhile.
func remountReadOnly(dir string) error {
	for range 100 {
		err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return syscall.EBUSY
}
