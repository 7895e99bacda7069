package referrers_test

import (
	"context"
	"fmt"
	"log"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/internal/testregistry"
)

// An SBOM is attached to an image of a registry, and found there.
func Example() {
	registry := testregistry.Start()
	defer registry.Close()
	name := pushed(registry)
	ctx := context.Background()

	at, err := images.Parse("docker://" + name)
	if err != nil {
		log.Fatal(err)
	}
	access := images.Registry{SkipTLSVerify: new(true), PlainHTTP: true}
	w, err := images.OpenWriter(ctx, at, images.CopyOptions{Registry: access})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Discard()
	_, err = referrers.Attach(ctx, w, w.Image.Top, referrers.Artifact{Type: "application/spdx+json",
		Content: []byte("{}")})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	client, err := images.NewClient(images.ClientOptions{Registry: access})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	r, err := client.Repository(ctx, name)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	found, problems, err := referrers.List(ctx, r, r.Image.Top.Digest, referrers.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(problems), "problems")
	for _, f := range found {
		fmt.Println(f.ArtifactType, f.Layers[0].Size, "bytes")
	}
	// Output:
	// 0 problems
	// application/spdx+json 2 bytes
}

// pushed stores an image without layers in a registry and returns its name.
func pushed(r *testregistry.Registry) string {
	config := r.AddBlob([]byte("{}"))
	r.AddManifest("acme/app", "v1", v1.MediaTypeImageManifest, fmt.Appendf(nil,
		`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":2},"layers":[]}`,
		v1.MediaTypeImageManifest, v1.MediaTypeImageConfig, config))
	return r.Host() + "/acme/app:v1"
}
