package serve_test

import (
	"context"
	"log"
	"net"

	"github.com/operator-bindery/bindery/serve"
)

// A catalog directory is served until the context ends, here after one call.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	source, err := serve.Directory("../testdata/fbc/mini")
	if err != nil {
		log.Fatal(err)
	}
	o := serve.Options{Ready: func(addr net.Addr) {
		go func() {
			listPackages(ctx, addr)
			stop()
		}()
	}}
	if err := serve.Run(ctx, source, o); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ecr-secret-operator
	// kairos-operator
	// shipwright-operator
	// trident-operator
	// visionone-containersecurity
}
