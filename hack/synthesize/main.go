// Command synthesize makes a source for mirrors of whole catalogs: the storage of a docker registry in which every image
// that catalogs name is there, as a synthetic one, and the catalogs that name these images.
//
//	go run ./hack/synthesize -storage DIR -catalogs DIR [-host NAME] [-large N] [-divide N] CATALOG...
//
// An image depends on its name alone, so that an image which two catalogs name is the same one in both. The catalog of
// the directory CATALOG is written to a directory of the same name in the directory for catalogs. Hosts become one host.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/declcfg"
)

func main() {
	w := world{made: map[string]string{}}
	flag.StringVar(&w.storage, "storage", "", "the `directory` of the registry")
	catalogs := flag.String("catalogs", "", "the `directory` for the catalogs")
	flag.StringVar(&w.host, "host", "registry.example.com", "the host of all images")
	flag.IntVar(&w.large, "large", 200, "one of `N` images has a layer of 50 to 200 MiB")
	flag.Int64Var(&w.divide, "divide", 1, "divide the sizes of layers by `N`")
	flag.Parse()
	if err := run(&w, *catalogs, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Printf("%d images, %d blobs, %d bytes\n", len(w.made), w.blobs, w.bytes)
}

func run(w *world, to string, from []string) error {
	if w.storage == "" || to == "" || len(from) == 0 || w.large < 1 || w.divide < 1 {
		return errors.New("usage: synthesize -storage DIR -catalogs DIR CATALOG [CATALOG...]")
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, dir := range from {
		if err := w.catalog(context.Background(), dir, filepath.Join(to, filepath.Base(filepath.Clean(dir)))); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// catalog makes the images that a catalog names, and the catalog that names them.
func (w *world) catalog(ctx context.Context, from, to string) error {
	c, err := declcfg.Load(ctx, os.DirFS(from), declcfg.LoadOptions{})
	if err != nil {
		return err
	}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		if b.Image, err = w.image(b.Image); err != nil {
			return err
		}
		for n := range b.RelatedImages {
			if b.RelatedImages[n].Image, err = w.image(b.RelatedImages[n].Image); err != nil {
				return err
			}
		}
	}
	return declcfg.WriteFS(ctx, to, declcfg.FormatJSON, c.Blobs())
}
