// Command grow makes a large catalog out of real ones: their packages again and again, under other names.
//
//	go run ./hack/grow [-packages N] [-bundles N] TO FROM...
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"

	"github.com/operator-bindery/bindery/declcfg/growtest"
)

func main() {
	packages := flag.Int("packages", 0, "at least so many packages")
	bundles := flag.Int("bundles", 0, "at least so many bundles")
	flag.Parse()
	if err := run(*packages, *bundles, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(packages, bundles int, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: grow [-packages N] [-bundles N] TO FROM [FROM...]")
	}
	if err := os.Mkdir(args[0], 0o755); err != nil {
		return err
	}
	var from []fs.FS
	for _, dir := range args[1:] {
		from = append(from, os.DirFS(dir))
	}
	return growtest.Catalog(args[0], packages, bundles, from...)
}
