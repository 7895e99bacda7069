package signature_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/signature/keyless"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/sigstoretest"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
)

// layerOf attaches one layer under a tag that is derived from the image's digest.
func layerOf(suffix, mediaType, content string, annotations map[string]string) attachFunc {
	return func(ctx context.Context, to store.Writer, image store.Image) error {
		l := v1.Descriptor{MediaType: mediaType, Digest: digest.FromString(content), Size: int64(len(content)),
			Annotations: annotations}
		if err := store.WriteBytes(ctx, to, l, []byte(content)); err != nil {
			return err
		}
		if err := store.WriteBytes(ctx, to, v1.DescriptorEmptyJSON, []byte("{}")); err != nil {
			return err
		}
		text, err := json.Marshal(v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2},
			MediaType: v1.MediaTypeImageManifest, Config: v1.DescriptorEmptyJSON, Layers: []v1.Descriptor{l}})
		if err != nil {
			return err
		}
		return to.UpdateTag(ctx, "sha256-"+image.Top.Digest.Encoded()+suffix,
			func([]byte) ([]byte, string, error) { return text, v1.MediaTypeImageManifest, nil })
	}
}

// bundleOf attaches a bundle.
func bundleOf(text string) attachFunc {
	return func(ctx context.Context, to store.Writer, image store.Image) error {
		_, err := referrers.Attach(ctx, to, image.Top, referrers.Artifact{Type: signature.BundleType, Content: []byte(text)})
		return err
	}
}

const simpleMedia, envelopeMedia = "application/vnd.dev.cosign.simplesigning.v1+json", "application/vnd.dsse.envelope.v1+json"

// A signature by an identity counts for the image that it is about and in the one way in which it can be read.
func TestHostileSignaturesByIdentity(t *testing.T) {
	const name, issuer = "release@example.com", "https://issuer.example.com"
	s := sigstoretest.New(t)
	signerOf := func(who string) *keyless.Signer {
		signer, err := keyless.NewSigner(
			keyless.Services{Authority: s.FulcioURL, Logs: []keyless.Log{{URL: s.RekorURL, Version: 1}}, SignedTimeLog: s.RekorURL},
			func(context.Context) (string, error) { return s.Token(who, issuer), nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		return signer
	}
	trusted, mallory := signerOf(name), signerOf("mallory@example.com")
	root, err := keyless.ParseRoot(s.TrustedRoot())
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := keyless.NewVerifier(root, keyless.Identity{Name: name, Issuer: issuer})
	if err != nil {
		t.Fatal(err)
	}
	_, image := openVector(t, "unsigned")
	hex, other := image.Top.Digest.Encoded(), strings.Repeat("0", 64)
	statement := func(hex, kind string) string {
		return `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + hex + `"}}],"predicateType":"` +
			kind + `","predicate":{}}`
	}
	payload := func(hex string) string {
		return `{"critical":{"identity":{"docker-reference":"registry.example.com/acme/catalog:v1"},"image":{` +
			`"docker-manifest-digest":"sha256:` + hex + `"},"type":"cosign container image signature"},"optional":null}`
	}
	bundle := func(by *keyless.Signer, statement string, change ...string) string {
		text, err := by.Bundle(t.Context(), []byte(statement))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.NewReplacer(change...).Replace(string(text))
		if len(change) > 0 && changed == string(text) {
			t.Fatalf("%q is not in %s", change, text)
		}
		return changed
	}
	sig := func(by *keyless.Signer, payload string, change func(map[string]string)) attachFunc {
		annotations, err := by.Annotations(t.Context(), []byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		annotations = maps.Clone(annotations)
		if change != nil {
			change(annotations)
		}
		return layerOf(".sig", simpleMedia, payload, annotations)
	}
	certificateOf := func(by *keyless.Signer) string {
		annotations, err := by.Annotations(t.Context(), []byte(payload(other)))
		if err != nil {
			t.Fatal(err)
		}
		return annotations[signature.CertificateAnnotation]
	}
	der := func(certificate string) string {
		block, _ := pem.Decode([]byte(certificate))
		return base64.StdEncoding.EncodeToString(block.Bytes)
	}
	good := statement(hex, signature.PredicateSign)
	evil := bundle(mallory, good)
	for _, c := range []struct {
		what   string
		attach attachFunc
		class  signature.Class // none if it is verified
	}{
		{"a bundle", bundleOf(bundle(trusted, good)), ""},
		{"a layer", sig(trusted, payload(hex), nil), ""},
		{"another identity", bundleOf(evil), signature.OtherSigner},
		{"another identity, a layer", sig(mallory, payload(hex), nil), signature.OtherSigner},
		{"about another image", bundleOf(bundle(trusted, statement(other, signature.PredicateSign))), signature.OtherSubject},
		{"about another image, a layer", sig(trusted, payload(other), nil), signature.OtherSubject},
		{"an attestation", bundleOf(bundle(trusted, statement(hex, signature.PredicateSPDX))), signature.NotASignature},
		{"a payload with something after it", sig(trusted, payload(hex)+"{}", nil), signature.Malformed},
		{"a statement as a layer", sig(trusted, good, nil), signature.Malformed},
		{"an envelope as a layer", layerOf(".sig", envelopeMedia, "{}", nil), signature.MediaType},
		{"the trusted certificate", bundleOf(strings.Replace(evil, der(certificateOf(mallory)), der(certificateOf(trusted)), 1)),
			signature.Unlogged},
		{"the trusted certificate, a layer", sig(mallory, payload(hex), func(a map[string]string) {
			a[signature.CertificateAnnotation] = certificateOf(trusted)
		}), signature.Unlogged},
		{"two certificates, a layer", sig(mallory, payload(hex), func(a map[string]string) {
			a[signature.CertificateAnnotation] += certificateOf(trusted)
		}), signature.Certificate},
		{"a certificate of another type", sig(trusted, payload(hex), func(a map[string]string) {
			a[signature.CertificateAnnotation] = strings.ReplaceAll(a[signature.CertificateAnnotation], "CERTIFICATE", "TRUSTED CERTIFICATE")
		}), signature.Certificate},
		{"no certificate, a layer", sig(trusted, payload(hex), func(a map[string]string) {
			delete(a, signature.CertificateAnnotation)
		}), signature.OtherSigner},
		{"no log entry, a layer", sig(trusted, payload(hex), func(a map[string]string) { delete(a, "dev.sigstore.cosign/bundle") }),
			signature.Unlogged},
		{"a key and a certificate", bundleOf(bundle(trusted, good, `"certificate":`, `"publicKey":{"hint":"x"},"certificate":`)),
			signature.Malformed},
		{"a certificate and a chain", bundleOf(strings.Replace(evil, `"certificate":`, `"x509CertificateChain":{"certificates":[{"rawBytes":"`+
			der(certificateOf(trusted))+`"}]},"certificate":`, 1)), signature.Malformed},
		{"two spellings", bundleOf(bundle(trusted, good, `"payloadType":`, `"payload_type":"x","payloadType":`)), signature.Malformed},
		{"two payloads", bundleOf(bundle(trusted, good, `"payload":`, `"payload":"e30=","payload":`)), signature.Malformed},
		{"two signatures", bundleOf(bundle(trusted, good, `"signatures":[`, `"signatures":[{"sig":"AAAA"},`)), signature.Malformed},
		{"a message beside the envelope", bundleOf(bundle(trusted, good, `"dsseEnvelope":`, `"messageSignature":{},"dsseEnvelope":`)),
			signature.Malformed},
		{"another version", bundleOf(bundle(trusted, good, "bundle.v0.3+json", "bundle.v0.4+json")), signature.Malformed},
	} {
		for _, keys := range [][]signature.PublicKey{nil, publicKey(t, "p256")} {
			dir := supplytest.Unpack(t, "unsigned")
			attach(t, dir, image, c.attach)
			r, image := openLayout(t, dir, tagOfVector("unsigned"))
			image.Instances = nil
			report, err := signature.VerifyOptions{Identities: verifier, Keys: keys}.Verify(t.Context(), r, image)
			if err != nil {
				t.Fatal(c.what, err)
			}
			found := report.Subjects[0].Findings
			if report.Verified != (c.class == "") || len(found) != 1 {
				t.Errorf("%s: %+v", c.what, report)
			} else if keys == nil && found[0].Class != c.class {
				t.Errorf("%s: %s, expected %s: %s", c.what, found[0].Class, c.class, found[0].Problem)
			}
			if c.class == "" && (found[0].Name != name || found[0].Issuer != issuer) {
				t.Errorf("%s: %+v", c.what, found[0])
			}
		}
	}
}

// Anybody can certify a key for any name: that of a certificate beside a signature by a trusted key is not part of what is
// verified.
func TestNameBesideAKey(t *testing.T) {
	key := privateKey(t, "p256")
	block, _ := pem.Decode(supplytest.Vectors(t)["keys"]["p256.pub"])
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), EmailAddresses: []string{"ceo@example.com"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, authority)
	if err != nil {
		t.Fatal(err)
	}
	_, image := openVector(t, "unsigned")
	payload := `{"critical":{"identity":{"docker-reference":"registry.example.com/acme/catalog:v1"},"image":{` +
		`"docker-manifest-digest":"` + image.Top.Digest.String() + `"},"type":"cosign container image signature"},"optional":null}`
	sig, err := key.Sign(t.Context(), []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	dir := supplytest.Unpack(t, "unsigned")
	attach(t, dir, image, layerOf(".sig", simpleMedia, payload, map[string]string{
		signature.SignatureAnnotation:   base64.StdEncoding.EncodeToString(sig),
		signature.CertificateAnnotation: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}))
	r, image := openLayout(t, dir, tagOfVector("unsigned"))
	claims, err := signature.VerifyOptions{Keys: publicKey(t, "p256")}.Examine(t.Context(), r, image.Top.Digest)
	if err != nil || len(claims) != 1 || !claims[0].Verified || claims[0].Name != "" {
		t.Errorf("%+v, %v", claims, err)
	}
	if claims, err = (signature.VerifyOptions{}).Examine(t.Context(), r, image.Top.Digest); err != nil ||
		!slices.ContainsFunc(claims, func(c signature.Claim) bool { return !c.Verified && c.Name == "ceo@example.com" }) {
		t.Errorf("%+v, %v", claims, err)
	}
}
