package build_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
)

// A catalog image for two platforms is built and pushed to a registry. It has no server; a program built with
// "make build" can choose build.ServerEmbedded.
func ExampleCatalog() {
	ctx := context.Background()
	registry := startRegistry()
	defer registry.Close()
	work, err := images.NewWorkspace(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer work.Close()

	catalog := os.DirFS("../testdata/fbc/mini")
	files, err := build.ReadCatalog(ctx, catalog, build.ReadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	o := build.Options{Dir: work.Dir()}
	platforms := []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
	if err := o.SetServer(build.ServerNone, platforms, &build.Embedded{}); err != nil {
		log.Fatal(err)
	}
	img, err := build.Catalog(ctx, build.CatalogInput{FS: catalog, Files: files}, o)
	if err != nil {
		log.Fatal(err)
	}
	defer img.Close()

	dest, err := images.BuiltIn().Parse("docker://" + registry.Host() + "/acme/catalog:v1")
	if err != nil {
		log.Fatal(err)
	}
	results, err := img.Copy(ctx, []transport.Destination{dest},
		images.CopyOptions{Options: registries.Options{Registry: registries.Config{PlainHTTP: true, SkipTLSVerify: new(true)}}})
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

// A bundle image is built twice; its labels are the bundle's annotations. The layers are cached in a directory, and
// what is recorded about them is sealed with a secret: the second image is not packed again.
func ExampleBundle() {
	ctx := context.Background()
	work, err := images.NewWorkspace(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer work.Close()
	blobs, err := blobcache.Open(filepath.Join(work.Dir(), "cache"), blobcache.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer blobs.Close()
	cache, err := build.NewCache(blobs, []byte("a secret that is not in the cache"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()

	bundle, err := build.ReadBundle(os.DirFS("../testdata/bundles/etcd/0.9.4"))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		img, err := build.Bundle(ctx, bundle,
			build.Options{Dir: work.Dir(), Compression: "zstd", Cache: cache})
		if err != nil {
			log.Fatal(err)
		}
		for _, l := range img.Layers {
			fmt.Println(l.Kind, l.MediaType, l.Remembered)
		}
		if err := img.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// manifests application/vnd.oci.image.layer.v1.tar+zstd false
	// metadata application/vnd.oci.image.layer.v1.tar+zstd false
	// manifests application/vnd.oci.image.layer.v1.tar+zstd true
	// metadata application/vnd.oci.image.layer.v1.tar+zstd true
}
