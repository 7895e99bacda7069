package serve_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/operator-bindery/bindery/internal/api"
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

// listPackages asks a server for its packages.
func listPackages(ctx context.Context, addr net.Addr) {
	conn, err := grpc.NewClient(addr.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	packages, err := api.NewRegistryClient(conn).ListPackages(ctx, &api.ListPackageRequest{})
	if err != nil {
		log.Fatal(err)
	}
	for {
		p, err := packages.Recv()
		if err != nil {
			return // the end
		}
		fmt.Println(p.Name)
	}
}
