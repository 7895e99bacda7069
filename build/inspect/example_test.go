package inspect_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/inspect"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/transport"
)

// An image is rebuilt from its content and compared.
func ExampleExamine() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	content := os.DirFS("../../testdata/fbc/mini")
	files, err := build.ReadCatalog(ctx, content, build.ReadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	img, err := build.Catalog(ctx, build.CatalogInput{FS: content, Files: files}, build.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer img.Close()
	name := "oci:" + filepath.Join(dir, "catalog")
	dest, err := images.BuiltIn().Parse(name)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := img.Copy(ctx, []transport.Destination{dest}, images.CopyOptions{}); err != nil {
		log.Fatal(err)
	}
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	src, err := client.Open(ctx, name)
	if err != nil {
		log.Fatal(err)
	}
	defer src.Close()
	survey, err := src.Survey(ctx)
	if err != nil {
		log.Fatal(err)
	}
	report, err := inspect.Examine(ctx, survey, inspect.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Kind, "of", len(report.Packages), "packages, same:", report.Proof.Same)
	// Output: catalog of 5 packages, same: true
}
