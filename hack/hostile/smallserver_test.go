//go:build hostile

package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/operator-bindery/bindery/internal/api"
)

// smallServer is the server of catalog images, built once.
var smallServer = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(bindery), "opm-server")
	build := exec.Command("go", "build", "-tags", "containers_image_openpgp,exclude_graphdriver_btrfs,grpcnotrace",
		"-o", path, "../../cmd/opm-server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return path, nil
})

// listerAddress is the environment variable that turns this program into a client which lists the bundles of the server
// at that address.
const listerAddress = "HOSTILE_LIST_FROM"

// listForever lists all bundles repeatedly until the server is gone. It prints a line when the first bundle arrives.
func listForever(addr string) int {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 1
	}
	defer conn.Close()
	for said := false; ; {
		list, err := api.NewRegistryClient(conn).ListBundles(context.Background(), &api.ListBundlesRequest{})
		for err == nil {
			_, err = list.Recv()
			if err == nil && !said {
				said = true
				fmt.Println("listing")
			}
		}
		if !errors.Is(err, io.EOF) {
			return 0
		}
	}
}

// startLister starts such a client process and returns when it is in the middle of a list.
func startLister(t *testing.T, addr string) *os.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), listerAddress+"="+addr)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // works for a stopped process too
		_ = cmd.Wait()         // fails because it was killed
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the client does not list: %v", err)
	}
	return cmd.Process
}

// Clients that are stopped in the middle of a list delay neither other clients nor the server's shutdown, and use no
// more memory than the limit for answers; what they sent is in no log.
func TestStoppedClients(t *testing.T) {
	t.Parallel()
	program, err := smallServer()
	check(t, err)
	for _, c := range []struct{ name, program, debug string }{
		{"command", bindery, "--log-level=debug"}, {"server of images", program, "--debug"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			// Every answer has a property of 1 MiB.
			b.write("cat/foo/catalog.yaml", strings.Replace(healthy, "relatedImages:",
				"- {type: x, value: \""+strings.Repeat("x", 1<<20)+"\"}\nrelatedImages:", 1))
			s := b.start(exec.Command(c.program, "serve", "cat", "--port", "0", "--termination-log", "/dev/null",
				c.debug))
			s.answers(5 * time.Second)
			before := s.memory()
			for range 12 {
				check(t, startLister(t, s.addr).Signal(syscall.SIGSTOP))
			}
			s.answers(5 * time.Second)
			if grown := s.memory() - before; grown > 100<<20 {
				t.Errorf("%d MB more memory", grown>>20)
			}
			s.stop(20 * time.Second)
		})
	}
}

// Damaging the cache under the running small server never ends it.
func TestCacheDamagedUnderServer(t *testing.T) {
	program, err := smallServer()
	check(t, err)
	t.Parallel()
	b := newBox(t)
	b.write("cat/foo/catalog.yaml", healthy)
	b.accepted("serve", "cat", "--cache-dir", "cache", "--cache-only")
	s := b.start(exec.Command(program, "serve", "cat", "--port", "0", "--termination-log", "/dev/null", "--cache-dir",
		"cache", "--cache-enforce-integrity"))
	s.answers(5 * time.Second)
	file := filepath.Join(b.dir, "cache", "foo.cache")
	data, err := os.ReadFile(file)
	check(t, err)
	check(t, os.Truncate(file, 0))
	conn, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(t, err)
	defer conn.Close()
	if p, err := api.NewRegistryClient(conn).GetPackage(context.Background(),
		&api.GetPackageRequest{Name: "foo"}); err == nil {
		t.Errorf("an answer from an empty file: %v", p)
	}
	check(t, os.WriteFile(file, data, 0o644))
	s.answers(5 * time.Second)
	s.stop(20 * time.Second)
}
