package images

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/images/registries"
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

// A refusal says what the registry says, and which credentials the request had: those of which file, or none, and why
// not.
func TestRefusalsSayWhichCredentialsWereUsed(t *testing.T) {
	denied := func(w http.ResponseWriter, status int) {
		w.WriteHeader(status)
		io.WriteString(w, `{"errors":[{"code":"DENIED","message":"quota exceeded"}]}`)
	}
	challenged := func(kind string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path == "/token" && kind == "token":
				denied(w, http.StatusForbidden)
			case r.URL.Path == "/token":
				io.WriteString(w, `{"token":"t"}`)
			case r.Header.Get("Authorization") == "":
				w.Header().Set("WWW-Authenticate",
					map[bool]string{true: `Basic realm="x"`,
						false: fmt.Sprintf(`Bearer realm="http://%s/token"`, r.Host)}[kind == "basic"])
				w.WriteHeader(http.StatusUnauthorized)
			default:
				denied(w, http.StatusForbidden)
			}
			return true
		}
	}
	file := func(host string) string { return authFileFor(t, host) }
	none := func(string) string { return authFileFor(t, "other.example.com") }
	for name, c := range map[string]struct {
		registry func(http.ResponseWriter, *http.Request) bool
		authfile func(host string) string
		want     string // FILE is the file with credentials
		hint     bool
	}{
		"basic": {challenged("basic"), file,
			`403 Forbidden: "DENIED" "quota exceeded" (with the credentials of FILE)`, false},
		"bearer": {challenged("bearer"), file,
			`403 Forbidden: "DENIED" "quota exceeded" (with the credentials of FILE)`, false},
		"token service": {challenged("token"), file,
			`403 Forbidden: "DENIED" "quota exceeded" (with the credentials of FILE)`, false},
		"none are there": {challenged("bearer"), none,
			`403 Forbidden: "DENIED" "quota exceeded" (no credentials were found for it)`, true},
		"none were asked": {func(w http.ResponseWriter, _ *http.Request) bool { denied(w, 403); return true }, file,
			`"quota exceeded" (sent without credentials: the registry named no way to show them)`, true},
		"something else": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodHead { // whose answer has no body
				denied(w, http.StatusBadRequest)
			}
			return r.Method != http.MethodHead
		}, file, `400 Bad Request: "DENIED" "quota exceeded"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			reg.Interfere(c.registry)
			o := insecure()
			o.AuthFile = c.authfile(reg.Host())
			_, pushed := pushTo(t, simple(t, "x"), CopyOptions{Options: registries.Options{Registry: o}}, reg.Host()+"/a/b:v1")
			_, pulled := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: o}}), reg.Host()+"/a/b:v1")
			for _, err := range []error{pushed, pulled} {
				if err == nil || !errors.Is(err, fault.ErrRegistry) || !strings.Contains(err.Error(),
					strings.ReplaceAll(c.want, "FILE", o.AuthFile)) {
					t.Errorf("got %v, want %q", err, c.want)
					continue
				}
				var status *registries.StatusError
				if !errors.As(err, &status) || !slices.Equal(status.Codes, []string{"DENIED"}) ||
					(status.Credentials == "") != c.hint {
					t.Errorf("got %+v", status)
				}
				if strings.Contains(err.Error(), "auth token") ||
					registries.IsUnauthorized(err) != (status.Status == http.StatusForbidden) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
