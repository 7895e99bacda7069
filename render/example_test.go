package render_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/render"
)

// A bundle image in a registry is rendered as a blob of a catalog. For a registry with TLS that this machine is
// configured for, the options can be empty.
func ExampleOptions_Render() {
	ctx := context.Background()
	registry := startRegistry()
	defer registry.Close()
	pushBundle(ctx, registry.Host()+"/acme/etcd:v0.9.4")
	client, err := images.NewClient(
		images.ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: registries.Config{PlainHTTP: true, SkipTLSVerify: new(true)}}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	blobs, err := render.Options{Images: client}.Render(ctx, registry.Host()+"/acme/etcd:v0.9.4")
	if err != nil {
		log.Fatal(err)
	}
	for blob, err := range blobs {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(blob.BlobSchema(), blob.BlobName(), len(blob.(*declcfg.Bundle).RelatedImages), "images")
	}
	// Output: olm.bundle etcdoperator.v0.9.4 2 images
}

// Files and directories need no options.
func ExampleOptions_Render_directory() {
	blobs, err := render.Options{}.Render(context.Background(), "../testdata/bundles/etcd/0.9.4")
	if err != nil {
		log.Fatal(err)
	}
	catalog, err := declcfg.Collect(blobs)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(catalog.Bundles[0].Package, catalog.Bundles[0].Name)
	// Output: etcd etcdoperator.v0.9.4
}

// pushBundle pushes the image of a bundle.
func pushBundle(ctx context.Context, name string) {
	work, err := images.NewWorkspace(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer work.Close()
	bundle, err := build.ReadBundle(os.DirFS("../testdata/bundles/etcd/0.9.4"))
	if err != nil {
		log.Fatal(err)
	}
	img, err := build.Bundle(ctx, bundle, build.Options{Dir: work.Dir()})
	if err != nil {
		log.Fatal(err)
	}
	defer img.Close()
	dest, err := images.BuiltIn().Parse("docker://" + name)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := img.Copy(ctx, []transport.Destination{dest},
		images.CopyOptions{Options: registries.Options{Registry: registries.Config{PlainHTTP: true, SkipTLSVerify: new(true)}}}); err != nil {
		log.Fatal(err)
	}
}
