package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// opmCache verifies a cache in one of opm's formats: whether opm would accept it and, in images built by bindery,
// whether it is the one that the catalog gives.
func (c *imageCheck) opmCache(ctx context.Context, v *view, dir string, k *Cache) (err error) {
	configs := clean(c.image.Config.Config.Labels[build.ConfigsLabel])
	tree, err := c.image.Extract(ctx, []string{configs, dir}, images.ExtractOptions{Limits: c.o.Limits, Temp: c.o.Temp})
	if err != nil && (!errors.Is(err, images.ErrInvalid) || ctx.Err() != nil) {
		return err
	}
	if err != nil {
		c.badCache(k, dir, err.Error())
		return nil
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	k.State = CacheValid
	r, err := opmcache.Check(ctx, modeFS{tree, v, configs}, modeFS{tree, v, dir})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		c.badCache(k, dir, err.Error())
	case !r.Valid():
		c.badCache(k, dir, fmt.Sprintf("its digest is %.40q, but opm computes %q", r.Digest, r.Computed))
	}
	if !c.ours() {
		return nil
	}
	return c.opmTop(ctx, v, tree, k)
}

func (c *imageCheck) badCache(k *Cache, dir, why string) {
	k.State, k.Why = CacheInvalid, why
	c.report(aboutCache, dir, "%s", why)
}

// opmTop rebuilds the layer with the cache of all packages.
func (c *imageCheck) opmTop(ctx context.Context, v *view, tree *images.Tree, k *Cache) (err error) {
	at := slices.IndexFunc(c.of, func(f *facts) bool { return f.declared.kind == string(build.LayerCache) })
	if at < 0 {
		c.badCache(k, clean(k.Path), "no layer is annotated with it")
		return nil
	}
	all := map[string][]layers.Entry{}
	for _, f := range c.of {
		for pkg, names := range f.filesOf {
			for _, name := range names {
				n := v.find(name)
				if n == nil {
					return nil // reported already
				}
				all[pkg] = append(all[pkg], layers.Entry{Name: name, Mode: modeFS{tree, v, "."}.mode(name),
					Size: n.e.size, Open: func() (io.ReadCloser, error) {
						return tree.Open(name)
					}})
			}
		}
	}
	var packages []opmcache.Package
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		slices.SortFunc(all[pkg], func(a, b layers.Entry) int {
			return slices.Compare(strings.Split(a.Name, "/"), strings.Split(b.Name, "/"))
		})
		packages = append(packages, opmcache.Package{Name: pkg, Files: all[pkg]})
	}
	work, err := images.NewWorkspace(ctx, c.o.Temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	top := opmcache.JSONTop
	if k.Format == PogrebCache {
		top = opmcache.PogrebTop
	}
	l := layers.Layer{Name: "cache " + k.Path}
	if l.Entries, err = top(ctx, work.Dir(), packages); err == nil {
		got, derr := diffID(ctx, l)
		if err = derr; err == nil && got != c.image.Config.RootFS.DiffIDs[at] {
			c.badCache(k, clean(k.Path), "it differs from the one rebuilt from the catalog")
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		c.badCache(k, clean(k.Path), "it cannot be rebuilt: "+err.Error())
	}
	return nil
}
