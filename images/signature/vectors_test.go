package signature_test

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
)

// openVector opens an image of the vectors as the layout that it is.
func openVector(t *testing.T, vector string) (store.Reader, store.Image) {
	t.Helper()
	return openLayout(t, supplytest.Unpack(t, vector), tagOfVector(vector))
}

func openLayout(t *testing.T, dir, tag string) (store.Reader, store.Image) {
	t.Helper()
	place := transport.Destination{Transport: transport.OCI, Path: dir, Name: tag}
	r, err := layouts.OpenRepository(t.Context(), place, limit.Limits{}.WithDefaults(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	top, err := r.Top(place)
	if err != nil {
		t.Fatal(err)
	}
	image := store.Image{Top: top}
	image.Instances = instancesOf(t, r, top)
	return r, image
}

func tagOfVector(vector string) string {
	if strings.HasPrefix(vector, "sig-") && strings.Contains(vector, "index") ||
		vector == "cosign-sig-index-recursive" || vector == "multi-unsigned" {
		return "multi"
	}
	return "v1"
}

// publicKey returns a key of the vectors.
func publicKey(t *testing.T, name string) []signature.PublicKey {
	t.Helper()
	keys, err := signature.ParsePublicKeys(supplytest.Vectors(t)["keys"][name+".pub"])
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Each vector is accepted or refused as its row says, for the reason that the row says.
func TestVectors(t *testing.T) {
	const repository = supplytest.Repository
	seen := map[string]bool{"keys": true, "policy": true}
	for _, c := range []struct {
		vector, key, identity, predicate string
		class                            signature.Class // of the refusal; empty if it is accepted
		by                               string
	}{
		{vector: "att-min-spdx", key: "p256", predicate: signature.PredicateSPDX},
		{vector: "att-min-spdx", key: "p256", predicate: signature.PredicateProvenance,
			class: signature.OtherPredicate},
		{vector: "att-min-spdx", key: "p256", class: "none"},
		{vector: "bundle-attested-all", key: "p256"},
		{vector: "bundle-attested-all", key: "p256", predicate: signature.PredicateSPDX},
		{vector: "bundle-attested-all", key: "p256", predicate: signature.PredicateCycloneDX},
		{vector: "bundle-attested-all", key: "p256", predicate: signature.PredicateProvenance},
		{vector: "bundle-ed25519-pure", key: "ed25519"},
		{vector: "bundle-ed25519ph", key: "ed25519", class: signature.OtherKey}, // without the digest only
		{vector: "bundle-fallback-tag", key: "p256"},
		{vector: "bundle-min-p256", key: "p256"},
		{vector: "bundle-min-p256", key: "p256-other", class: signature.OtherKey},
		{vector: "bundle-rsa2048", key: "rsa2048"},
		{vector: "bundle-statement-v01", key: "p256"},
		{vector: "cosign-attest-bundles", key: "p256", class: signature.NotASignature},
		{vector: "cosign-attest-bundles", key: "p256", predicate: signature.PredicateSPDX},
		{vector: "cosign-attest-bundles", key: "p256", predicate: signature.PredicateCycloneDX},
		{vector: "cosign-attest-bundles", key: "p256", predicate: signature.PredicateProvenance},
		{vector: "cosign-attest-bundles", key: "p256", predicate: "https://cosign.sigstore.dev/attestation/v1"},
		{vector: "cosign-bundle-p256", key: "p256"},
		{vector: "cosign-bundle-p256-api", key: "p256"},
		{vector: "cosign-bundle-p384", key: "p384"}, // SHA-384, which bundles may have
		{vector: "cosign-bundle-rsa2048", key: "rsa2048"},
		{vector: "cosign-sig-ed25519", key: "ed25519", class: signature.OtherKey}, // Ed25519ph
		{vector: "cosign-sig-index-recursive", key: "p256", identity: supplytest.IndexRepository + ":multi",
			class: signature.OtherIdentity},
		{vector: "cosign-sig-index-recursive", key: "p256", identity: supplytest.IndexRepository, by: signature.ByList},
		{vector: "cosign-sig-p256", key: "p256", identity: repository + ":v1", class: signature.OtherIdentity},
		{vector: "cosign-sig-p256", key: "p256", identity: repository},
		{vector: "multi-unsigned", key: "p256", class: "none"},
		{vector: "neg-att-other-key", key: "p256", predicate: signature.PredicateSPDX, class: signature.OtherKey},
		{vector: "neg-bundle-no-signatures", key: "p256", class: signature.Malformed},
		{vector: "neg-bundle-not-json", key: "p256", class: signature.Malformed},
		{vector: "neg-bundle-only-sbom-attested", key: "p256", class: signature.NotASignature},
		{vector: "neg-bundle-other-digest", key: "p256", class: signature.OtherSubject},
		{vector: "neg-bundle-other-key", key: "p256", class: signature.OtherKey},
		{vector: "neg-bundle-payloadtype-swapped", key: "p256", class: signature.OtherKey},
		{vector: "neg-bundle-signed-without-pae", key: "p256", class: signature.OtherKey},
		{vector: "neg-bundle-subject-sha512-only", key: "p256", class: signature.OtherSubject},
		{vector: "neg-bundle-tampered", key: "p256", class: signature.OtherKey},
		{vector: "neg-bundle-two-signatures", key: "p256", class: signature.Malformed},
		{vector: "neg-pki-expired", key: "p256", class: signature.Certificate},
		{vector: "neg-referrers-tag-not-index", key: "p256", class: "none"},
		{vector: "neg-sig-annotation-missing", key: "p256", class: signature.Malformed},
		{vector: "neg-sig-blob-corrupt", key: "p256", class: signature.Corrupt},
		{vector: "neg-sig-duplicate-keys", key: "p256", class: signature.Malformed},
		{vector: "neg-sig-other-digest", key: "p256", class: signature.OtherSubject},
		{vector: "neg-sig-other-key", key: "p256", class: signature.OtherKey},
		{vector: "neg-sig-other-repository", key: "p256", identity: repository + ":v1", class: signature.OtherIdentity},
		{vector: "neg-sig-other-repository", key: "p256", identity: repository, class: signature.OtherIdentity},
		{vector: "neg-sig-rsa-sha512", key: "rsa2048", class: signature.OtherKey},
		{vector: "neg-sig-tampered-payload", key: "p256", class: signature.OtherKey},
		{vector: "neg-sig-type-atomic", key: "p256", class: signature.Malformed},
		{vector: "neg-sig-wrong-layer-type", key: "p256", class: signature.MediaType},
		{vector: "referrers-tag-self-and-loop", key: "p256"},
		{vector: "sig-bad-then-good", key: "p256", identity: repository + ":v1"},
		{vector: "sig-cimage-ed25519", key: "ed25519", identity: repository + ":v1"},
		{vector: "sig-cimage-index-all", key: "p256", identity: supplytest.IndexRepository + ":multi",
			by: signature.ByList},
		{vector: "sig-cimage-p256", key: "p256", identity: repository + ":v1"},
		{vector: "sig-cimage-p256", key: "p256", identity: repository + ":v2", class: signature.OtherIdentity},
		{vector: "sig-cimage-rsa2048", key: "rsa2048", identity: repository + ":v1"},
		{vector: "sig-cimage-two-signers", key: "p256", identity: repository + ":v1"},
		{vector: "sig-cimage-two-signers", key: "p256-other", identity: repository + ":v1"},
		{vector: "sig-ed25519ph", key: "ed25519", class: signature.OtherKey},
		{vector: "sig-index-only-list", key: "p256", identity: supplytest.IndexRepository + ":multi",
			by: signature.ByList},
		{vector: "sig-min-optional-null", key: "p256", identity: repository + ":v1"},
		{vector: "sig-pki-valid", key: "p256"}, // the key is that of its certificate
		{vector: "unsigned", key: "p256", class: "none"},
	} {
		seen[c.vector] = true
		t.Run(strings.Join([]string{c.vector, c.key, c.identity, c.predicate}, " "), func(t *testing.T) {
			r, image := openVector(t, c.vector)
			o := signature.VerifyOptions{Keys: publicKey(t, c.key), Type: c.predicate}
			if c.identity != "" {
				var err error
				if o.Identity, err = signature.ParseIdentity(c.identity); err != nil {
					t.Fatal(err)
				}
			}
			report, err := o.Verify(t.Context(), r, image)
			if err != nil {
				t.Fatal(err)
			}
			if report.Verified != (c.class == "") {
				t.Fatalf("verified %v: %+v", report.Verified, report.Subjects)
			}
			if c.by != "" && report.By != c.by {
				t.Errorf("verified by %s, expected %s", report.By, c.by)
			}
			refusals := report.Refusals()
			switch c.class {
			case "":
			case "none":
				if len(refusals) > 0 {
					t.Errorf("found %+v", refusals)
				}
			default:
				if len(refusals) == 0 {
					t.Fatal("nothing was found")
				}
				for _, f := range refusals {
					if f.Class != c.class {
						t.Errorf("%s: %s, expected %s", f.Class, f.Problem, c.class)
					}
				}
			}
		})
	}
	for vector := range supplytest.Vectors(t) {
		if !seen[vector] {
			t.Errorf("the vector %s is not tested", vector)
		}
	}
}
