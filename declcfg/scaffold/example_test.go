package scaffold_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/scaffold"
)

// The blob of a new package.
func ExamplePackage() {
	p, err := scaffold.PackageOptions{DefaultChannel: "stable"}.NewPackage(context.Background(), "etcd")
	if err != nil {
		log.Fatal(err)
	}
	if err := (&declcfg.Catalog{Packages: []declcfg.Package{*p}}).Write(os.Stdout, declcfg.FormatYAML); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ---
	// defaultChannel: stable
	// name: etcd
	// schema: olm.package
}

// The Dockerfile of a catalog directory.
func ExampleDockerfile_Text() {
	text, err := scaffold.Dockerfile{Dir: "catalog", BaseImage: "scratch", BuilderImage: scaffold.DefaultImage}.Text()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(text)
	// Output:
	// # The builder image is expected to contain
	// # /bin/opm (with serve subcommand)
	// FROM quay.io/operator-framework/opm:latest as builder
	//
	// # Copy FBC root into image at /configs and pre-populate serve cache
	// ADD catalog /configs
	// RUN ["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]
	//
	// FROM scratch
	// # OLMv0 CatalogSources that use binary-less images must set:
	// # spec:
	// #   grpcPodConfig:
	// #     extractContent:
	// #       catalogDir: /configs
	// #       cacheDir: /tmp/cache
	//
	// COPY --from=builder /configs /configs
	// COPY --from=builder /tmp/cache /tmp/cache
	//
	// # Set FBC-specific label for the location of the FBC root directory
	// # in the image
	// LABEL operators.operatorframework.io.index.configs.v1=/configs
}
