package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// series is a way to make images of catalogs that are published one after another.
type series struct {
	name  string
	flags []string
}

// The ways that are compared. What an eighth is promised of is the last.
var allSeries = []series{
	{"a layer a package, zstd, native cache", []string{"--compression", "zstd"}},
	{"a layer a package, zstd, no cache", []string{"--compression", "zstd", "--cache", "none"}},
	{"a layer a package, gzip, native cache", nil},
	{"a layer a package, gzip, no cache", []string{"--cache", "none"}},
	{"one gzip layer, no cache", []string{"--max-layers", "1", "--cache", "none"}},
	{"one gzip layer, opm's cache in another", []string{"--max-layers", "2", "--cache", "opm-pogreb"}},
}

// deltas measures how many bytes the catalogs take in a registry, pushed one after another: what is new with each.
func (b *bench) deltas(ctx context.Context) error {
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		fmt.Println("docker-registry is not installed: what is new with each catalog is LEFT OUT")
		return nil
	}
	catalogs := slices.SortedFunc(slices.Values(append([]string{b.in.catalog}, b.in.others...)), func(a, b string) int {
		return cmp.Or(cmp.Compare(minor(a), minor(b)), strings.Compare(a, b))
	})
	var grown [][]int64
	var names []string
	for i, s := range allSeries {
		of, err := b.push(ctx, program, filepath.Join(b.dir, fmt.Sprintf("deltas-%d", i)), s, catalogs)
		if err != nil {
			fmt.Printf("%s: LEFT OUT: %v\n", s.name, err)
			continue
		}
		grown, names = append(grown, of), append(names, s.name)
	}
	if len(grown) == 0 {
		return fmt.Errorf("no catalog could be pushed")
	}
	fmt.Println("\nkB that are new in the registry with each catalog, without the server:")
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	header := []string{"catalog", "packages"}
	for i := range names {
		header = append(header, fmt.Sprintf("(%d)", i+1))
	}
	fmt.Fprintln(tw, strings.Join(header, "\t")+"\t")
	sums := make([]int64, len(names))
	for c, catalog := range catalogs {
		entries, err := os.ReadDir(catalog)
		if err != nil {
			return err
		}
		line := []string{filepath.Base(catalog), strconv.Itoa(len(entries))}
		for i, of := range grown {
			sums[i] += of[c]
			line = append(line, kb(of[c]))
		}
		fmt.Fprintln(tw, strings.Join(line, "\t")+"\t")
	}
	line := []string{"all", ""}
	for _, n := range sums {
		line = append(line, kb(n))
	}
	fmt.Fprintln(tw, strings.Join(line, "\t")+"\t")
	if err := tw.Flush(); err != nil {
		return err
	}
	for i, name := range names {
		fmt.Printf("(%d) %s\n", i+1, name)
	}
	if len(names) == len(allSeries) && b.in.real {
		ratio := float64(sums[len(sums)-1]) / float64(sums[0])
		verdict := "ok"
		if ratio < 8 {
			verdict = "MISSED"
		}
		fmt.Printf("zstd with caches takes 1/%.1f of single gzip layers with opm's cache (promised: 1/8): %s\n", ratio, verdict)
	}
	return b.edited(ctx, program)
}

// minor is the number that a catalog's name ends with, as in v4.16.
func minor(catalog string) int {
	_, text, _ := strings.Cut(filepath.Base(catalog), ".")
	n, _ := strconv.Atoi(text)
	return n
}

// push builds images of the catalogs into a registry of their own and tells how many bytes are new with each.
func (b *bench) push(ctx context.Context, program, dir string, s series, catalogs []string) (grown []int64, err error) {
	host, stop, err := startRegistry(ctx, program, dir)
	if err != nil {
		return nil, err
	}
	defer stop()
	last := int64(0)
	for _, catalog := range catalogs {
		if err := b.pushOne(ctx, catalog, host+"/bench/catalog:"+filepath.Base(catalog), s.flags...); err != nil {
			return nil, err
		}
		now := blobBytes(dir)
		grown, last = append(grown, now-last), now
	}
	return grown, nil
}

func (b *bench) pushOne(ctx context.Context, catalog, name string, flags ...string) error {
	args := append([]string{"-q", "--use-http", "build", "catalog", catalog, "-t", name, "--push", "--server", "none"}, flags...)
	if out, err := exec.CommandContext(ctx, b.bindery, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, lastLine(string(out)))
	}
	return nil
}

// blobBytes is how many bytes of blobs a registry has, manifests and configurations included.
func blobBytes(dir string) int64 { return sizeOf(filepath.Join(dir, "docker/registry/v2/blobs")) }

// edited changes one package of the catalog after another and compares what is new with the layer of that package.
func (b *bench) edited(ctx context.Context, program string) error {
	catalog, dir := filepath.Join(b.dir, "edited", filepath.Base(b.in.catalog)), filepath.Join(b.dir, "deltas-edited")
	if err := os.MkdirAll(catalog, 0o755); err != nil {
		return err
	}
	if err := os.CopyFS(catalog, os.DirFS(b.in.catalog)); err != nil {
		return err
	}
	host, stop, err := startRegistry(ctx, program, dir)
	if err != nil {
		return err
	}
	defer stop()
	name := host + "/bench/edited:latest"
	if err := b.pushOne(ctx, catalog, name); err != nil {
		return err
	}
	packages, err := os.ReadDir(catalog)
	if err != nil {
		return err
	}
	var most float64
	var worst string
	for _, pkg := range packages {
		file := filepath.Join(catalog, pkg.Name(), "catalog.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			continue // of another name
		}
		if err := os.WriteFile(file, bytes.Replace(text, []byte("schema: olm.package\n"), []byte("schema: olm.package\n# edited\n"), 1), 0o644); err != nil {
			return err
		}
		before, account := blobBytes(dir), filepath.Join(b.dir, "account.json")
		if err := b.pushOne(ctx, catalog, name, "--metadata-file", account); err != nil {
			return err
		}
		var image struct {
			Layers []struct {
				Packages []string
				Bytes    int64
			}
		}
		if err := readJSON(account, &image); err != nil {
			return err
		}
		for _, l := range image.Layers {
			if slices.Contains(l.Packages, pkg.Name()) {
				if over := float64(blobBytes(dir)-before-20_000) / float64(l.Bytes); over > most {
					most, worst = over, pkg.Name()
				}
			}
		}
	}
	verdict := "ok"
	if most > 1.1 {
		verdict = "MISSED"
	}
	fmt.Printf("one of %d packages edited: at most %.2f of its layer and 20 kB are new (%s; promised: 1.1): %s\n", len(packages), most, worst, verdict)
	return nil
}

func kb(n int64) string { return fmt.Sprintf("%.0f", float64(n)/1e3) }
