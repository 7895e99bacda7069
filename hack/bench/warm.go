package main

import (
	"context"
	"path/filepath"
)

// What opm takes to make the cache of the catalog, and buildah to make the image.
var opmAndBuildah = recorded{"opm serve --cache-only, buildah bud, as recorded", 3.3 + 0.424, 3.5 + 0.67, 107e6, 0.417}

// warm measures building the catalog's image again with a cache that knows it, beside building it with an empty one.
func (b *bench) warm(ctx context.Context) error {
	cache := filepath.Join(b.dir, "cache-of-layers")
	for _, compression := range []string{"gzip", "zstd"} {
		build := func(cold bool) command {
			c := b.build(b.in.catalog, compression)
			c.env = []string{"XDG_CACHE_HOME=" + cache}
			if cold {
				c.before = removing(cache, b.layout())
			}
			return c
		}
		s, err := median(ctx, b.runs, build(true), build(false))
		if err != nil {
			return err
		}
		b.add(row{What: "build again, " + compression, Input: b.catalogName(), Took: s[1], Ref: measuredReference("with an empty cache", s[0]), Target: target{Times: 10, RSS: 40e6}})
		b.add(row{What: "build again, " + compression, Input: b.catalogName(), Took: s[1], Ref: opmAndBuildah.here(b.gzip[b.in.catalog].CPU), Target: target{Times: 50}})
	}
	return removing(cache)()
}
