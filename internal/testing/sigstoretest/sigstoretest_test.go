package sigstoretest_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	bundlepb "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/operator-bindery/bindery/internal/testing/sigstoretest"
)

const (
	mail     = "jane@example.com"
	workflow = "https://github.com/acme/catalog/.github/workflows/build.yaml@refs/heads/main"
	issuer   = "https://issuer.example.com"
)

var statement = []byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"catalog","digest":{"sha256":` +
	`"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"}}],"predicateType":"https://example.com/p",` +
	`"predicate":{}}`)

// options are what a bundle is made with.
type options struct {
	log, stamp bool
}

// bundleOf signs as a client does.
func bundleOf(t *testing.T, s *sigstoretest.Sigstore, content sign.Content, token string, o options) (*bundlepb.Bundle,
	error) {
	t.Helper()
	key, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		t.Fatal(err)
	}
	opts := sign.BundleOptions{Context: t.Context(),
		CertificateProvider:        sign.NewFulcio(&sign.FulcioOptions{BaseURL: s.FulcioURL}),
		CertificateProviderOptions: &sign.CertificateProviderOptions{IDToken: token}}
	if o.log {
		opts.TransparencyLogs = []sign.Transparency{sign.NewRekor(&sign.RekorOptions{BaseURL: s.RekorURL})}
	}
	if o.stamp {
		opts.TimestampAuthorities = []*sign.TimestampAuthority{
			sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{URL: s.TSAURL})}
	}
	return sign.Bundle(content, key, opts)
}

// verified verifies a bundle by the trusted root as it is read from a file.
func verified(t *testing.T, s *sigstoretest.Sigstore, b *bundlepb.Bundle, o options, artifact verify.ArtifactPolicyOption,
	identity, from string) error {
	t.Helper()
	text, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var read bundle.Bundle
	if err := read.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	trusted, err := root.NewTrustedRootFromJSON(s.TrustedRoot())
	if err != nil {
		t.Fatal(err)
	}
	required := []verify.VerifierOption{verify.WithObserverTimestamps(1)}
	if o.log {
		required = append(required, verify.WithTransparencyLog(1))
	}
	v, err := verify.NewVerifier(trusted, required...)
	if err != nil {
		t.Fatal(err)
	}
	id, err := verify.NewShortCertificateIdentity(from, "", identity, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Verify(&read, verify.NewPolicy(artifact, verify.WithCertificateIdentity(id)))
	return err
}

// What is signed by sigstore-go's clients is accepted by its verifier, for the identity of the token alone.
func TestSigned(t *testing.T) {
	payload := []byte("a payload")
	digest := sha256.Sum256([]byte("hello\n"))
	dsse := &sign.DSSEData{Data: statement, PayloadType: "application/vnd.in-toto+json"}
	subject := verify.WithArtifactDigest("sha256", digest[:])
	s := sigstoretest.New(t)
	for _, c := range []struct {
		name     string
		content  sign.Content
		artifact func() verify.ArtifactPolicyOption
		identity string
		options  options
	}{
		{"statement in the log", dsse, func() verify.ArtifactPolicyOption { return subject }, mail, options{log: true}},
		{"message in the log", &sign.PlainData{Data: payload}, func() verify.ArtifactPolicyOption {
			return verify.WithArtifact(bytes.NewReader(payload))
		}, mail, options{log: true}},
		{"statement with a timestamp", dsse, func() verify.ArtifactPolicyOption { return subject }, mail,
			options{stamp: true}},
		{"both, by a URI", dsse, func() verify.ArtifactPolicyOption { return subject }, workflow,
			options{log: true, stamp: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := bundleOf(t, s, c.content, s.Token(c.identity, issuer), c.options)
			if err != nil {
				t.Fatal(err)
			}
			if err := verified(t, s, b, c.options, c.artifact(), c.identity, issuer); err != nil {
				t.Error(err)
			}
			if err := verified(t, s, b, c.options, c.artifact(), "other@example.com", issuer); err == nil {
				t.Error("another identity is accepted")
			}
			if err := verified(t, s, b, c.options, c.artifact(), c.identity, "https://other.example.com"); err == nil {
				t.Error("another issuer is accepted")
			}
			if err := verified(t, sigstoretest.New(t), b, c.options, c.artifact(), c.identity, issuer); err == nil {
				t.Error("the root of another instance accepts it")
			}
		})
	}
	if s.Entries() != 3 {
		t.Errorf("%d entries", s.Entries())
	}
	for _, r := range s.Requests() {
		if (r.Header.Get("Authorization") != "") != (r.Server == sigstoretest.Fulcio) {
			t.Errorf("%s %s %s: the token is at the wrong server", r.Server, r.Method, r.Path)
		}
	}
}

// A signature outlives its certificate, and one that was made when the certificate had expired is refused.
func TestTimes(t *testing.T) {
	content := &sign.DSSEData{Data: statement, PayloadType: "application/vnd.in-toto+json"}
	for _, c := range []struct {
		name             string
		now, certificate time.Duration // before the present
		options          options
		accepted         bool
	}{
		{"a day old", 24 * time.Hour, 24 * time.Hour, options{log: true, stamp: true}, true},
		{"expired before the log had it", 0, time.Hour, options{log: true}, false},
		{"expired before the timestamp", 0, time.Hour, options{stamp: true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sigstoretest.New(t)
			s.Now = func() time.Time { return time.Now().Add(-c.now) }
			s.CertificateTime = func() time.Time { return time.Now().Add(-c.certificate) }
			b, err := bundleOf(t, s, content, s.Token(mail, issuer), c.options)
			if err != nil {
				t.Fatal(err)
			}
			err = verified(t, s, b, c.options, verify.WithoutArtifactUnsafe(), mail, issuer)
			if (err == nil) != c.accepted {
				t.Error(err)
			}
		})
	}
}

// The servers refuse what real ones refuse, and fail when a test wants it.
func TestRefused(t *testing.T) {
	s := sigstoretest.New(t)
	content := &sign.PlainData{Data: []byte("a payload")}
	for _, c := range []struct{ name, token, want string }{
		{"expired token", s.TokenUntil(mail, issuer, time.Now().Add(-time.Minute)), "has expired"},
		{"no issuer", s.Token(mail, ""), "no issuer"},
		{"a subject that is no URI", s.Token("jane", issuer), "neither a mail address nor a URI"},
		{"no JWT", strings.Join(strings.Split(s.Token(mail, issuer), ".")[:2], "."), "no JWT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := bundleOf(t, s, content, c.token, options{log: true})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "400") {
				t.Error(err)
			}
		})
	}
	token := s.Token(mail, issuer)
	for server, o := range map[string]options{sigstoretest.Fulcio: {}, sigstoretest.Rekor: {log: true},
		sigstoretest.TSA: {stamp: true}} {
		s.Fail(server, http.StatusForbidden)
		if _, err := bundleOf(t, s, content, token, o); err == nil || !strings.Contains(err.Error(), "as the test asks") {
			t.Errorf("%s: %v", server, err)
		}
		s.Fail(server, 0)
		if _, err := bundleOf(t, s, content, token, o); err != nil {
			t.Errorf("%s: %v", server, err)
		}
	}
	for _, body := range []string{"", "{}", `{"kind":"dsse","apiVersion":"0.0.1","spec":{}}`, `{"kind":"other"}`} {
		r, err := http.Post(s.RekorURL+"/api/v1/log/entries", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusBadRequest {
			t.Errorf("an entry %q: %s", body, r.Status)
		}
	}
}

// The log has an entry once: the client is sent to the one that there is.
func TestSameEntry(t *testing.T) {
	s := sigstoretest.New(t)
	b, err := bundleOf(t, s, &sign.PlainData{Data: []byte("a payload")}, s.Token(mail, issuer), options{log: true})
	if err != nil {
		t.Fatal(err)
	}
	again := &bundlepb.Bundle{Content: b.Content, VerificationMaterial: &bundlepb.VerificationMaterial{
		Content: b.VerificationMaterial.Content}}
	log := sign.NewRekor(&sign.RekorOptions{BaseURL: s.RekorURL})
	certificate, err := x509.ParseCertificate(b.VerificationMaterial.GetCertificate().RawBytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.GetTransparencyLogEntry(t.Context(), sigstoretest.PEM(certificate), again); err != nil {
		t.Fatal(err)
	}
	if s.Entries() != 1 || again.VerificationMaterial.TlogEntries[0].String() !=
		b.VerificationMaterial.TlogEntries[0].String() {
		t.Errorf("%d entries, %v", s.Entries(), again.VerificationMaterial.TlogEntries)
	}
}

// The certificates are those of the trusted root, and the signing configuration names the servers.
func TestFiles(t *testing.T) {
	s := sigstoretest.New(t)
	b, err := bundleOf(t, s, &sign.PlainData{Data: []byte("a payload")}, s.Token(mail, issuer), options{})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(b.VerificationMaterial.GetCertificate().RawBytes)
	if err != nil {
		t.Fatal(err)
	}
	for text, trusted := range map[string]bool{string(s.FulcioCAPEM()): true, string(s.FulcioRootPEM()): false} {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(text)) {
			t.Fatal("no certificates")
		}
		_, err := certificate.Verify(x509.VerifyOptions{Roots: roots,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}})
		if (err == nil) != trusted {
			t.Error(err)
		}
	}
	if !slices.Equal(certificate.EmailAddresses, []string{mail}) {
		t.Error(certificate.EmailAddresses)
	}
	config, err := root.NewSigningConfigFromJSON(s.SigningConfig())
	if err != nil {
		t.Fatal(err)
	}
	for want, services := range map[string][]root.Service{s.FulcioURL: config.FulcioCertificateAuthorityURLs(),
		s.RekorURL: config.RekorLogURLs(), s.TSAURL: config.TimestampAuthorityURLs()} {
		one, err := root.SelectService(services, []uint32{1}, time.Now())
		if err != nil || one.URL != want {
			t.Errorf("%s: %v %v", want, one, err)
		}
	}
	var written struct{ Tlogs, Ctlogs []any }
	if err := json.Unmarshal(s.TrustedRoot(), &written); err != nil || len(written.Tlogs) != 1 || len(written.Ctlogs) != 0 {
		t.Error(written, err)
	}
	if !strings.Contains(string(s.RekorKeyPEM()), "BEGIN PUBLIC KEY") {
		t.Error("no key of the log")
	}
}
