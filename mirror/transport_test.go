package mirror_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/render"
)

// memory is a transport whose images are in a repository in memory: memory:NAME:TAG.
func memory(place *storetest.Memory) transport.Row {
	return transport.Row{Name: "memory", Form: "memory:NAME:TAG", About: "memory", Attachments: true,
		Parse: func(rest string) (path, name string, err error) {
			path, name, _ = strings.Cut(rest, ":")
			return path, name, nil
		},
		Open: func(ctx context.Context, _, tag string, _ transport.Options) (*transport.Place, error) {
			top, err := place.Head(ctx, tag)
			return &transport.Place{Reader: place, Top: top}, err
		},
		Write: func(context.Context, string, string, transport.Options) (store.Writer, error) { return place, nil }}
}

// A transport is a row of a table that the client is given: an image of it is written, signed, rendered, built upon,
// judged and copied as others are.
func TestATransportIsOneRow(t *testing.T) {
	ctx, dir, place := t.Context(), t.TempDir(), storetest.NewMemory()
	judged := filepath.Join(dir, "policy.json")
	if err := os.WriteFile(judged, []byte(`{"default":[{"type":"reject"}],"transports":{"memory":{"etcd":`+
		`[{"type":"insecureAcceptAnything"}]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := images.NewClient(images.ClientOptions{Transports: append(images.BuiltIn(), memory(place)),
		Policy: policy.Read, PolicyFile: judged, Options: registries.Options{Temp: dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	private, _, err := signature.ECDSAP256.GenerateKey([]byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.ParseKey(private, []byte("open sesame"), false)
	if err != nil {
		t.Fatal(err)
	}
	signing := signature.NewSigning(signature.SignOptions{Identities: []string{"registry.example.com/etcd:v1"},
		Keys: func(context.Context) ([]signature.Signer, error) { return []signature.Signer{key}, nil }})
	bundle := func(base *build.Base) *build.Image {
		in, err := build.ReadBundle(os.DirFS("../testdata/bundles/etcd/0.9.4"))
		if err != nil {
			t.Fatal(err)
		}
		img, err := build.Bundle(ctx, in, build.Options{Dir: t.TempDir(), Base: base})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = img.Close() })
		return img
	}
	const name = "memory:etcd:v1"
	made := bundle(nil)
	to, err := client.Transports().Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := made.Copy(ctx, []transport.Destination{to}, images.CopyOptions{Transports: client.Transports(),
		Attachments: []store.Attachment{signing}, Options: registries.Options{Temp: dir}}); err != nil {
		t.Fatal(err)
	}

	blobs, err := render.Options{Images: client}.Render(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	rendered := 0
	for b, err := range blobs {
		if err != nil || b.BlobPackage() != "etcd" {
			t.Fatalf("rendered %v, %v", b, err)
		}
		rendered++
	}
	if rendered != 1 {
		t.Errorf("rendered %d blobs", rendered)
	}
	base, err := build.NamedBase(client, name)
	if err != nil {
		t.Fatal(err)
	}
	if above := bundle(base); above.Layers[0].Digest != made.Layers[0].Digest {
		t.Errorf("built upon it: %s, want %s", above.Layers[0].Digest, made.Layers[0].Digest)
	}
	if _, err := client.Open(ctx, "memory:other:v1"); err == nil {
		t.Error("the policy rejects it, and it is opened")
	}
	dest, err := images.BuiltIn().Parse("oci:" + filepath.Join(dir, "layout") + ":v1")
	if err != nil {
		t.Fatal(err)
	}
	copied, err := client.Copy(ctx, name, dest, referrers.Kinds{Tags: true, Referrers: true}, images.CopyOptions{Options: registries.Options{Temp: dir}})
	if err != nil || copied.Digest != made.Digest {
		t.Fatalf("copied: %s, %v", copied.Digest, err)
	}
	at, err := images.NewClient(images.ClientOptions{NoPolicy: true, Options: registries.Options{Temp: dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	for name, c := range map[string]*images.Client{name: client, dest.String(): at} {
		src, err := c.Open(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		image, err := src.Entries(ctx)
		if err != nil {
			t.Fatal(err)
		}
		report, err := signature.VerifyOptions{Keys: []signature.PublicKey{key.Public()}}.Verify(ctx, src, image)
		if err != nil || !report.Verified {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}

	added, err := images.CopyOptions{Transports: client.Transports()}.OpenWriter(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(signing.Attach(ctx, added, added.Image), added.Commit(ctx), added.Discard()); err != nil ||
		added.Image.Top.Digest != made.Digest {
		t.Errorf("signed again: %s, %v", added.Image.Top.Digest, err)
	}

	w := newWorld(t, small)
	set, err := imageset.Parse([]byte(`{"kind":"ImageSetConfiguration","apiVersion":"mirror.openshift.io/v2alpha1",`+
		`"mirror":{"additionalImages":[{"name":"memory://etcd:v1","targetRepo":"acme/etcd","targetTag":"v1"}]}}`),
		"imageset.yaml", imageset.Image, imageset.Options{Transports: []string{"memory"}})
	if err != nil {
		t.Fatal(err)
	}
	w.change = func(o *mirror.Options) { o.Set, o.Images, o.Render.Images, o.Spec.Images = set, client, client, client }
	w.must(mirror.ToMirror)
	if at := digest.FromBytes(w.target.Manifest("to/acme/etcd", "v1")); at != made.Digest {
		t.Errorf("mirrored: %s", at)
	}
}
