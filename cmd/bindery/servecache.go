package main

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// The values of --cache.
const (
	cacheNative = "native"
	cacheJSON   = "opm-json"
	cachePogreb = "opm-pogreb"
	cacheNone   = "none"
)

var cacheKinds = []string{cacheNative, cacheJSON, cachePogreb, cacheNone}

// serveCacheFlag chooses the serve caches of an image.
func serveCacheFlag(group string) cli.Flag {
	return &cli.StringSliceFlag{Name: "cache", Category: group, DefaultText: cacheNative,
		Usage: "`KIND` of serve cache in the image, repeatable (" + strings.Join(cacheKinds, "|") + ")"}
}

// serveCaches reads [serveCacheFlag]: what was asked for, each once and in one order.
func serveCaches(c *cli.Context) ([]string, error) {
	given, err := cmdline.List(c.StringSlice("cache"))
	if err != nil {
		return nil, err
	}
	if len(given) == 0 {
		return []string{cacheNative}, nil
	}
	var kinds []string
	for _, k := range cacheKinds {
		if slices.Contains(given, k) {
			kinds = append(kinds, k)
		}
	}
	for _, g := range given {
		if !slices.Contains(cacheKinds, g) {
			return nil, cmdline.Usagef("invalid --cache value %q, expected (%s)", g, strings.Join(cacheKinds, "|"))
		}
	}
	switch {
	case len(kinds) > 1 && slices.Contains(kinds, cacheNone):
		return nil, cmdline.Usagef("--cache none goes with no other --cache")
	case slices.Contains(kinds, cacheJSON) && slices.Contains(kinds, cachePogreb):
		return nil, cmdline.Usagef("--cache %s and --cache %s are for the same directory, where opm takes one of them", cacheJSON, cachePogreb)
	}
	return kinds, nil
}

// setCaches makes the caches that were asked for part of the image.
func (p *program) setCaches(c *cli.Context, o *build.Options) error {
	kinds, err := serveCaches(c)
	if err != nil {
		return err
	}
	if s := c.String("server"); kinds[0] != cacheNative && kinds[0] != cacheNone && o.Base == nil && (s == "" || s == "embedded") {
		p.log.Warn("the server in the image does not read --cache " + kinds[0] + " and builds its own cache at every start: add --cache native, or have the image served by opm")
	}
	for _, k := range kinds {
		switch k {
		case cacheNative:
			o.Cache = p.nativeCache
		case cacheJSON:
			o.Extra = append(o.Extra, build.ExtraCache{
				ID: opmcache.JSONID, Dir: opmcache.Dir, Top: opmTop(opmcache.JSONTop),
				Package: func(c build.PackageCatalog) ([]layers.Entry, error) { return opmcache.JSONEntries(c.Catalog) },
			})
		case cachePogreb:
			o.Extra = append(o.Extra, build.ExtraCache{ID: opmcache.PogrebID, Dir: opmcache.Dir, Top: opmTop(opmcache.PogrebTop)})
		}
	}
	return nil
}

// opmTop fits a function of package opmcache into [build.ExtraCache].
func opmTop(top func(context.Context, string, []opmcache.Package) ([]layers.Entry, error)) func(context.Context, build.WholeCatalog) ([]layers.Entry, error) {
	return func(ctx context.Context, w build.WholeCatalog) ([]layers.Entry, error) {
		all := make([]opmcache.Package, len(w.Packages))
		for i, p := range w.Packages {
			all[i] = opmcache.Package{Name: p.Package, Files: p.Files}
		}
		return top(ctx, w.Dir, all)
	}
}
