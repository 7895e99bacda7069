package keyless_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/signature/keyless"
	"github.com/operator-bindery/bindery/internal/testing/sigstoretest"
)

const (
	issuer = "https://issuer.example.com"
	name   = "https://example.com/acme/catalog/.ci/release.yml@refs/heads/main"
)

// statement is about no image in particular.
const statement = `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":` +
	`"00a8352e405c0289f552a59e94682534c793ffa121cd93de0d4c13b5de3f99a8"}}],` +
	`"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`

// services are those of an instance, with the log and the timestamp authority that are wanted.
func services(s *sigstoretest.Sigstore, log, timestamps bool) keyless.Services {
	out := keyless.Services{Authority: s.FulcioURL}
	if log {
		out.Logs, out.SignedTimeLog = []keyless.Log{{URL: s.RekorURL, Version: 1}}, s.RekorURL
	}
	if timestamps {
		out.Timestamps = []string{s.TSAURL}
	}
	return out
}

func signerOf(t testing.TB, s *sigstoretest.Sigstore, with keyless.Services) *keyless.Signer {
	t.Helper()
	signer, err := keyless.NewSigner(with, func(context.Context) (string, error) { return s.Token(name, issuer), nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func rootOf(t testing.TB, text []byte) *keyless.Root {
	t.Helper()
	r, err := keyless.ParseRoot(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func verifierOf(t testing.TB, root []byte, identities ...keyless.Identity) *keyless.Verifier {
	t.Helper()
	if identities == nil {
		identities = []keyless.Identity{{Name: name, Issuer: issuer}}
	}
	v, err := keyless.NewVerifier(rootOf(t, root), identities...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// without removes members of a trusted root.
func without(t testing.TB, root []byte, members ...string) []byte {
	t.Helper()
	return edited(t, root, func(m map[string]any) {
		for _, name := range members {
			delete(m, name)
		}
	})
}

// edited edits a JSON object.
func edited(t testing.TB, text []byte, edit func(map[string]any)) []byte {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	edit(m)
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What is signed is verified: as a bundle and as a layer, with a log, a timestamp, or both.
func TestSignAndVerify(t *testing.T) {
	for _, c := range []struct {
		what            string
		log, timestamps bool
		removed         []string // from the trusted root
	}{
		{"log", true, false, nil},
		{"both", true, true, nil},
		{"timestamp", false, true, []string{"tlogs"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := sigstoretest.New(t)
			signer := signerOf(t, s, services(s, c.log, c.timestamps))
			root := without(t, s.TrustedRoot(), c.removed...)
			text, err := signer.Bundle(t.Context(), []byte(statement))
			if err != nil {
				t.Fatal(err)
			}
			again, err := signer.Bundle(t.Context(), []byte(statement))
			if err != nil || !bytes.Equal(text, again) {
				t.Errorf("the same statement is signed again: %v", err)
			}
			by, class, err := verifierOf(t, root).Bundle(text)
			if err != nil {
				t.Fatalf("%s: %v", class, err)
			}
			if by.Name != name || by.Issuer != issuer || string(by.Payload) != statement ||
				by.Key.Fingerprint() != signer.Public().Fingerprint() || time.Since(by.Time).Abs() > time.Hour {
				t.Errorf("verified as %+v", by)
			}
			if signer.Identity() != by.CertificateIdentity {
				t.Errorf("signed as %+v", signer.Identity())
			}
			payload := []byte(`{"critical":{}}`)
			annotations, err := signer.Annotations(t.Context(), payload)
			if !c.log {
				if !errors.Is(err, keyless.ErrNoSignedTime) {
					t.Errorf("%v, expected that a log is needed", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if by, class, err = verifierOf(t, root).Layer(payload, false, annotations); err != nil || by.Name != name {
				t.Errorf("%s: %v, %+v", class, err, by)
			}
			if _, _, err = verifierOf(t, root).Layer([]byte(`{"critical":{"x":1}}`), false, annotations); err == nil {
				t.Error("another payload is verified")
			}
		})
	}
}

// A layer of an .att tag, as cosign writes it, is verified like the bundle with the same envelope.
func TestAttestationLayer(t *testing.T) {
	s := sigstoretest.New(t)
	signer := signerOf(t, s, services(s, true, true))
	text, err := signer.Bundle(t.Context(), []byte(statement))
	if err != nil {
		t.Fatal(err)
	}
	annotations, err := signer.Annotations(t.Context(), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	const logAnnotation = "dev.sigstore.cosign/bundle"
	var b struct {
		DsseEnvelope         map[string]any
		VerificationMaterial struct {
			TlogEntries []struct {
				CanonicalizedBody, LogIndex, IntegratedTime string
				InclusionPromise                            struct{ SignedEntryTimestamp string }
			}
			TimestampVerificationData struct {
				Rfc3161Timestamps []struct{ SignedTimestamp string }
			}
		}
	}
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	entry := b.VerificationMaterial.TlogEntries[0]
	annotations[logAnnotation] = string(edited(t, []byte(annotations[logAnnotation]), func(m map[string]any) {
		m["SignedEntryTimestamp"] = entry.InclusionPromise.SignedEntryTimestamp
		payload := m["Payload"].(map[string]any)
		payload["body"] = entry.CanonicalizedBody
		payload["logIndex"], payload["integratedTime"] = json.Number(entry.LogIndex), json.Number(entry.IntegratedTime)
	}))
	annotations["dev.sigstore.cosign/rfc3161timestamp"] = fmt.Sprintf(`{"SignedRFC3161Timestamp":"%s"}`,
		b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps[0].SignedTimestamp)
	annotations[signature.SignatureAnnotation] = ""
	for what, c := range map[string]struct {
		edit func(map[string]any)
		says string
	}{
		"with the name of a key": {func(e map[string]any) { e["signatures"].([]any)[0].(map[string]any)["keyid"] = "key" }, ""},
		"with another member":    {func(e map[string]any) { e["more"] = 1 }, ""},
		"two signatures":         {func(e map[string]any) { e["signatures"] = append(e["signatures"].([]any), map[string]any{}) }, "exactly one"},
		"no object":              {func(e map[string]any) { e["signatures"] = 1 }, "envelope"},
		"another payload":        {func(e map[string]any) { e["payload"] = "e30=" }, "not about it"},
	} {
		envelope, err := json.Marshal(b.DsseEnvelope)
		if err != nil {
			t.Fatal(err)
		}
		by, class, err := verifierOf(t, s.TrustedRoot()).Layer(edited(t, envelope, c.edit), true, annotations)
		if c.says == "" && (err != nil || by.Name != name || string(by.Payload) != statement) ||
			c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %s: %v", what, class, err)
		}
	}
}

// One certificate is for all signatures of a run, and no token is sent to another service than the authority.
func TestTokenGoesToTheAuthorityAlone(t *testing.T) {
	s := sigstoretest.New(t)
	signer := signerOf(t, s, services(s, true, true))
	for n := range 3 {
		if _, err := signer.Bundle(t.Context(), fmt.Appendf(nil, `{"n":%d}`, n)); err != nil {
			t.Fatal(err)
		}
	}
	certificates := 0
	for _, r := range s.Requests() {
		all := fmt.Sprintf("%v %s", r.Header, r.Body)
		if has := strings.Contains(all, "eyJ") && r.Header.Get("Authorization") != ""; has != (r.Server == sigstoretest.Fulcio) {
			t.Errorf("%s %s: %v", r.Server, r.Path, r.Header)
		}
		if r.Server == sigstoretest.Fulcio {
			certificates++
		}
	}
	if certificates != 1 {
		t.Errorf("%d certificates for one run", certificates)
	}
}

// Each kind of bad signature is refused, with a class and a sentence that say why.
func TestRefused(t *testing.T) {
	s, other := sigstoretest.New(t), sigstoretest.New(t)
	bundleOf := func(s *sigstoretest.Sigstore, text string, log, timestamps bool) []byte {
		text2, err := signerOf(t, s, services(s, log, timestamps)).Bundle(t.Context(), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return text2
	}
	good := bundleOf(s, statement, true, true)
	second := bundleOf(s, statement+" ", true, true)
	material := func(m map[string]any) map[string]any { return m["verificationMaterial"].(map[string]any) }
	take := func(member string) []byte {
		var from map[string]any
		if err := json.Unmarshal(second, &from); err != nil {
			t.Fatal(err)
		}
		return edited(t, good, func(m map[string]any) { material(m)[member] = material(from)[member] })
	}
	expired := sigstoretest.New(t)
	expired.CertificateTime = func() time.Time { return time.Now().Add(-time.Hour) }
	for _, c := range []struct {
		what   string
		bundle []byte
		root   []byte
		who    keyless.Identity
		class  signature.Class
		says   string
	}{
		{"another name", good, s.TrustedRoot(), keyless.Identity{Name: "someone", Issuer: issuer}, signature.OtherSigner,
			`made by "` + name},
		{"another issuer", good, s.TrustedRoot(), keyless.Identity{Name: name, Issuer: "https://evil.example.com"},
			signature.OtherSigner, issuer},
		{"an expression that does not match", good, s.TrustedRoot(),
			keyless.Identity{NameRegexp: "^https://example.com/evil/", Issuer: issuer}, signature.OtherSigner, name},
		{"a root of another instance", good, other.TrustedRoot(), keyless.Identity{}, signature.Unlogged,
			"not in the trusted root"},
		{"an authority that is not in the root", good, edited(t, s.TrustedRoot(), func(m map[string]any) {
			var from map[string]any
			if err := json.Unmarshal(other.TrustedRoot(), &from); err != nil {
				t.Fatal(err)
			}
			m["certificateAuthorities"] = from["certificateAuthorities"]
		}), keyless.Identity{}, signature.Certificate, "not one of the trusted root"},
		{"no log entry", edited(t, good, func(m map[string]any) { delete(material(m), "tlogEntries") }), s.TrustedRoot(),
			keyless.Identity{}, signature.Unlogged, "no entry of a transparency log"},
		{"the log entry of another signature", take("tlogEntries"), s.TrustedRoot(), keyless.Identity{},
			signature.Unlogged, "not about it"},
		{"the timestamp of another signature, without a log", edited(t, take("timestampVerificationData"),
			func(m map[string]any) { delete(material(m), "tlogEntries") }), without(t, s.TrustedRoot(), "tlogs"),
			keyless.Identity{}, signature.Untimed, "nothing that is trusted proves when"},
		{"neither log entry nor timestamp", edited(t, good, func(m map[string]any) {
			delete(material(m), "tlogEntries")
			delete(material(m), "timestampVerificationData")
		}), without(t, s.TrustedRoot(), "tlogs"), keyless.Identity{}, signature.Untimed, "valid until"},
		{"a certificate that had expired", bundleOf(expired, statement, true, true), expired.TrustedRoot(),
			keyless.Identity{}, signature.Certificate, "its certificate was valid from"},
		{"a certificate that had expired, with a timestamp", bundleOf(expired, statement, false, true),
			without(t, expired.TrustedRoot(), "tlogs"), keyless.Identity{}, signature.Certificate, "its certificate was valid from"},
		{"another statement", edited(t, good, func(m map[string]any) {
			m["dsseEnvelope"].(map[string]any)["payload"] = base64.StdEncoding.EncodeToString([]byte(statement + "\n"))
		}), s.TrustedRoot(), keyless.Identity{}, signature.Unlogged, "not about it"},
		{"another signature", edited(t, good, func(m map[string]any) {
			e := m["dsseEnvelope"].(map[string]any)
			e["signatures"] = []any{map[string]any{"sig": "AAAA"}}
			delete(material(m), "tlogEntries")
		}), without(t, s.TrustedRoot(), "tlogs"), keyless.Identity{}, signature.Untimed, ""},
		{"a certificate log that the root names, and no SCT", good, edited(t, s.TrustedRoot(), func(m map[string]any) {
			m["ctlogs"] = m["tlogs"]
		}), keyless.Identity{}, signature.Certificate, "SCT"},
		{"two ways to read it", bytes.Replace(good, []byte(`{"mediaType"`),
			[]byte(`{"media_type":"application/vnd.dev.sigstore.bundle.v0.3+json","mediaType"`), 1), s.TrustedRoot(),
			keyless.Identity{}, signature.Malformed, "duplicate"},
		{"no certificate", edited(t, good, func(m map[string]any) {
			delete(material(m), "certificate")
			material(m)["publicKey"] = map[string]any{"hint": "x"}
		}), s.TrustedRoot(), keyless.Identity{}, signature.OtherSigner, "made by a key"},
		{"no bundle", []byte(`{}`), s.TrustedRoot(), keyless.Identity{}, signature.Malformed, "media type"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if c.who == (keyless.Identity{}) {
				c.who = keyless.Identity{Name: name, Issuer: issuer}
			}
			_, class, err := verifierOf(t, c.root, c.who).Bundle(c.bundle)
			if err == nil || class != c.class || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v\nexpected %s and %q", class, err, c.class, c.says)
			}
		})
	}
}

// An identity has a name and an issuer.
func TestIdentities(t *testing.T) {
	root := rootOf(t, sigstoretest.New(t).TrustedRoot())
	for _, i := range [][]keyless.Identity{nil, {{}}, {{Name: name}}, {{Issuer: issuer}}, {{NameRegexp: "("}, {Issuer: issuer}},
		{{Name: name, Issuer: issuer}, {Name: name}}} {
		if _, err := keyless.NewVerifier(root, i...); err == nil {
			t.Errorf("%+v is taken", i)
		}
	}
}
