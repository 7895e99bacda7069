package images_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"os"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
)

// plainHTTP is for registries in the memory of an example; the zero value of [registries.Config] is for real ones.
var plainHTTP = registries.Config{PlainHTTP: true, SkipTLSVerify: new(true)}

// An image goes to a name in a registry.
func ExampleCopy_push() {
	registry := startRegistry()
	defer registry.Close()
	ctx, name := context.Background(), registry.Host()+"/acme/etcd:v0.9.4"

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
	results, err := img.Copy(ctx, []transport.Destination{dest}, images.CopyOptions{Options: registries.Options{Registry: plainHTTP}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(results[0].Digest)
	// Output:
	// sha256:a09b8c5ba40248e8c499db94c58ed6d5a6bef87bb85eef8b61e073d95276fc9d
}

// The wanted files of an image are read without unpacking it.
func ExampleImage_Extract() {
	registry := startRegistry()
	defer registry.Close()
	ctx, name := context.Background(), registry.Host()+"/acme/etcd:v0.9.4"
	push(ctx, name)

	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: plainHTTP}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	img, err := client.Image(ctx, name, v1.Platform{})
	if err != nil {
		log.Fatal(err)
	}
	defer img.Close()
	files, err := img.Extract(ctx, []string{"metadata"}, images.ExtractOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer files.Close()
	found, err := fs.Glob(files, "metadata/*")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found)
	// Output:
	// [metadata/annotations.yaml]
}

// An image of a registry is copied to a layout on the disk and to another name at once: all of it or nothing.
func ExampleCopy() {
	registry := startRegistry()
	defer registry.Close()
	ctx, name := context.Background(), registry.Host()+"/acme/etcd:v0.9.4"
	push(ctx, name)
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: plainHTTP}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	src, err := client.Open(ctx, name)
	if err != nil {
		log.Fatal(err)
	}
	defer src.Close()
	var dests []transport.Destination
	for _, text := range []string{"oci:" + dir + "/etcd:v0.9.4",
		"docker://" + registry.Host() + "/mirror/etcd:v0.9.4"} {
		dest, err := images.BuiltIn().Parse(text)
		if err != nil {
			log.Fatal(err)
		}
		dests = append(dests, dest)
	}
	results, err := images.Copy(ctx, src, src.Top, dests, images.CopyOptions{Options: registries.Options{Registry: plainHTTP}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(results), results[0].Digest == results[1].Digest)
	// Output:
	// 2 true
}

// push puts a bundle image into a registry.
func push(ctx context.Context, name string) {
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
	if _, err := img.Copy(ctx, []transport.Destination{dest}, images.CopyOptions{Options: registries.Options{Registry: plainHTTP}}); err != nil {
		log.Fatal(err)
	}
}
