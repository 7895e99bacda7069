package keyless_test

import (
	"encoding/json"
	"testing"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/signature/keyless"
	"github.com/operator-bindery/bindery/internal/testing/sigstoretest"
)

// FuzzRoot parses trusted roots. What is accepted verifies nothing but with an authority and a proof of the time.
func FuzzRoot(f *testing.F) {
	s := sigstoretest.New(f)
	bundle := bundleOf(f, s)
	for _, removed := range []string{"", "tlogs", "ctlogs", "timestampAuthorities", "certificateAuthorities", "mediaType"} {
		f.Add(without(f, s.TrustedRoot(), removed))
	}
	f.Add(edited(f, s.TrustedRoot(), func(m map[string]any) { m["ctlogs"] = m["tlogs"] }))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := keyless.ParseRoot(text)
		if err != nil {
			return
		}
		v, err := keyless.NewVerifier(r, keyless.Identity{Name: name, Issuer: issuer})
		if err != nil {
			t.Fatal(err)
		}
		if by, _, err := v.Bundle(bundle); err == nil && by.Time.IsZero() {
			t.Error("verified without a time")
		}
	})
}

// FuzzServices parses signing configurations. What is accepted passes its own check.
func FuzzServices(f *testing.F) {
	text := sigstoretest.New(f).SigningConfig()
	for _, removed := range []string{"", "caUrls", "oidcUrls", "rekorTlogUrls", "rekorTlogConfig", "tsaUrls", "tsaConfig"} {
		f.Add(without(f, text, removed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := keyless.ParseServices(text)
		if err == nil && (s.Authority == "" || s.Check() != nil) {
			t.Errorf("%+v", s)
		}
	})
}

// FuzzBundle verifies bundles. Nothing but what was signed is verified, whatever stands beside it.
func FuzzBundle(f *testing.F) {
	s := sigstoretest.New(f)
	good := bundleOf(f, s)
	f.Add(good)
	for _, removed := range []string{"tlogEntries", "timestampVerificationData", "certificate"} {
		f.Add(edited(f, good, func(m map[string]any) { delete(m["verificationMaterial"].(map[string]any), removed) }))
	}
	for _, removed := range []string{"inclusionPromise", "inclusionProof", "kindVersion", "logId", "canonicalizedBody"} {
		f.Add(edited(f, good, func(m map[string]any) {
			delete(m["verificationMaterial"].(map[string]any)["tlogEntries"].([]any)[0].(map[string]any), removed)
		}))
	}
	var verifiers []*keyless.Verifier
	for _, removed := range []string{"", "tlogs"} {
		verifiers = append(verifiers, verifierOf(f, without(f, s.TrustedRoot(), removed)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, v := range verifiers {
			if by, class, err := v.Bundle(text); (err == nil) != (class == "") || err == nil && string(by.Payload) != statement {
				t.Errorf("%q: %q, %v", by.Payload, class, err)
			}
		}
	})
}

// FuzzLayer verifies layers. Nothing but what was signed is verified.
func FuzzLayer(f *testing.F) {
	s := sigstoretest.New(f)
	const payload = `{"critical":{}}`
	annotations, err := signerOf(f, s, services(s, true, true)).Annotations(f.Context(), []byte(payload))
	if err != nil {
		f.Fatal(err)
	}
	seed := func(content string, envelope bool) {
		f.Add([]byte(content), envelope, annotations[signature.SignatureAnnotation], annotations[signature.CertificateAnnotation],
			annotations["dev.sigstore.cosign/bundle"], annotations["dev.sigstore.cosign/rfc3161timestamp"])
	}
	seed(payload, false)
	var b struct{ DSSEEnvelope json.RawMessage }
	if err := json.Unmarshal(bundleOf(f, s), &b); err != nil {
		f.Fatal(err)
	}
	seed(string(b.DSSEEnvelope), true)
	var verifiers []*keyless.Verifier
	for _, removed := range []string{"", "tlogs"} {
		verifiers = append(verifiers, verifierOf(f, without(f, s.TrustedRoot(), removed)))
	}
	f.Fuzz(func(t *testing.T, content []byte, envelope bool, sig, certificate, log, timestamp string) {
		in := map[string]string{}
		for name, text := range map[string]string{signature.SignatureAnnotation: sig, signature.CertificateAnnotation: certificate,
			"dev.sigstore.cosign/bundle": log, "dev.sigstore.cosign/rfc3161timestamp": timestamp} {
			if text != "" {
				in[name] = text
			}
		}
		for _, v := range verifiers {
			if by, class, err := v.Layer(content, envelope, in); (err == nil) != (class == "") || err == nil && string(by.Payload) != payload {
				t.Errorf("%q: %q, %v", by.Payload, class, err)
			}
		}
	})
}

// bundleOf is a good bundle.
func bundleOf(t testing.TB, s *sigstoretest.Sigstore) []byte {
	t.Helper()
	text, err := signerOf(t, s, services(s, true, true)).Bundle(t.Context(), []byte(statement))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
