package signature_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
)

// Sign an image while it is written, and verify it.
func Example() {
	ctx := context.Background()
	private, public, err := signature.ECDSAP256.GenerateKey([]byte("open sesame"))
	if err != nil {
		log.Fatal(err)
	}
	key, err := signature.ParseKey(private, []byte("open sesame"), false)
	if err != nil {
		log.Fatal(err)
	}
	signing := signature.NewSigning(signature.SignOptions{
		Keys:       func(context.Context) ([]signature.Signer, error) { return []signature.Signer{key}, nil },
		Identities: []string{"registry.example.com/acme/etcd:v1"},
		Creator:    "example",
	})

	dir, err := os.MkdirTemp("", "example-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	bundle, err := build.ReadBundle(os.DirFS("../../testdata/bundles/etcd/0.9.4"))
	if err != nil {
		log.Fatal(err)
	}
	img, err := build.Bundle(ctx, bundle, build.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer img.Close()
	name := "oci:" + filepath.Join(dir, "layout") + ":v1"
	dest, err := images.BuiltIn().Parse(name)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := images.Copy(ctx, img.Store(), img.Top(), []transport.Destination{dest},
		images.CopyOptions{Attachments: []store.Attachment{signing}}); err != nil {
		log.Fatal(err)
	}

	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	at, err := client.OpenUnverified(ctx, name)
	if err != nil {
		log.Fatal(err)
	}
	defer at.Close()
	keys, err := signature.ParsePublicKeys(public)
	if err != nil {
		log.Fatal(err)
	}
	identity, err := signature.ParseIdentity("registry.example.com/acme/etcd:v1")
	if err != nil {
		log.Fatal(err)
	}
	image, err := at.Entries(ctx)
	if err != nil {
		log.Fatal(err)
	}
	report, err := signature.VerifyOptions{Keys: keys, Identity: identity}.Verify(ctx, at.Attached(image), image)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Verified, report.By, len(report.Subjects[0].Findings))
	// Output: true image 2
}
