package registries

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
)

// server is a registry that runs.
type server struct {
	host string
	// root is the directory of its files; empty if it is in memory.
	root string
}

// servers start a registry, which ends with the test.
var servers = map[string]func(t testing.TB) server{
	"docker-registry":      func(t testing.TB) server { return start(t, "docker-registry") },
	"distribution 3":       func(t testing.TB) server { return start(t, os.Getenv("REGISTRY3")) },
	"go-containerregistry": inMemory,
}

func inMemory(t testing.TB) server {
	s := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	_, host, _ := strings.Cut(s.URL, "://")
	return server{host: host}
}

const config = `version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %s}, delete: {enabled: true}}
http: {addr: %s}
`

// start starts a program of the project distribution, and waits until it answers.
func start(t testing.TB, program string) server {
	t.Helper()
	dir := t.TempDir()
	s := server{host: freePort(t), root: filepath.Join(dir, "files")}
	file := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, s.root, s.host), 0o600); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	c := exec.Command(program, "serve", file)
	c.Stdout, c.Stderr = &output, &output
	c.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	if err := c.Start(); err != nil {
		t.Fatalf("%v; run \"make registries\"", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s: %s", program, output.String())
		}
	})
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		answer, err := http.Get("http://" + s.host + "/v2/")
		if err == nil {
			answer.Body.Close()
			return s
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s has ended: %v", program, err)
		case <-t.Context().Done():
			t.Fatal(err)
		case <-again.C:
		}
	}
}

// freePort returns an address on loopback that is free at the moment. It is below the ports that the kernel gives to
// connections and to listeners that ask for none.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// vanish removes a blob from a repository in the files of a registry.
func (s server) vanish(t testing.TB, repository string, d digest.Digest) {
	t.Helper()
	at := filepath.Join(s.root, "docker/registry/v2")
	for _, path := range []string{
		filepath.Join(at, "repositories", repository, "_layers/sha256", d.Encoded()),
		filepath.Join(at, "blobs/sha256", d.Encoded()[:2], d.Encoded()),
	} {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

// corrupt changes a byte of a blob in the files of a registry.
func (s server) corrupt(t testing.TB, d digest.Digest) {
	t.Helper()
	path := filepath.Join(s.root, "docker/registry/v2/blobs/sha256", d.Encoded()[:2], d.Encoded(), "data")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
