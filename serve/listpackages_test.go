package serve_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/operator-bindery/bindery/internal/api"
)

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
