package referrers_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
)

// Attach a document to an image in a layout, and list what is attached to the image.
func ExampleAttach() {
	ctx := context.Background()
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
	dest, err := images.BuiltIn().Parse("oci:" + filepath.Join(dir, "layout") + ":v1")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := images.Copy(ctx, img.Store(), img.Top(), []transport.Destination{dest}, images.CopyOptions{}); err != nil {
		log.Fatal(err)
	}

	w, err := images.CopyOptions{}.OpenWriter(ctx, dest)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Discard()
	if _, err := referrers.Attach(ctx, w, w.Image.Top,
		referrers.Artifact{Type: "text/markdown", Content: []byte("# What is new\n")}); err != nil {
		log.Fatal(err)
	}
	if err := w.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	at, err := client.Open(ctx, dest.String())
	if err != nil {
		log.Fatal(err)
	}
	defer at.Close()
	listed, problems, err := referrers.List(ctx, at, at.Top.Digest, store.Limits{}.NewBudget())
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range listed {
		fmt.Println(r.ArtifactType, len(r.Layers), len(problems))
	}
	// Output: text/markdown 1 0
}
