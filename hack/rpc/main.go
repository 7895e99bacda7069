// Command rpc asks a running catalog server over gRPC, for the demonstration and the acceptance run.
//
//	rpc ADDRESS packages          the names of all packages
//	rpc ADDRESS bundles           one line for each bundle: package, channel, name, bytes of the answer
//	rpc ADDRESS replay FILE       makes the calls of a recording, and compares the answers
//	rpc ADDRESS digest            one digest of all packages and of all bundles by ListBundles and GetBundle
//	rpc ADDRESS list              a digest of the answer of ListBundles
//	rpc ADDRESS watch N DIGEST... N clients repeat ListBundles until SIGTERM; each digest must be one of these
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/operator-bindery/bindery/internal/api"
)

func main() {
	if err := ask(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func ask(args []string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("usage: rpc ADDRESS packages|bundles|replay FILE|digest|list|watch N DIGEST [DIGEST]")
	}
	dial := func() (*grpc.ClientConn, error) {
		return grpc.NewClient(args[0], grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	}
	conn, err := dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	if args[1] == "watch" && len(args) > 3 {
		return watch(context.Background(), conn, args[2], args[3:], dial, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client := api.NewRegistryClient(conn)
	switch {
	case args[1] == "packages":
		return packages(ctx, client, out)
	case args[1] == "bundles":
		return bundles(ctx, client, out)
	case args[1] == "replay" && len(args) == 3:
		return replay(ctx, conn, args[2], out)
	case args[1] == "digest" || args[1] == "list":
		of := digest
		if args[1] == "list" {
			of = list
		}
		got, err := of(ctx, client)
		if err == nil {
			fmt.Fprintln(out, got)
		}
		return err
	}
	return fmt.Errorf("unknown question %q", args[1:])
}

func packages(ctx context.Context, client api.RegistryClient, out io.Writer) error {
	stream, err := client.ListPackages(ctx, &api.ListPackageRequest{})
	if err != nil {
		return err
	}
	for {
		p, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, p.GetName())
	}
}

func bundles(ctx context.Context, client api.RegistryClient, out io.Writer) error {
	all, err := listBundles(ctx, client)
	for _, b := range all {
		fmt.Fprintln(out, b.GetPackageName(), b.GetChannelName(), b.GetCsvName(), proto.Size(b))
	}
	return err
}
