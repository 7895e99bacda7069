package build_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/layers"
)

// A catalog image for two platforms is built and pushed to a registry. A program built with "make build" has embedded
// servers and needs no WithServer.
func ExampleBuilder_Catalog() {
	ctx := context.Background()
	registry := testregistry.Start()
	defer registry.Close()

	b, err := build.New(build.WithPlatforms("linux/amd64", "linux/arm64"), build.WithServer(build.ServerNone))
	if err != nil {
		log.Fatal(err)
	}
	img, err := b.Catalog(ctx, os.DirFS("../testdata/fbc/mini"))
	if err != nil {
		log.Fatal(err)
	}
	defer img.Close()
	dest, err := images.BuiltIn().Parse("docker://" + registry.Host() + "/acme/catalog:v1")
	if err != nil {
		log.Fatal(err)
	}
	results, err := img.Copy(ctx, []transport.Destination{dest},
		images.CopyOptions{Registry: registries.Config{PlainHTTP: true, SkipTLSVerify: new(true)}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(img.Totals.Packages, "packages for", len(img.Platforms), "platforms in", len(results), "place")
	for _, l := range img.Layers[:2] {
		fmt.Println(l.Kind, l.Packages)
	}
	// Output:
	// 5 packages for 2 platforms in 1 place
	// packages [ecr-secret-operator]
	// packages [kairos-operator]
}

// A bundle image is built; its labels are the bundle's annotations.
func ExampleBuilder_Bundle() {
	b, err := build.New(build.WithPlatforms("linux/amd64"), build.WithCompression(layers.Zstd))
	if err != nil {
		log.Fatal(err)
	}
	img, err := b.Bundle(context.Background(), os.DirFS("../testdata/bundles/etcd/0.9.4"))
	if err != nil {
		log.Fatal(err)
	}
	defer img.Close()
	for _, l := range img.Layers {
		fmt.Println(l.Kind, l.MediaType)
	}
	// Output:
	// manifests application/vnd.oci.image.layer.v1.tar+zstd
	// metadata application/vnd.oci.image.layer.v1.tar+zstd
}

// Layers are cached in a directory: the second image is not packed again.
func ExampleWithCacheDir() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b, err := build.New(build.WithCacheDir(dir), build.WithServer(build.ServerNone))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		img, err := b.Catalog(context.Background(), os.DirFS("../testdata/fbc/mini"))
		if err != nil {
			log.Fatal(err)
		}
		known := 0
		for _, l := range img.Layers {
			if l.Remembered {
				known++
			}
		}
		fmt.Println(known, "of", len(img.Layers), "layers are known")
		if err := img.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 0 of 5 layers are known
	// 5 of 5 layers are known
}
