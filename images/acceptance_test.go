package images

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
)

// realRegistry starts Debian's registry with a certificate of a private authority, and a password: user "user", the
// canary.
func realRegistry(t *testing.T) (host, ca string) {
	t.Helper()
	path, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("docker-registry is not installed")
	}
	dir := t.TempDir()
	cert := certificate(t, func(*x509.Certificate) {})
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(dir, "ca.crt")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})))
	write(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	write(t, filepath.Join(dir, "htpasswd"), "user:$2a$04$wPkULVveyvNN30RCKDHSj.PvIFU7cAuZCVz9MNaHkUfekNyAF9zmK\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host = l.Addr().String()
	l.Close()
	write(t, filepath.Join(dir, "config.yml"),
		fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %[1]s/data}}\n"+
			"http: {addr: %[2]q, tls: {certificate: %[1]s/ca.crt, key: %[1]s/key.pem}}\nauth: {htpasswd: "+
			"{realm: test, "+
			"path: %[1]s/htpasswd}}\n", dir, host))
	cmd := exec.Command(path, "serve", filepath.Join(dir, "config.yml"))
	requests, err := os.Create(filepath.Join(dir, "access.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer requests.Close()
	cmd.Stdout = requests
	registryLog = func(t *testing.T) string {
		t.Helper()
		text, err := os.ReadFile(requests.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		c, err := tls.Dial("tcp", host,
			&tls.Config{InsecureSkipVerify: true}) //nolint:gosec // only whether it is there
		if err == nil {
			c.Close()
			return host, ca
		}
		if time.Now().After(deadline) {
			t.Fatalf("the registry does not answer: %v", err)
		}
	}
}

// registryLog is the log of requests of the registry that was started last.
var registryLog func(*testing.T) string

func TestRealRegistry(t *testing.T) {
	host, ca := realRegistry(t)
	f, text := large(t, 3<<20)
	r := registries.Config{CAFile: ca, AuthFile: authFileFor(t, host+"/a")}
	pushed, err := copyOf(t.Context(), of(t, f), dests(t, "docker://"+host+"/a/b:v1"), CopyOptions{Options: registries.Options{Registry: r}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{host + "/a/b:v1", "docker://" + pushed[0].Reference} {
		c := quick(t, ClientOptions{Options: registries.Options{Registry: r}})
		img, err := c.Image(t.Context(), name, v1.Platform{})
		if err != nil {
			t.Fatal(err)
		}
		if img.Reference() != pushed[0].Reference {
			t.Errorf("%s: got %s", name, img.Reference())
		}
		img.Close()
		if got, err := read(t.Context(), c, name); err != nil || got != text {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	for name, o := range map[string]registries.Config{
		"no such authority": {AuthFile: r.AuthFile}, "no credentials": {CAFile: ca},
		"credentials for another path": {CAFile: ca, AuthFile: authFileFor(t, host+"/c")},
	} {
		if _, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: o}}), host+"/a/b:v1"); !errors.Is(err,
			fault.ErrRegistry) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// Signatures are looked for by the library: with the same authority and credentials.
	policy := filepath.Join(t.TempDir(), "policy.json")
	write(t, policy, fmt.Sprintf(`{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":%q}]}`, ca))
	if _, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: r}, PolicyFile: policy}),
		host+"/a/b:v1"); !errors.Is(err, trust.ErrPolicy) || !strings.Contains(err.Error(), "signature was required") {
		t.Errorf("a policy of signatures: %v", err)
	}
	// A base image is read with the client's credentials.
	ref := opened(t, quick(t, ClientOptions{Options: registries.Options{Registry: r}}), host+"/a/b:v1")
	if _, err := copyOf(t.Context(), of(t, ref), dests(t, "oci:"+filepath.Join(t.TempDir(), "out")),
		CopyOptions{}); err != nil {
		t.Error(err)
	}
}

// A real registry behind a proxy that cuts every second body and is busy now and then.
func TestRealRegistryBehindABadLine(t *testing.T) {
	host, ca := realRegistry(t)
	f, text := large(t, 3<<20)
	direct := registries.Config{CAFile: ca, AuthFile: authFileFor(t, host)}
	if _, err := copyOf(t.Context(), of(t, f), dests(t, "docker://"+host+"/a/b:v1"),
		CopyOptions{Options: registries.Options{Registry: direct}}); err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "https", Host: host})
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // it is the test's own
	}
	var n atomic.Int32
	line := func(w http.ResponseWriter, r *http.Request) {
		switch at := n.Add(1); {
		case at%4 == 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case strings.Contains(r.URL.Path, "/blobs/") && at%4 == 2:
			proxy.ServeHTTP(&cutWriter{ResponseWriter: w, left: 1 << 20}, r)
		default:
			proxy.ServeHTTP(w, r)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(line)}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	r := insecure()
	r.AuthFile = authFileFor(t, l.Addr().String())
	for range 4 {
		if got, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: r, Retries: 4}}),
			l.Addr().String()+"/a/b:v1"); err != nil || got != text {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}

// cutWriter breaks the connection after so many bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// A real registry mounts blobs: its own log says so, and nothing of them is read or sent.
func TestRealRegistryMounts(t *testing.T) {
	host, ca := realRegistry(t)
	r := registries.Config{CAFile: ca, AuthFile: authFileFor(t, host)}
	if _, err := pushTo(t, packages(t, "a", "b", "c"), CopyOptions{Options: registries.Options{Registry: r}}, host+"/base/image:v1"); err != nil {
		t.Fatal(err)
	}
	f := packages(t, "a", "b", "changed")
	seen := reads(f)
	results, err := pushTo(t, lent{f, []string{host + "/nothing/here", host + "/base/image"}}, CopyOptions{Options: registries.Options{Registry: r}},
		host+"/a/b:v1")
	if err != nil {
		t.Fatal(err)
	}
	if len(results[0].Mounted) != 2 || len(results[0].Written) != 2 || len(seen()) != 2 {
		t.Errorf("read %d: %+v", len(seen()), results[0])
	}
	log := registryLog(t)
	if n := strings.Count(log, `&mount=sha256`); n < 2 {
		t.Errorf("the registry's log has %d mounts:\n%s", n, log)
	}
	mounted := regexp.MustCompile(`"POST /v2/a/b/blobs/uploads/\?from=base%2Fimage&mount=sha256[^"]*" 201`)
	if n := len(mounted.FindAllString(log, -1)); n != 2 {
		t.Errorf("the registry's log has %d mounts that succeeded:\n%s", n, log)
	}
	if n := len(regexp.MustCompile(`"PUT /v2/a/b/blobs/uploads/[^"]*" 201`).FindAllString(log, -1)); n != 2 {
		t.Errorf("the registry's log has %d uploads:\n%s", n, log)
	}
}

// Uploads to a real registry by a line that breaks in the middle of bodies and is busy now and then.
func TestRealRegistryIsPushedToByABadLine(t *testing.T) {
	host, ca := realRegistry(t)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "https", Host: host})
			r.Out.Host = r.In.Host
		},
		ErrorLog:  log.New(io.Discard, "", 0),
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // it is the test's own
	}
	var n atomic.Int32
	line := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch at := n.Add(1); {
		case r.Method == http.MethodPatch && r.ContentLength > 1<<20 && at%3 != 0:
			r.Body = &cutBody{r.Body, 1 << 20}
			proxy.ServeHTTP(w, r)
			panic(http.ErrAbortHandler)
		case at%7 == 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			proxy.ServeHTTP(w, r)
		}
	})
	server := httptest.NewUnstartedServer(line)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()
	addr := server.Listener.Addr().String()
	f, text := large(t, 3<<20)
	bad := insecure()
	bad.AuthFile = authFileFor(t, addr)
	if _, err := pushTo(t, f, CopyOptions{Options: registries.Options{Registry: bad, Retries: 8}}, addr+"/a/b:v1"); err != nil {
		t.Fatal(err)
	}
	direct := registries.Config{CAFile: ca, AuthFile: authFileFor(t, host)}
	if got, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: direct}}), host+"/a/b:v1"); err != nil ||
		got != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
