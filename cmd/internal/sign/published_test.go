package sign_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/sigstoretest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// content is all that a repository has.
func content(r *testregistry.Registry) []string { return append(r.Tags("app"), r.Digests("app")...) }

// twoPlatforms adds an index with two images as app:v1, and under the tag of its digest.
func twoPlatforms(t *testing.T, r *testregistry.Registry) string {
	t.Helper()
	d := r.AddIndex(t, "app", "v1", nil, []testregistry.Image{{Layers: []map[string]string{{"x": "amd64"}}},
		{Platform: v1.Platform{OS: "linux", Architecture: "arm64"}, Layers: []map[string]string{{"x": "arm64"}}}})
	return strings.Replace(d.String(), ":", "-", 1)
}

// Where nothing can be listed as a referrer, an image is signed by its .sig tags, or nothing is written at all.
func TestRegistriesWithoutReferrers(t *testing.T) {
	for name, prepare := range map[string]func(r *testregistry.Registry){
		"the tag of the digest is the image": func(r *testregistry.Registry) {
			tag := twoPlatforms(t, r)
			r.AddManifest("app", tag, v1.MediaTypeImageIndex, r.Manifest("app", "v1"))
		},
		"every name of a digest is the image": func(r *testregistry.Registry) {
			twoPlatforms(t, r)
			r.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
				if at, hex, ok := strings.Cut(q.URL.Path, "/manifests/sha256-"); ok && len(hex) == 64 && q.Method != http.MethodPut {
					q.URL.Path = at + "/manifests/sha256:" + hex
				}
				return false
			})
		},
		"manifests of OCI 1.1 are refused": func(r *testregistry.Registry) {
			twoPlatforms(t, r)
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if q.Method != http.MethodPut || !strings.Contains(q.URL.Path, "/manifests/") {
					return false
				}
				text, err := io.ReadAll(q.Body)
				if err != nil {
					t.Error(err)
				}
				q.Body = io.NopCloser(bytes.NewReader(text))
				if !bytes.Contains(text, []byte(`"subject"`)) && !bytes.Contains(text, []byte(`"artifactType"`)) {
					return false
				}
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_INVALID","message":"manifest invalid"}]}`)
				return true
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, dir := testregistry.New(t), t.TempDir()
			prepare(r)
			image := r.Host() + "/app:v1"
			clitest.WriteFile(t, filepath.Join(dir, "statement.json"), "{}")
			clitest.WriteFile(t, filepath.Join(dir, "notes.md"), "notes")
			key, public := keyPair(t)
			clitest.WriteFile(t, filepath.Join(dir, "k.key"), key)
			clitest.WriteFile(t, filepath.Join(dir, "k.pub"), public)
			run := func(line string, more ...string) clitest.Result {
				args := append(strings.Fields(strings.Replace(line, "IMAGE", image, 1)), more...)
				return clitest.Finish(t, clitest.Command(dir, "bindery", append(args, "--use-http")...))
			}
			by := []string{"--sign-key", "k.key", "--allow-plain-key"}
			before := content(r)
			for _, line := range []string{"sign IMAGE --sign-format both", "sign IMAGE --sign-format bundle",
				"attest IMAGE --type custom --predicate statement.json", "attach IMAGE notes.md --type text/markdown"} {
				for range 2 {
					got := run(line, by...)
					if got.Status != 1 || !strings.Contains(got.Stderr, "hint") || strings.HasPrefix(line, "sign") &&
						!strings.Contains(got.Stderr, "--sign-format sig") {
						t.Errorf("%s: %+v", line, got)
					}
					if now := content(r); !slices.Equal(now, before) {
						t.Errorf("%s: the repository has %v", line, now)
					}
				}
			}
			var signed []string
			for n := range 2 {
				got := run("sign IMAGE", by...)
				if got.Status != 0 || !strings.Contains(got.Stderr, "--sign-format sig") || strings.Count(got.Stdout, "sig of") != 3 {
					t.Errorf("%+v", got)
				}
				if now := content(r); n == 1 && !slices.Equal(now, signed) {
					t.Errorf("the second time adds to %v: %v", signed, now)
				} else {
					signed = now
				}
			}
			if got := run("attest IMAGE --type custom --predicate statement.json --legacy-attestations", by...); got.Status != 0 {
				t.Errorf("%+v", got)
			}
			for _, line := range []string{"verify IMAGE --key k.pub", "verify IMAGE --key k.pub --type custom"} {
				if got := run(line); got.Status != 0 {
					t.Errorf("%s: %+v", line, got)
				}
			}
		})
	}
}

// What no verifier would accept is not published: a signature by a certificate that was not valid when it was made.
func TestSignaturesAreVerifiedBeforeTheyArePublished(t *testing.T) {
	in := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }
	for name, c := range map[string]struct {
		certificate, services time.Duration
		good                  bool
	}{
		"all clocks are right":             {0, 0, true},
		"an expired certificate":           {-time.Hour, 0, false},
		"a certificate that begins later":  {time.Hour, 0, false},
		"a log and timestamps an hour off": {0, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, r, dir := sigstoretest.New(t), testregistry.New(t), t.TempDir()
			s.CertificateTime, s.Now = in(c.certificate), in(c.services)
			r.SetReferrers(testregistry.Referrers{API: true, Header: true})
			twoPlatforms(t, r)
			for file, text := range map[string]string{"token": s.Token(clitest.SigstoreMail, clitest.SigstoreIssuer), "p.json": "{}",
				"notes.md": "x", "FROM/Containerfile": "FROM " + r.Host() + "/app:v1\nLABEL a=b\n"} {
				clitest.WriteFile(t, filepath.Join(dir, file), text)
			}
			for _, line := range []string{"sign IMAGE", "sign IMAGE --sign-format both", "attest IMAGE --type custom --predicate p.json",
				"attach IMAGE notes.md --type text/markdown", "build containerfile FROM -t app:v2 --output docker://" + r.Host() + "/app:v2"} {
				for _, services := range []string{"--rekor-url " + s.RekorURL, "--tsa-url " + s.TSAURL} {
					if strings.Contains(line, "both") && strings.HasPrefix(services, "--tsa") {
						continue
					}
					before := content(r)
					line := strings.Replace(line, "IMAGE", r.Host()+"/app:v1", 1) + " --use-http --sign-keyless --fulcio-url " +
						s.FulcioURL + " " + services + " --identity-token token"
					got := clitest.Finish(t, clitest.Command(dir, "bindery", strings.Fields(line)...))
					if (got.Status == 0) != c.good || !c.good && !strings.Contains(got.Stderr, "certificate was valid") {
						t.Errorf("%s: %+v", line, got)
					}
					build := strings.HasPrefix(line, "build") // it has written the image, without the tag
					if now := content(r); !c.good && (!build && !slices.Equal(now, before) || slices.Contains(now, "v2")) {
						t.Errorf("%s: the repository has %v after %v", line, now, before)
					}
				}
			}
		})
	}
}

// keyPair returns a key and its public key in PEM.
func keyPair(t *testing.T) (private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	open, oerr := x509.MarshalPKIXPublicKey(key.Public())
	if err := errors.Join(err, oerr); err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open}))
}
