package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// opm's recorded cost of building the catalog's cache: 3.0 to 3.7 seconds of CPU.
var opmCache = recorded{"opm serve --cache-only, as recorded", 2.70, 3.3, 104e6, 0.417}

// warm measures rebuilding the catalog's image with a complete cache, compared with an empty cache and with opm and
// buildah, which build the cache and an image of catalog and cache. The server is omitted in the latter comparison, as
// it comes from the base image there.
func (b *bench) warm(ctx context.Context) error {
	peer, name, err := b.opmAndBuildah(ctx)
	if err != nil {
		return err
	}
	cache := filepath.Join(b.dir, "cache-of-layers")
	for _, compression := range []string{"gzip", "zstd"} {
		for _, kind := range []struct {
			what  string
			flags []string
			dry   bool
		}{
			{"build again, " + compression, nil, false},
			{"build again, no server, " + compression, []string{"--server", "none"}, false},
			{"build again, no server, nothing to write, " + compression, []string{"--server", "none", "--dry-run"},
				true},
		} {
			build := func(cold bool) command {
				c := b.build(b.in.catalog, compression, kind.flags...)
				c.args = without(c.args, "--no-cache")
				if kind.dry {
					c.args = without(without(c.args, "--output"), "oci:"+b.layout()+":v1")
				}
				c.env = []string{"SEAL=what-seals-the-records", "BINDERY_CACHE_KEY=env://SEAL", "XDG_CACHE_HOME=" + cache}
				if cold {
					c.before = removing(cache, b.layout())
				}
				return c
			}
			commands := []command{build(true), build(false)}
			if peer != nil && kind.flags != nil {
				commands = append(commands, *peer)
			}
			s, err := median(ctx, b.runs, commands...)
			if err != nil {
				return err
			}
			b.add(row{What: kind.what, Input: b.catalogName(), Took: s[1],
				Ref: measuredReference("with an empty cache", s[0]), Target: target{Times: 10, RSS: 40e6}})
			if kind.flags == nil {
				continue
			}
			made := buildahBud.here(b.gzip[b.in.catalog].CPU)
			if peer != nil {
				made = measuredReference(name, s[2])
			}
			b.add(row{What: kind.what, Input: b.catalogName(), Took: s[1],
				Ref: opmCache.here(b.gzip[b.in.catalog].CPU).and(made), Target: target{Times: 50}})
		}
	}
	if err := removing(cache)(); err != nil {
		return err
	}
	return b.pushedAgain(ctx)
}

// pushedAgain measures building the whole image and pushing it to a registry that has it, as a pipeline does when
// nothing has changed, compared with an empty cache and an empty repository.
func (b *bench) pushedAgain(ctx context.Context) error {
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		fmt.Println("docker-registry is not installed: pushing again is LEFT OUT")
		return nil
	}
	host, stop, err := startRegistry(ctx, program, filepath.Join(b.dir, "warm-registry"))
	if err != nil {
		return err
	}
	defer stop()
	cache := filepath.Join(b.dir, "cache-of-pushed")
	repositories := 0
	for _, compression := range []string{"gzip", "zstd"} {
		push := func(cold bool) command {
			args := []string{b.bindery, "-q", "--use-http", "build", "catalog", b.in.catalog, "--push", "--compression",
				compression, "-t", ""}
			name := func() string { return fmt.Sprintf("%s/bench/repository%d:v1", host, repositories) }
			c := command{args: args, env: []string{"SEAL=what-seals-the-records", "BINDERY_CACHE_KEY=env://SEAL", "XDG_CACHE_HOME=" + cache}}
			c.before = func() error {
				if cold {
					repositories++
				}
				args[len(args)-1] = name()
				if cold {
					return removing(cache)()
				}
				return nil
			}
			return c
		}
		s, err := median(ctx, b.runs, push(true), push(false))
		if err != nil {
			return err
		}
		b.add(row{What: "build and push again, " + compression, Input: b.catalogName(), Took: s[1],
			Ref:    measuredReference("with an empty cache to an empty repository", s[0]),
			Target: target{Times: 10, RSS: 40e6}})
		made := opmCache.here(b.gzip[b.in.catalog].CPU).and(buildahBud.here(b.gzip[b.in.catalog].CPU))
		b.add(row{What: "build and push again, " + compression, Input: b.catalogName(), Took: s[1], Ref: made,
			Target: target{Times: 50}})
	}
	return nil
}

// opmAndBuildah returns the command for buildah bud with the catalog and opm's cache of it, which is built here; nil if
// buildah does not work here.
func (b *bench) opmAndBuildah(ctx context.Context) (*command, string, error) {
	tree := filepath.Join(b.dir, "catalog-and-cache")
	c := b.build(b.in.catalog, "gzip", "--server", "none", "--cache", "opm-pogreb")
	if _, err := c.once(ctx); err != nil {
		return nil, "", err
	}
	if err := b.unpackLayout(tree); err != nil {
		return nil, "", fmt.Errorf("unpacking the image for buildah: %w", err)
	}
	if err := os.RemoveAll(b.layout()); err != nil {
		return nil, "", err
	}
	peers, names, err := b.peers(ctx, "", tree)
	if err != nil || len(peers) == 0 || names[0] != bud {
		return nil, "", err
	}
	return &peers[0], bud, nil
}

// and adds two references.
func (r *reference) and(other *reference) *reference {
	return &reference{Name: r.Name + ", and " + other.Name, By: r.By + ", " + other.By, Wall: r.Wall + other.Wall,
		Least: r.Least + other.Least,
		CPU:   r.CPU + other.CPU, RSS: max(r.RSS, other.RSS)}
}

func without(args []string, unwanted string) (kept []string) {
	for _, a := range args {
		if a != unwanted {
			kept = append(kept, a)
		}
	}
	return kept
}
