package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// opm's recorded cost of adding 50 small bundles to an index from a local registry: in one command, and in one command
// each.
var (
	opmAdd     = recorded{"opm registry add, as recorded", 2.07, 1.66, 105e6, 0.417}
	opmAddEach = recorded{"50 times opm registry add, as recorded", 7.96, 8.06, 76e6, 0.417}
)

// addedPackages are packages of the recorded images with 50 bundles in total, which can all be added at once.
var addedPackages = []string{"etcd", "silicom-sts-operator", "skupper-operator", "pelorus-operator", "cockroachdb",
	"file-integrity-console-plugin"}

// additions measures adding bundles from a local registry to an index: to a database and to a directory.
func (b *bench) additions(ctx context.Context) error {
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		fmt.Println("docker-registry is not installed: adding bundles from a registry is LEFT OUT")
		return nil
	}
	host, stop, err := startRegistry(ctx, program, filepath.Join(b.dir, "registry-of-additions"))
	if err != nil {
		return err
	}
	defer stop()
	refs, err := b.pushBundles(ctx, host)
	if err != nil {
		return err
	}
	if len(refs) != 50 {
		return fmt.Errorf("%d bundle images were found, not 50", len(refs))
	}

	work, cache := filepath.Join(b.dir, "additions"), filepath.Join(b.dir, "cache-of-additions")
	add := func(to string, cold, each bool) command {
		list := strings.Join(refs, ",")
		args := []string{b.bindery, "-q", "registry", "add", "--use-http", "-d", to, "-b", list}
		if each {
			// A shell loop runs one command per bundle, in the order of the packages.
			args = []string{"sh", "-ec", `for b in $1; do "$0" -q registry add --use-http -d "$2" -b "$b"; done`,
				b.bindery, strings.Join(refs, " "), to}
		}
		return command{args: args, dir: work, env: []string{"SEAL=what-seals-the-records", "BINDERY_CACHE_KEY=env://SEAL", "XDG_CACHE_HOME=" + cache, "TMPDIR=" + b.dir},
			before: func() error {
				err := removing(work)()
				if cold {
					err = errors.Join(err, removing(cache)())
				}
				if err != nil {
					return err
				}
				if err := os.MkdirAll(work, 0o755); err != nil {
					return err
				}
				if to == "catalog" {
					return os.Mkdir(filepath.Join(work, to), 0o755)
				}
				return nil
			},
			after: func() error {
				if left, err := os.ReadDir(work); err != nil || len(left) != 1 {
					return fmt.Errorf("in the working directory there are %v, %w", left, err)
				}
				return nil
			},
		}
	}
	s, err := median(ctx, b.runs, add("index.db", true, false), add("index.db", false, false),
		add("catalog", true, false), add("catalog", false, false))
	if err != nil {
		return err
	}
	ref := opmAdd.here(b.gzip[b.in.catalog].CPU)
	for i, c := range []struct {
		what  string
		times float64
	}{
		{"registry add to a database, cold cache", 6},
		{"registry add to a database, warm cache", 10},
		{"registry add to a directory, cold cache", 6},
		{"registry add to a directory, warm cache", 10},
	} {
		b.add(row{What: c.what, Input: "50 bundle images", Took: s[i], Ref: ref, Target: target{Times: c.times}})
	}
	each, err := median(ctx, min(b.runs, 3), add("index.db", true, true))
	if err != nil {
		return err
	}
	b.add(row{What: "50 times registry add to a database, cold cache", Input: "50 bundle images", Took: each[0],
		Ref: opmAddEach.here(b.gzip[b.in.catalog].CPU)})
	return nil
}

// pushBundles builds and pushes images of the recorded bundles of [addedPackages], sorted by version, so that they can
// be added one by one.
func (b *bench) pushBundles(ctx context.Context, host string) (refs []string, err error) {
	recorded, err := b.recorded(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "added-bundles")
	// The collection has its files decompressed, under their names.
	if _, err := untar(filepath.Join(recorded, "bundles-all-dev-packages.tar.zst"), dir); err != nil {
		return nil, err
	}
	list, err := os.ReadFile(filepath.Join(recorded, "images-dev.tsv"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		at, ok := strings.CutPrefix(fields[len(fields)-1], "COMMUNITY/operators/")
		if !ok || !slices.Contains(addedPackages, path.Dir(at)) {
			continue
		}
		ref := host + strings.TrimPrefix(fields[0], "127.0.0.1:5056")
		build := exec.CommandContext(ctx, b.bindery, "-q", "--use-http", "build", "bundle", filepath.Join(dir, at),
			"--skip-validation", "-t", ref, "--push")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building %s: %w: %s", ref, err, out)
		}
		refs = append(refs, ref)
	}
	return refs, nil
}
