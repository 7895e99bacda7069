package signature_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
)

// attachFunc is an attachment of a test.
type attachFunc func(ctx context.Context, to store.Writer, image store.Image) error

func (f attachFunc) Attach(ctx context.Context, to store.Writer, image store.Image) error {
	return f(ctx, to, image)
}

// sigLayers attaches payloads to the .sig tag, each with a good signature of its bytes.
func sigLayers(key signature.Signer, payloads ...string) attachFunc {
	return func(ctx context.Context, to store.Writer, image store.Image) error {
		var layers []v1.Descriptor
		for _, p := range payloads {
			sig, err := key.Sign(ctx, []byte(p))
			if err != nil {
				return err
			}
			l := v1.Descriptor{MediaType: "application/vnd.dev.cosign.simplesigning.v1+json",
				Digest: digest.FromString(p), Size: int64(len(p)), Annotations: map[string]string{
					"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sig)}}
			if err := store.WriteBytes(ctx, to, l, []byte(p)); err != nil {
				return err
			}
			layers = append(layers, l)
		}
		if err := store.WriteBytes(ctx, to, v1.DescriptorEmptyJSON, []byte("{}")); err != nil {
			return err
		}
		text, err := json.Marshal(v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2},
			MediaType: v1.MediaTypeImageManifest, Config: v1.DescriptorEmptyJSON, Layers: layers})
		if err != nil {
			return err
		}
		return to.UpdateTag(ctx, "sha256-"+image.Top.Digest.Encoded()+".sig",
			func([]byte) ([]byte, string, error) { return text, v1.MediaTypeImageManifest, nil })
	}
}

// statements attaches statements in bundles, each with a good signature of its bytes.
func statements(key signature.Signer, payloads ...string) attachFunc {
	return func(ctx context.Context, to store.Writer, image store.Image) error {
		for _, p := range payloads {
			const kind = "application/vnd.in-toto+json"
			sig, err := key.Sign(ctx, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(p), p))
			if err != nil {
				return err
			}
			bundle := fmt.Sprintf(`{"mediaType":%q,"verificationMaterial":{"publicKey":{"hint":"x"}},`+
				`"dsseEnvelope":{"payload":%q,"payloadType":%q,"signatures":[{"sig":%q}]}}`, signature.BundleType,
				base64.StdEncoding.EncodeToString([]byte(p)), kind, base64.URLEncoding.EncodeToString(sig))
			if _, err := referrers.Attach(ctx, to, image.Top,
				referrers.Artifact{Type: signature.BundleType, Content: []byte(bundle)}); err != nil {
				return err
			}
		}
		return nil
	}
}

// What a trusted key has signed is refused anyway if it can be understood in two ways or is too large.
func TestHostileSignatures(t *testing.T) {
	key := privateKey(t, "p256")
	_, image := openVector(t, "unsigned")
	hex := image.Top.Digest.Encoded()
	simple := func(change ...string) string {
		return strings.NewReplacer(change...).Replace(
			`{"critical":{"identity":{"docker-reference":"registry.example.com/acme/catalog:v1"},` +
				`"image":{"docker-manifest-digest":"sha256:` + hex + `"},` +
				`"type":"cosign container image signature"},"optional":null}`)
	}
	statement := func(change ...string) string {
		return strings.NewReplacer(change...).Replace(
			`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + hex + `"}}],` +
				`"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`)
	}
	subjects := func(n int) string {
		return strings.Repeat(`{"digest":{"sha256":"`+strings.Repeat("0", 64)+`"}},`, n)
	}
	var digests strings.Builder
	for n := range 32 {
		fmt.Fprintf(&digests, `"d%d":"00",`, n)
	}
	many := make([]string, 1001)
	for n := range many {
		many[n] = simple("null", fmt.Sprintf(`{"n":%d}`, n))
	}
	for _, c := range []struct {
		name  string
		what  attachFunc
		class signature.Class
	}{
		{"good", sigLayers(key, simple()), ""},
		{"good statement", statements(key, statement()), ""},
		{"unknown member in critical", sigLayers(key, simple(`"type"`, `"more":1,"type"`)), signature.Malformed},
		{"unknown member in image", sigLayers(key, simple(`"docker-manifest`, `"x":1,"docker-manifest`)),
			signature.Malformed},
		{"another spelling", sigLayers(key, simple(`"critical"`, `"Critical"`)), signature.Malformed},
		{"two spellings", sigLayers(key, simple(`"optional"`, `"Critical":{},"optional"`)), signature.Malformed},
		{"duplicate deep in optional", sigLayers(key, simple("null", `{"a":{"b":1,"b":2}}`)), signature.Malformed},
		{"after the payload", sigLayers(key, simple()+"{}"), signature.Malformed},
		{"upper case digest", sigLayers(key, simple(hex, strings.ToUpper(hex))), signature.Malformed},
		{"no type", sigLayers(key, simple(`,"type":"cosign container image signature"`, "")), signature.Malformed},
		{"payload of 4 MiB and a byte", sigLayers(key, simple("null", `"`+strings.Repeat("a", 4<<20-
			len(simple())+3)+`"`)), signature.TooLarge},
		{"1001 layers", sigLayers(key, many...), signature.TooLarge},
		{"1025 subjects", statements(key, statement(`"subject":[`, `"subject":[`+subjects(1024))),
			signature.TooLarge},
		{"1024 subjects", statements(key, statement(`"subject":[`, `"subject":[`+subjects(1023))), ""},
		{"33 digests", statements(key, statement(`{"sha256"`, "{"+digests.String()+`"sha256"`)), signature.TooLarge},
		{"no subject", statements(key, statement(`{"digest":{"sha256":"`+hex+`"}}`, "")), signature.Malformed},
		{"null subject", statements(key, statement(`"subject":[`, `"subject":[null,`)), signature.Malformed},
		{"subject twice", statements(key, statement(`"predicate":`, `"subject":[],"predicate":`)),
			signature.Malformed},
		{"subject in two spellings", statements(key, statement(`"predicate":`, `"Subject":[],"predicate":`)),
			signature.Malformed},
		{"digest in upper case", statements(key, statement(hex, strings.ToUpper(hex))), signature.Malformed},
		{"short digest", statements(key, statement(hex, hex[:62])), signature.Malformed},
		{"unknown statement", statements(key, statement("Statement/v1", "Statement/v2")), signature.Malformed},
		{"no predicate type", statements(key, statement("https://sigstore.dev/cosign/sign/v1", "")),
			signature.Malformed},
		{"attestation", statements(key, statement("cosign/sign/v1", "cosign/sign/v1/")), signature.NotASignature},
		{"bundle of 4 MiB", statements(key, statement(`"predicate":{}`,
			`"predicate":{"a":"`+strings.Repeat("a", 3<<20)+`"}`)), signature.TooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := supplytest.Unpack(t, "unsigned")
			_, image := openLayout(t, dir, "v1")
			attach(t, dir, image, c.what)
			r, image := openLayout(t, dir, "v1")
			report, err := signature.VerifyOptions{Keys: publicKey(t, "p256")}.Verify(t.Context(), r, image)
			if err != nil {
				t.Fatal(err)
			}
			if report.Verified != (c.class == "") {
				t.Fatalf("verified %v: %.600v", report.Verified, report.Subjects)
			}
			refusals := report.Refusals()
			if c.class == "" {
				return
			}
			if len(refusals) != 1 || refusals[0].Class != c.class {
				t.Errorf("%.600v, expected %s", refusals, c.class)
			}
		})
	}
}

// Members of bundles that a parser of protobuf would take as the same are refused.
func TestBundlesThatReadTwoWays(t *testing.T) {
	_, image := openVector(t, "unsigned")
	statement := `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` +
		image.Top.Digest.Encoded() + `"}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`
	const kind = "application/vnd.in-toto+json"
	sig, err := privateKey(t, "p256").Sign(t.Context(), fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind,
		len(statement), statement))
	if err != nil {
		t.Fatal(err)
	}
	envelope := fmt.Sprintf(`{"payload":%q,"payloadType":%q,"signatures":[{"sig":%q}]}`,
		base64.StdEncoding.EncodeToString([]byte(statement)), kind, base64.StdEncoding.EncodeToString(sig))
	for name, c := range map[string]struct {
		bundle string
		good   bool
	}{
		"camel case": {`{"mediaType":"` + signature.BundleType + `","dsseEnvelope":` + envelope + `}`, true},
		"snake case": {`{"media_type":"` + signature.BundleType + `","dsse_envelope":` + envelope + `}`, true},
		"both": {`{"mediaType":"` + signature.BundleType + `","dsseEnvelope":{},"dsse_envelope":` + envelope +
			`}`, false},
		"another spelling beside it": {`{"mediaType":"` + signature.BundleType + `","DSSEEnvelope":{},"dsseEnvelope":` +
			envelope + `}`, false},
		"unknown version": {`{"mediaType":"application/vnd.dev.sigstore.bundle.v9.9+json","dsseEnvelope":` + envelope +
			`}`, false},
		"a blob's signature too": {`{"mediaType":"` + signature.BundleType + `","messageSignature":{},"dsseEnvelope":` +
			envelope + `}`, false},
		"two materials": {`{"mediaType":"` + signature.BundleType + `","verificationMaterial":{"publicKey":{},` +
			`"certificate":{}},"dsseEnvelope":` + envelope + `}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte(c.bundle)) {
				t.Fatal("not JSON")
			}
			dir := supplytest.Unpack(t, "unsigned")
			_, image := openLayout(t, dir, "v1")
			attach(t, dir, image, attachFunc(func(ctx context.Context, to store.Writer, i store.Image) error {
				_, err := referrers.Attach(ctx, to, i.Top,
					referrers.Artifact{Type: signature.BundleType, Content: []byte(c.bundle)})
				return err
			}))
			r, image := openLayout(t, dir, "v1")
			report, err := signature.VerifyOptions{Keys: publicKey(t, "p256")}.Verify(t.Context(), r, image)
			if err != nil || report.Verified != c.good {
				t.Errorf("%v %+v", err, report)
			}
		})
	}
}

// A good signature to which somebody has added a certificate that cannot have made it is refused. So signing again
// makes another one, and the refused one is not reported as found.
func TestSpoiltSignatureIsMadeAgain(t *testing.T) {
	key := privateKey(t, "p256")
	dir := supplytest.Unpack(t, "unsigned")
	_, image := openLayout(t, dir, "v1")
	const name = "registry.example.com/acme/catalog:v1"
	payload := `{"critical":{"identity":{"docker-reference":"` + name + `"},"image":{"docker-manifest-digest":"` +
		image.Top.Digest.String() + `"},"type":"cosign container image signature"},"optional":null}`
	attach(t, dir, image, attachFunc(func(ctx context.Context, to store.Writer, i store.Image) error {
		sig, err := key.Sign(ctx, []byte(payload))
		if err != nil {
			return err
		}
		l := v1.Descriptor{MediaType: "application/vnd.dev.cosign.simplesigning.v1+json",
			Digest: digest.FromString(payload), Size: int64(len(payload)), Annotations: map[string]string{
				"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sig),
				"dev.sigstore.cosign/certificate":    "spoilt"}}
		return referrers.AppendLayers(ctx, to, "sha256-"+i.Top.Digest.Encoded()+".sig", []v1.Descriptor{l},
			[]byte(payload))
	}))
	examine := func() (verified bool, claims int) {
		r, image := openLayout(t, dir, "v1")
		report, err := signature.VerifyOptions{Keys: publicKey(t, "p256")}.Verify(t.Context(), r, image)
		if err != nil {
			t.Fatal(err)
		}
		all, err := signature.VerifyOptions{Keys: publicKey(t, "p256")}.Examine(t.Context(), r, image.Top.Digest)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.Verified {
				claims++
			}
		}
		return report.Verified, claims
	}
	if verified, claims := examine(); verified || claims != 0 {
		t.Errorf("spoilt: %v, %d", verified, claims)
	}
	s := signature.NewSigning(signature.SignOptions{Keys: keysOf(key), Format: signature.FormatSig,
		Identities: []string{name}})
	attach(t, dir, image, s)
	for _, m := range s.Made() {
		if m.Subject == image.Top.Digest && m.Found {
			t.Errorf("%+v", m)
		}
	}
	if verified, claims := examine(); !verified || claims != 1 {
		t.Errorf("signed again: %v, %d", verified, claims)
	}
}

// A signature for a tag and a digest is none for the tag: the containers library compares the whole name.
func TestIdentityWithADigest(t *testing.T) {
	const name = supplytest.Repository + ":v1"
	for signed, good := range map[string]bool{
		name: true,
		name + "@sha256:" + strings.Repeat("0", 64): false,
		supplytest.Repository:                       false,
		supplytest.Repository + ":v2":               false,
	} {
		dir := supplytest.Unpack(t, "unsigned")
		_, image := openLayout(t, dir, "v1")
		payload := `{"critical":{"identity":{"docker-reference":"` + signed + `"},"image":{"docker-manifest-digest":"` +
			image.Top.Digest.String() + `"},"type":"cosign container image signature"},"optional":null}`
		attach(t, dir, image, sigLayers(privateKey(t, "p256"), payload))
		identity, err := signature.ParseIdentity(name)
		if err != nil {
			t.Fatal(err)
		}
		r, image := openLayout(t, dir, "v1")
		o := signature.VerifyOptions{Keys: publicKey(t, "p256"), Identity: identity}
		report, err := o.Verify(t.Context(), r, image)
		if err != nil || report.Verified != good {
			t.Errorf("%s: %v %+v", signed, err, report)
		}
	}
}
