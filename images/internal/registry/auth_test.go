package registry_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

const canary = "canary-secret"

// authFileFor is a file with the canary for a key.
func authFileFor(t testing.TB, key string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "auth.json")
	text := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, key, base64.StdEncoding.EncodeToString([]byte("user:"+canary)))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// elsewhere is another server, which remembers the credentials that it was shown.
type elsewhere struct {
	*httptest.Server
	mu    sync.Mutex
	seen  []string
	count atomic.Int32
}

func newElsewhere(t testing.TB, answer http.HandlerFunc, start func(http.Handler) *httptest.Server) *elsewhere {
	e := &elsewhere{}
	e.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.count.Add(1)
		e.mu.Lock()
		e.seen = append(e.seen, r.Header.Get("Authorization")+r.Header.Get("Cookie")+r.Header.Get("Referer"))
		e.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *elsewhere) shown() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.seen, "")
}

// basic demands the canary of every request, then lets it pass.
func basic(next func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if _, secret, ok := r.BasicAuth(); !ok || secret != canary {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry, of \"tests\""`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return next != nil && next(w, r)
	}
}

// bearer demands a token of the service at realm. A token is good for so many requests.
type bearer struct {
	realm string
	good  int

	mu     sync.Mutex
	issued int
	used   map[string]int
}

func (b *bearer) interfere(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path == "/token" {
		return false
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer token-")
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok && b.used[token] < b.good {
		b.used[token]++
		return false
	}
	w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="test",scope="repository:x:pull"`, b.realm))
	w.WriteHeader(http.StatusUnauthorized)
	return true
}

func (b *bearer) issue(w http.ResponseWriter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.issued++
	if b.used == nil {
		b.used = map[string]int{}
	}
	fmt.Fprintf(w, `{"token":"token-%d","expires_in":300}`, b.issued)
}

func TestBasicCredentials(t *testing.T) {
	reg := testregistry.New(t)
	reg.AddImage(t, "a/b", "v1", simple("x"))
	reg.Interfere(basic(nil))
	o := insecure()
	o.AuthFile = authFileFor(t, reg.Host()+"/a")
	if got, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: o}}), reg.Host()+"/a/b:v1"); err != nil ||
		got != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	o.AuthFile = authFileFor(t, reg.Host()+"/other")
	if _, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: o}}), reg.Host()+"/a/b:v1"); !errors.Is(err,
		fault.ErrRegistry) || !strings.Contains(err.Error(), "no credentials were found") {
		t.Errorf("got %v", err)
	}
}

// A token that runs out in the middle of a pull is replaced.
func TestTokensAreRenewed(t *testing.T) {
	for name, good := range map[string]int{"lasting": 1000, "for two requests": 2} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			reg.AddImage(t, "a/b", "v1", simple("x"))
			b := &bearer{realm: "http://" + reg.Host() + "/token", good: good}
			var asked atomic.Value
			reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" {
					_, secret, _ := r.BasicAuth()
					asked.Store(r.URL.RawQuery + " " + secret)
					b.issue(w)
					return true
				}
				return b.interfere(w, r)
			})
			o := insecure()
			o.AuthFile = authFileFor(t, reg.Host())
			if got, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: o}}), reg.Host()+"/a/b:v1"); err != nil ||
				got != "x" {
				t.Errorf("got %q, %v", got, err)
			}
			if want := "account=user&scope=repository%3Aa%2Fb%3Apull&service=test " + canary; asked.Load() != want {
				t.Errorf("asked for %q", asked.Load())
			}
			if n := b.issued; good > 2 && n != 1 || good == 2 && n < 2 {
				t.Errorf("%d tokens", n)
			}
		})
	}
}

func TestTokenServicesThatAreNotTrusted(t *testing.T) {
	for name, c := range map[string]struct {
		realm func(reg *testregistry.Registry, other *elsewhere) string
		text  string
	}{
		"private address": {func(*testregistry.Registry, *elsewhere) string { return "http://169.254.169.254/latest" },
			"realm"},
		"other port": {func(_ *testregistry.Registry, o *elsewhere) string { return o.URL + "/token" },
			"refusing to send credentials"},
		"no scheme": {func(*testregistry.Registry, *elsewhere) string { return "//x/token" }, "scheme"},
		"file":      {func(*testregistry.Registry, *elsewhere) string { return "file://x/etc/passwd" }, "scheme"},
		"none":      {func(*testregistry.Registry, *elsewhere) string { return "" }, "invalid realm"},
	} {
		t.Run(name, func(t *testing.T) {
			other := newElsewhere(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"token":"x"}`) },
				httptest.NewServer)
			reg := testregistry.New(t)
			reg.AddImage(t, "a/b", "v1", simple("x"))
			reg.Interfere((&bearer{realm: c.realm(reg, other)}).interfere)
			o := insecure()
			o.AuthFile = authFileFor(t, reg.Host())
			_, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: o}}), reg.Host()+"/a/b:v1")
			if !errors.Is(err, fault.ErrRegistry) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
			if other.count.Load() > 0 {
				t.Error("the other server was asked")
			}
		})
	}
	t.Run("answers", func(t *testing.T) {
		for name, answer := range map[string]string{
			"2 MiB": `{"token":"` + strings.Repeat("secret-body", 200_000) + `"}`, "not JSON": "secret-body",
			"no token": `{"x":"secret-body"}`, "line": `{"token":"secret-body\n"}`,
		} {
			reg := testregistry.New(t)
			reg.AddImage(t, "a/b", "v1", simple("x"))
			b := &bearer{realm: "http://" + reg.Host() + "/token"}
			reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" {
					fmt.Fprint(w, answer)
					return true
				}
				return b.interfere(w, r)
			})
			_, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: insecure()}}), reg.Host()+"/a/b:v1")
			if !errors.Is(err, fault.ErrRegistry) || strings.Contains(err.Error(), "secret-body") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}

// Content may come from elsewhere, credentials do not go there.
func TestRedirects(t *testing.T) {
	f := simple("x")
	var layer digest.Digest
	whole := testregistry.New(t)
	serve := func(w http.ResponseWriter, _ *http.Request) {
		whole.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v2/a/b/blobs/"+layer.String(), nil))
	}
	var m v1.Manifest
	whole.AddImage(t, "a/b", "v1", f)
	if err := json.Unmarshal(whole.Manifest("a/b", "v1"), &m); err != nil {
		t.Fatal(err)
	}
	layer = m.Layers[1].Digest
	to := func(where string) func(http.ResponseWriter, *http.Request) bool {
		return basic(on(layer.String(), 0, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, where, http.StatusTemporaryRedirect)
		}))
	}
	t.Run("other port", func(t *testing.T) {
		other := newElsewhere(t, serve, httptest.NewServer)
		reg := testregistry.New(t)
		reg.AddImage(t, "a/b", "v1", f)
		reg.Interfere(to(other.URL + "/blob?signature=s"))
		o := insecure()
		o.AuthFile = authFileFor(t, reg.Host())
		got, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: o}}), reg.Host()+"/a/b:v1")
		if err != nil || got != "x" || other.count.Load() != 1 || other.shown() != "" {
			t.Errorf("got %q, %v; shown %q", got, err, other.shown())
		}
	})
	t.Run("other host", func(t *testing.T) {
		other := newElsewhere(t, serve, httptest.NewServer)
		reg := testregistry.New(t)
		reg.AddImage(t, "a/b", "v1", f)
		reg.Interfere(to(strings.Replace(other.URL, "127.0.0.1", "localhost", 1)))
		o := insecure()
		o.AuthFile = authFileFor(t, reg.Host())
		got, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: o}}), reg.Host()+"/a/b:v1")
		if err != nil || got != "x" || other.shown() != "" {
			t.Errorf("got %q, %v; shown %q", got, err, other.shown())
		}
	})
	t.Run("https to http", func(t *testing.T) {
		other := newElsewhere(t, serve, httptest.NewServer)
		reg := testregistry.NewTLS(t)
		reg.AddImage(t, "a/b", "v1", f)
		reg.Interfere(to(other.URL))
		o := registries.Config{CAFile: reg.CAFile(t), AuthFile: authFileFor(t, reg.Host())}
		_, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: o, Retries: 2}}), reg.Host()+"/a/b:v1")
		if !errors.Is(err, fault.ErrRegistry) || !strings.Contains(err.Error(), "refusing http") ||
			other.count.Load() > 0 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("inside", func(t *testing.T) {
		reg := testregistry.New(t)
		reg.AddImage(t, "a/b", "v1", f)
		reg.Interfere(basic(on(layer.String(), 0, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		})))
		o := insecure()
		o.AuthFile = authFileFor(t, reg.Host())
		_, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: o, Retries: 2}}), reg.Host()+"/a/b:v1")
		if !errors.Is(err, fault.ErrRegistry) || !strings.Contains(err.Error(), "private address") {
			t.Errorf("got %v", err)
		}
	})
}

// Secrets that a registry sends back appear in no error and no event.
func TestSecretsStayOutOfMessages(t *testing.T) {
	reg := testregistry.New(t)
	reg.Interfere(basic(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/v2/") {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, `{"errors":[{"code":"UNKNOWN","message":"no: %s, https://user:%s@%s/?password=%s"}]}`,
			r.Header.Get("Authorization"), canary, r.Host, canary)
		return true
	}))
	o := insecure()
	o.AuthFile = authFileFor(t, reg.Host())
	var told []string
	c := quick(t, images.ClientOptions{Options: registries.Options{Registry: o, Retries: 1,
		Events: func(e store.Event) { told = append(told, fmt.Sprint(e)) }}})
	_, err := c.Image(t.Context(), reg.Host()+"/a/b:v1", v1.Platform{})
	if err == nil || len(told) == 0 {
		t.Fatalf("%v, %v", err, told)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + canary))
	for _, text := range append(told, err.Error(), fmt.Sprintf("%+v", err)) {
		if strings.Contains(text, canary) || strings.Contains(text, encoded) {
			t.Errorf("the secret is in %q", text)
		}
	}
}

// certificate makes a server's certificate that is its own authority.
func certificate(t testing.TB, edit func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	edit(c)
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestCertificates(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*x509.Certificate)
		version uint16
		text    string
	}{
		"good": {func(*x509.Certificate) {}, tls.VersionTLS13, ""},
		"expired": {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, tls.VersionTLS13,
			"current time " + time.Now().UTC().Format("2006-")},
		"not yet": {func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, tls.VersionTLS13,
			"current time"},
		"wrong host": {func(c *x509.Certificate) { c.IPAddresses = nil; c.DNSNames = []string{"example.test"} },
			tls.VersionTLS13, "127.0.0.1"},
		"TLS 1.1": {func(*x509.Certificate) {}, tls.VersionTLS11, "protocol version"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			reg.AddImage(t, "a/b", "v1", simple("x"))
			cert := certificate(t, c.edit)
			s := httptest.NewUnstartedServer(reg)
			s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10,
				MaxVersion: c.version} //nolint:gosec // that is the test
			s.StartTLS()
			defer s.Close()
			ca := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}),
				0o600); err != nil {
				t.Fatal(err)
			}
			host := strings.TrimPrefix(s.URL, "https://")
			_, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: registries.Config{CAFile: ca}, Retries: 2}}),
				host+"/a/b:v1")
			if c.text == "" && err != nil ||
				c.text != "" && (!errors.Is(err, fault.ErrRegistry) || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("got %v", err)
			}
			if _, err := read(t.Context(), quick(t, images.ClientOptions{}), host+"/a/b:v1"); err == nil {
				t.Error("an unknown authority was accepted")
			}
		})
	}
}

// Where certificates are: a directory for all, directories by host, a file that has none.
func TestCertificateDirectories(t *testing.T) {
	reg := testregistry.NewTLS(t)
	reg.AddImage(t, "a/b", "v1", simple("x"))
	ca := reg.CAFile(t)
	byHost := t.TempDir()
	if err := os.Mkdir(filepath.Join(byHost, reg.Host()), 0o700); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(ca)
	if err == nil {
		err = os.WriteFile(filepath.Join(byHost, reg.Host(), "x.crt"), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]registries.Config{"directory": {CertDir: filepath.Dir(ca)},
		"by host": {CertDirs: []string{t.TempDir(), byHost}}} {
		if got, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: r}}), reg.Host()+"/a/b:v1"); err != nil ||
			got != "x" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: registries.Config{CAFile: empty}}}),
		reg.Host()+"/a/b:v1"); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("got %v", err)
	}
}

// Skipping the verification of certificates does not permit plain HTTP, with credentials or without.
func TestSkippedVerificationReadsNoPlainHTTP(t *testing.T) {
	yes := true
	reg := testregistry.New(t)
	reg.AddImage(t, "a/b", "v1", simple("x"))
	_, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &yes}, Retries: 1}}),
		reg.Host()+"/a/b:v1")
	if !errors.Is(err, registries.ErrPlainHTTP) || len(reg.Requests()) > 0 {
		t.Errorf("got %v, requests %v", err, reg.Requests())
	}
	secure := testregistry.NewTLS(t)
	secure.AddImage(t, "a/b", "v1", simple("x"))
	if got, err := read(t.Context(), quick(t, images.ClientOptions{Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &yes}}}),
		secure.Host()+"/a/b:v1"); err != nil || got != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	no := false
	conf := reg.RegistriesConf(t, reg.Host())
	if _, err := read(t.Context(),
		quick(t, images.ClientOptions{Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &no, RegistriesConf: conf}}}),
		reg.Host()+"/a/b:v1"); err == nil {
		t.Error("--tls-verify does not count against registries.conf")
	}
}
