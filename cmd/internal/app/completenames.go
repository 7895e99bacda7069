package app

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/docs/reference/schemas"
	"github.com/operator-bindery/bindery/render"
)

// completionTime bounds the reading of a catalog for the completion of a name: a shell waits for it.
const completionTime = 2 * time.Second

// catalogNames returns the names in a catalog on the local disk, sorted: a directory or a database. Images are not
// read, and what is read before the time is over is used. Invalid catalogs have names too.
func catalogNames(p *option.Session, ctx context.Context) cmdline.Names {
	return func(kind, catalog string) []string {
		switch kind {
		case cmdline.SchemaName:
			return schemas.Names()
		case cmdline.ImageName:
			var prefixes []string
			for _, t := range program.Transports {
				prefixes = append(prefixes, t.Prefix())
			}
			return prefixes
		}
		if _, err := os.Stat(catalog); err != nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, completionTime)
		defer cancel()
		found := map[string]bool{}
		blobs, err := render.Options{Allow: option.CatalogKinds(), Skeleton: true}.Render(ctx, catalog)
		if err != nil {
			return nil
		}
		for blob, err := range blobs {
			if err != nil {
				break
			}
			for _, name := range blobNames(kind, blob) {
				found[name] = true
			}
		}
		return slices.Sorted(maps.Keys(found))
	}
}

// anyLevel is the kind of names of packages, of their channels, and of bundles in these.
const anyLevel = "PACKAGE[/CHANNEL[/BUNDLE]]"

// blobNames returns the names of a kind that a blob gives.
func blobNames(kind string, blob declcfg.Blob) []string {
	switch b := blob.(type) {
	case *declcfg.Package:
		if kind == "PACKAGE" || kind == anyLevel {
			return []string{b.Name}
		}
	case *declcfg.Channel:
		switch kind {
		case "CHANNEL":
			return []string{b.Name}
		case "PACKAGE/CHANNEL":
			return []string{b.Package + "/" + b.Name}
		case anyLevel:
			names := []string{b.Package + "/" + b.Name}
			for _, e := range b.Entries {
				names = append(names, b.Package+"/"+b.Name+"/"+e.Name)
			}
			return names
		}
	case *declcfg.Bundle:
		if kind == "BUNDLE" {
			return []string{b.Name}
		}
	}
	return nil
}
