// Command catalogd prints what OLM v1's catalogd stores of a catalog image or directory, for the acceptance run.
//
//	catalogd IMAGE|DIR    one blob a line, as JSON with sorted keys
//
// An image is unpacked by the rules of catalogd, see olmv1/catalogdtest.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/olmv1/catalogdtest"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) != 1 {
		return errors.New("usage: catalogd IMAGE|DIR")
	}
	if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
		return (&catalogdtest.Unpacked{Root: args[0]}).Store(out)
	}
	dir, err := os.MkdirTemp("", "catalogd-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	img, err := client.Image(ctx, args[0], v1.Platform{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	u, err := catalogdtest.Catalog(ctx, img, dir)
	if err != nil {
		return err
	}
	return u.Store(out)
}
