package supply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/supply/inventory"
	"github.com/operator-bindery/bindery/supply/provenance"
	"github.com/operator-bindery/bindery/supply/sbom"
)

func TestRepository(t *testing.T) {
	for name, want := range map[string]string{
		"quay.io/acme/x:v1":          "quay.io/acme/x",
		"host:5000/x":                "host:5000/x",
		"host:5000/x:v1":             "host:5000/x",
		"host:5000/x@sha256:abc":     "host:5000/x",
		"host:5000/x:v1@sha256:abcd": "host:5000/x",
		"":                           "",
	} {
		if got := Repository(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// indexed stores an index of two images and an attestation of another builder in a registry.
func indexed(t *testing.T) (*testregistry.Registry, string, digest.Digest) {
	t.Helper()
	r := testregistry.New(t)
	r.SetReferrers(testregistry.Referrers{})
	other := r.AddManifest("acme/tool", "", v1.MediaTypeImageManifest,
		[]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":`+
			`"application/vnd.oci.empty.v1+json","digest":"sha256:`+strings.Repeat("4", 64)+`","size":2},"layers":[]}`))
	text := r.Manifest("acme/tool", other.String())
	top := r.AddIndex(t, "acme/tool", "v1", nil, []testregistry.Image{
		{Layers: []map[string]string{{"bin/tool": "amd64"}}},
		{Platform: v1.Platform{OS: "linux", Architecture: "arm64"}, Layers: []map[string]string{{"bin/tool": "arm64"}}},
	}, v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: other, Size: int64(len(text)),
		Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}})
	return r, r.Host() + "/acme/tool:v1", top
}

func registryOptions() registries.Config {
	skip := true
	return registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}
}

// written returns the number of manifests that hang on the subjects of an image after attach was called.
func written(t *testing.T, name string, attach func(w *images.Writer) error) (counts []int) {
	t.Helper()
	o := images.CopyOptions{Options: registries.Options{Registry: registryOptions(), Temp: t.TempDir()}}
	w, err := o.OpenWriter(t.Context(), transport.Destination{Transport: transport.Docker, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Discard() }()
	if err := attach(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, subject := range w.Image.Subjects() {
		list, err := w.Referrers(t.Context(), subject.Digest, nil)
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, len(list))
	}
	return counts
}

// Every image of an index gets a document, other entries get none, and what is attached again is not doubled.
func TestAttachTwice(t *testing.T) {
	_, name, top := indexed(t)
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: registryOptions()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	survey, err := imagetest.Survey(t, client, name)
	if err != nil {
		t.Fatal(err)
	}
	defer survey.Close()
	found, err := inventory.Examine(t.Context(), survey, inventory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &SBOM{Formats: []sbom.Format{sbom.SPDX, sbom.CycloneDX}, Signing: &Signing{},
		Inventory: func(_ context.Context, d digest.Digest) (*inventory.Inventory, error) {
			if d != top {
				t.Errorf("asked about %s", d)
			}
			return found, nil
		}}
	for range 2 {
		counts := written(t, name, func(w *images.Writer) error { return s.Attach(t.Context(), w, w.Image) })
		if len(counts) != 4 || counts[0] != 2 || counts[1] != 2 || counts[2] != 2 || counts[3] != 0 {
			t.Errorf("documents of the subjects: %v", counts)
		}
	}
	p := &Provenance{Signing: &Signing{}, Build: func(_ context.Context, d digest.Digest) (*provenance.Build, error) {
		return &provenance.Build{Command: "build catalog", Subject: d}, nil
	}}
	for range 2 {
		counts := written(t, name, func(w *images.Writer) error { return p.Attach(t.Context(), w, w.Image) })
		if counts[0] != 3 || counts[1] != 3 {
			t.Errorf("with provenance: %v", counts)
		}
	}
}

// An image whose contents are not known gets nothing.
func TestAttachingFails(t *testing.T) {
	_, name, _ := indexed(t)
	unknown := errors.New("unknown")
	s := &SBOM{Formats: []sbom.Format{sbom.SPDX}, Signing: &Signing{},
		Inventory: func(context.Context, digest.Digest) (*inventory.Inventory, error) { return nil, unknown }}
	p := &Provenance{Signing: &Signing{},
		Build: func(context.Context, digest.Digest) (*provenance.Build, error) { return nil, unknown }}
	counts := written(t, name, func(w *images.Writer) error {
		for _, err := range []error{s.Attach(t.Context(), w, w.Image), p.Attach(t.Context(), w, w.Image)} {
			if !errors.Is(err, unknown) {
				t.Errorf("got %v", err)
			}
		}
		return nil
	})
	if counts[0] != 0 {
		t.Errorf("%v", counts)
	}
}

// A document that verifiers would not read is refused before anything is written, and only if it is to be signed.
func TestLargeDocumentsAreNotSigned(t *testing.T) {
	r := testregistry.New(t)
	var catalog strings.Builder
	catalog.WriteString(`{"schema":"olm.package","name":"p","defaultChannel":"a"}` + "\n")
	for n := range 20 {
		fmt.Fprintf(&catalog,
			`{"schema":"olm.bundle","package":"p","name":"p.v%d","image":"q.io/p:v%d","relatedImages":[`, n, n)
		for m := range 1000 {
			fmt.Fprintf(&catalog, `{"name":"%d","image":"q.io/a/b@%s"},`, m, digest.FromString(fmt.Sprint(n, m)))
		}
		catalog.WriteString(`{"name":"x","image":"q.io/x:y"}]}` + "\n")
	}
	r.AddImage(t, "acme/catalog", "v1", testregistry.Image{
		Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
		Layers: []map[string]string{{"configs/p/catalog.json": catalog.String()}}})
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: registryOptions()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	survey, err := imagetest.Survey(t, client, r.Host()+"/acme/catalog:v1")
	if err != nil {
		t.Fatal(err)
	}
	defer survey.Close()
	found, err := inventory.Examine(t.Context(), survey, inventory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &SBOM{Formats: []sbom.Format{sbom.SPDX}, Signing: &Signing{}}
	if err := s.Check(found, ""); err != nil {
		t.Error(err)
	}
	s.Signing.Keys = func(context.Context) ([]signature.Signer, error) { return nil, nil }
	if err := s.Check(found, ""); !errors.Is(err, images.ErrLimit) {
		t.Errorf("got %v", err)
	}
}

// With a key the provenance of an image is an attestation that the key verifies, and no document without a signature.
func TestSignedProvenance(t *testing.T) {
	_, name, top := indexed(t)
	private, public, err := signature.ECDSAP256.GenerateKey([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.ParseKey(private, []byte("x"), false)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := signature.ParsePublicKeys(public)
	if err != nil {
		t.Fatal(err)
	}
	signing := &Signing{Keys: func(context.Context) ([]signature.Signer, error) { return []signature.Signer{key}, nil }}
	p := &Provenance{Signing: signing, Build: func(_ context.Context, d digest.Digest) (*provenance.Build, error) {
		return &provenance.Build{Command: "build catalog", Subject: d}, nil
	}}
	for range 2 {
		counts := written(t, name, func(w *images.Writer) error {
			if err := p.Attach(t.Context(), w, w.Image); err != nil {
				return err
			}
			claims, err := signature.VerifyOptions{Keys: keys}.Examine(t.Context(), w, top)
			if err != nil || len(claims) != 1 || !claims[0].Verified || claims[0].PredicateType != provenance.PredicateType {
				t.Errorf("claims about the index: %+v, %v", claims, err)
			}
			return nil
		})
		if counts[0] != 1 {
			t.Errorf("attestations of the subjects: %v", counts)
		}
	}
	if made := signing.Made(); len(made) < 2 || made[0].Subject != top {
		t.Errorf("%+v", made)
	}
}
