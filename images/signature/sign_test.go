package signature_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
)

// privateKey returns a key of the vectors. It is not encrypted, as decrypting takes most of the time of a test.
func privateKey(t *testing.T, name string) signature.Signer {
	t.Helper()
	key, err := signature.ParseKey(supplytest.Vectors(t)["keys"][name+".pkcs8.pem"], nil, true)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func keysOf(keys ...signature.Signer) signature.Keys {
	return func(context.Context) ([]signature.Signer, error) { return keys, nil }
}

// attach attaches to an image of a layout.
func attach(t *testing.T, dir string, image store.Image, what ...store.Attachment) {
	t.Helper()
	w, err := layouts.NewAddition(t.Context(), transport.Destination{Transport: transport.OCI, Path: dir},
		limit.Limits{}.WithDefaults(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Discard(); err != nil {
			t.Error(err)
		}
	}()
	for _, a := range what {
		if err := a.Attach(t.Context(), w, image); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// What every kind of key signs is verified, for the index and each image, and nothing is signed twice.
func TestSignAndVerify(t *testing.T) {
	const name = supplytest.IndexRepository + ":multi"
	for _, key := range []string{"p256", "p384", "rsa2048", "ed25519"} {
		for _, format := range []signature.Format{signature.FormatSig, signature.FormatBundle, signature.FormatBoth} {
			t.Run(key+" "+string(format), func(t *testing.T) {
				dir := supplytest.Unpack(t, "multi-unsigned")
				_, image := openLayout(t, dir, "multi")
				image.Name = name
				sign := func() []signature.Made {
					s := signature.NewSigning(signature.SignOptions{Keys: keysOf(privateKey(t, key)), Format: format,
						Creator: "bindery test"})
					attach(t, dir, image, s)
					return s.Made()
				}
				want := 3 // the index and two images
				if format == signature.FormatBoth {
					want = 6
				}
				made := sign()
				if len(made) != want {
					t.Fatalf("made %+v", made)
				}
				for _, m := range made {
					if m.Found {
						t.Errorf("found %+v", m)
					}
				}
				for _, m := range sign() {
					if !m.Found {
						t.Errorf("signed twice: %+v", m)
					}
				}
				r, image := openLayout(t, dir, "multi")
				identity, err := signature.ParseIdentity(name)
				if err != nil {
					t.Fatal(err)
				}
				for _, subject := range image.Subjects() {
					o := signature.VerifyOptions{Keys: publicKey(t, key), Identity: identity}
					report, err := o.Verify(t.Context(), r, store.Image{Top: subject})
					if err != nil {
						t.Fatal(err)
					}
					if !report.Verified || len(report.Subjects[0].Findings) != want/3 {
						t.Errorf("%s: %+v", subject.Digest, report.Subjects)
					}
				}
			})
		}
	}
}

// Other signatures stay when one is added.
func TestSignBesideOthers(t *testing.T) {
	dir := supplytest.Unpack(t, "sig-cimage-two-signers")
	_, image := openLayout(t, dir, "v1")
	image.Name = supplytest.Repository + ":v1"
	s := signature.NewSigning(signature.SignOptions{Keys: keysOf(privateKey(t, "rsa2048"), privateKey(t, "p256"))})
	attach(t, dir, image, s)
	found := 0
	for _, m := range s.Made() {
		if m.Found {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d of the signatures were found, expected that of p256 in .sig: %+v", found, s.Made())
	}
	r, image := openLayout(t, dir, "v1")
	for _, key := range []string{"p256", "p256-other", "rsa2048"} {
		report, err := signature.VerifyOptions{Keys: publicKey(t, key)}.Verify(t.Context(), r, image)
		if err != nil || !report.Verified {
			t.Errorf("%s: %v %+v", key, err, report)
		}
	}
}

// Signatures of RSA and Ed25519 give the same bytes on every machine.
func TestSignaturesAreReproducible(t *testing.T) {
	for _, key := range []string{"rsa2048", "ed25519"} {
		var indexes [][]byte
		for range 2 {
			dir := supplytest.Unpack(t, "unsigned")
			_, image := openLayout(t, dir, "v1")
			image.Name = supplytest.Repository + ":v1"
			attach(t, dir, image, signature.NewSigning(signature.SignOptions{Keys: keysOf(privateKey(t, key))}))
			r, image := openLayout(t, dir, "v1")
			list, err := r.Referrers(t.Context(), image.Top.Digest, nil)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			sig, _, err := r.Manifest(t.Context(), "sha256-"+image.Top.Digest.Encoded()+".sig")
			if err != nil {
				t.Fatal(err)
			}
			indexes = append(indexes, append(sig, list[0].Digest...))
		}
		if !bytes.Equal(indexes[0], indexes[1]) {
			t.Errorf("%s: two signatures differ", key)
		}
	}
}

// Attestations are verified by their type, in both places, and are made once. None counts as a signature.
func TestAttestAndVerify(t *testing.T) {
	dir := supplytest.Unpack(t, "unsigned")
	_, image := openLayout(t, dir, "v1")
	attest := func(predicate string) []signature.Made {
		a := &signature.Attesting{Keys: keysOf(privateKey(t, "p256")),
			Type: signature.PredicateSPDX, Legacy: true,
			Predicate: func(context.Context, v1.Descriptor) (json.RawMessage, error) {
				return json.RawMessage(predicate), nil
			}}
		attach(t, dir, image, a)
		return a.Made()
	}
	for _, m := range attest(`{"a": 1}`) {
		if m.Found {
			t.Errorf("found %+v", m)
		}
	}
	for _, m := range attest(`{"a": 1}`) {
		if !m.Found {
			t.Errorf("made twice: %+v", m)
		}
	}
	for _, m := range attest(`{"a": 2}`) {
		if m.Found {
			t.Errorf("another predicate was found: %+v", m)
		}
	}
	r, image := openLayout(t, dir, "v1")
	o := signature.VerifyOptions{Keys: publicKey(t, "p256"), Type: signature.PredicateSPDX}
	report, err := o.Verify(t.Context(), r, image)
	if err != nil || !report.Verified || len(report.Subjects[0].Findings) != 4 {
		t.Errorf("%v %+v", err, report)
	}
	report, err = signature.VerifyOptions{Keys: publicKey(t, "p256")}.Verify(t.Context(), r, image)
	if err != nil || report.Verified {
		t.Errorf("an attestation is a signature: %v %+v", err, report)
	}
}

func TestPredicateMustBeAnObject(t *testing.T) {
	for _, predicate := range []string{`[]`, `"x"`, `null`, `{"a":1,"a":2}`, `{} {}`, ``} {
		dir := supplytest.Unpack(t, "unsigned")
		_, image := openLayout(t, dir, "v1")
		a := &signature.Attesting{Keys: keysOf(privateKey(t, "p256")), Type: "urn:x",
			Predicate: func(context.Context, v1.Descriptor) (json.RawMessage, error) {
				return json.RawMessage(predicate), nil
			}}
		if err := a.Attach(t.Context(), nil, image); err == nil || !strings.Contains(err.Error(), "predicate") {
			t.Errorf("%s: %v", predicate, err)
		}
	}
}

func TestSigNeedsAName(t *testing.T) {
	_, image := openLayout(t, supplytest.Unpack(t, "unsigned"), "v1")
	s := signature.NewSigning(signature.SignOptions{Keys: keysOf(privateKey(t, "p256"))})
	if err := s.Attach(t.Context(), nil, image); !errors.Is(err, signature.ErrNoIdentity) {
		t.Error(err)
	}
}
