package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// series is one way to build images of successively published catalogs.
type series struct {
	name  string
	flags []string
}

// The compared ways. The first must add at most an eighth of the bytes of the one with opm's cache in one gzip layer,
// which a build with opm and buildah publishes.
var allSeries = []series{
	{"a layer a package, zstd, native cache", []string{"--compression", "zstd"}},
	{"a layer a package, zstd, no cache", []string{"--compression", "zstd", "--cache", "none"}},
	{"a layer a package, zstd, opm-json", []string{"--compression", "zstd", "--cache", "opm-json"}},
	{"a layer a package, zstd, opm-pogreb", []string{"--compression", "zstd", "--cache", "opm-pogreb"}},
	{"a layer a package, gzip, native cache", nil},
	{"a layer a package, gzip, no cache", []string{"--cache", "none"}},
	{"one gzip layer, no cache", []string{"--max-layers", "1", "--cache", "none"}},
	{singleJSON, []string{"--max-layers", "2", "--cache", "opm-json"}},
	{singlePogreb, []string{"--max-layers", "2", "--cache", "opm-pogreb"}},
}

const (
	singleJSON   = "one gzip layer, opm's json cache beside it"
	singlePogreb = "one gzip layer, opm's pogreb cache beside it"
)

// pushed is what one series sent.
type pushed struct {
	series
	grown []int64 // new bytes in the registry for each catalog
	sent  int64   // bytes of blobs and manifests sent, as reported by the program
	cpu   float64 // seconds
}

func (p pushed) sum() (n int64) {
	for _, g := range p.grown {
		n += g
	}
	return n
}

// deltas measures how many new bytes each of the successively pushed catalogs adds to a registry.
func (b *bench) deltas(ctx context.Context) error {
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		fmt.Println("docker-registry is not installed: what is new with each catalog is LEFT OUT")
		return nil
	}
	catalogs := slices.SortedFunc(slices.Values(append([]string{b.in.catalog}, b.in.others...)), func(a, b string) int {
		return cmp.Or(cmp.Compare(minor(a), minor(b)), strings.Compare(a, b))
	})
	var all []pushed
	for i, s := range allSeries {
		p, err := b.push(ctx, program, filepath.Join(b.dir, fmt.Sprintf("deltas-%d", i)), s, catalogs)
		if err != nil {
			fmt.Printf("%s: LEFT OUT: %v\n", s.name, err)
			continue
		}
		fmt.Fprintf(os.Stderr, "measured: %s\n", s.name)
		all = append(all, p)
	}
	if len(all) == 0 {
		return fmt.Errorf("no catalog could be pushed")
	}
	if err := printDeltas(os.Stdout, catalogs, all); err != nil {
		return err
	}
	judgeDeltas(os.Stdout, all)
	return b.edited(ctx, program)
}

func printDeltas(w io.Writer, catalogs []string, all []pushed) error {
	fmt.Fprintln(w, "\nkB that are new in the registry with each catalog, without the server:")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	header, sums, sent, cpu := "catalog\tpackages\t", "all\t\t", "sent\t\t", "CPU s\t\t"
	for i, p := range all {
		header += fmt.Sprintf("(%d)\t", i+1)
		sums += kb(p.sum()) + "\t"
		sent += kb(p.sent) + "\t"
		cpu += fmt.Sprintf("%.1f\t", p.cpu)
	}
	fmt.Fprintln(tw, header)
	for c, catalog := range catalogs {
		entries, err := os.ReadDir(catalog)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s\t%d\t", filepath.Base(catalog), len(entries))
		for _, p := range all {
			line += kb(p.grown[c]) + "\t"
		}
		fmt.Fprintln(tw, line)
	}
	fmt.Fprintf(tw, "%s\n%s\n%s\n", sums, sent, cpu)
	if err := tw.Flush(); err != nil {
		return err
	}
	for i, p := range all {
		fmt.Fprintf(w, "(%d) %s\n", i+1, p.name)
	}
	fmt.Fprintln(w,
		"CPU s are those of the program, all catalogs together, with a cache of layers that was empty at first.")
	return nil
}

// judgeDeltas compares zstd with one layer per package, including the cache, with the images of opm and buildah.
func judgeDeltas(w io.Writer, all []pushed) {
	for _, single := range []string{singlePogreb, singleJSON} {
		i := slices.IndexFunc(all, func(p pushed) bool { return p.name == single })
		if i < 0 {
			fmt.Fprintf(w, "%s: not measured\n", single)
			continue
		}
		for _, p := range all {
			if !slices.Contains(p.flags, "zstd") || slices.Contains(p.flags, "none") {
				continue
			}
			ratio, verdict := float64(all[i].sum())/float64(p.sum()), "ok"
			if ratio < 8 {
				verdict = "MISSED"
			}
			fmt.Fprintf(w, "%s takes 1/%.1f of %s (promised: 1/8): %s\n", p.name, ratio, single, verdict)
		}
	}
}

// minor returns the number at the end of a catalog's name, as in v4.16.
func minor(catalog string) int {
	_, text, _ := strings.Cut(filepath.Base(catalog), ".")
	n, _ := strconv.Atoi(text)
	return n
}

// push builds images of the catalogs into a separate registry, with a separate layer cache.
func (b *bench) push(ctx context.Context, program, dir string, s series, catalogs []string) (pushed, error) {
	p := pushed{series: s}
	host, stop, err := startRegistry(ctx, program, dir)
	if err != nil {
		return p, err
	}
	defer stop()
	last := int64(0)
	for _, catalog := range catalogs {
		took, account, err := b.pushOne(ctx, catalog, host+"/bench/catalog:"+filepath.Base(catalog), dir+"-cache",
			s.flags...)
		if err != nil {
			return p, err
		}
		now := blobBytes(dir)
		p.grown, last = append(p.grown, now-last), now
		p.sent += account.Traffic.Pushed.Bytes + account.Traffic.Manifests.Bytes
		p.cpu += took.CPU
	}
	return p, nil
}

// account is the content of --metadata-file.
type account struct {
	Layers []struct {
		Packages []string
		Bytes    int64
	}
	Traffic struct {
		Pushed, Manifests struct{ Bytes int64 }
	}
}

func (b *bench) pushOne(ctx context.Context, catalog, name, cache string, flags ...string) (sample, account, error) {
	file := filepath.Join(b.dir, "account.json")
	args := append([]string{b.bindery, "-q", "--use-http", "build", "catalog", catalog, "-t", name, "--push",
		"--server", "none", "--metadata-file", file}, flags...)
	var a account
	s, err := command{args: args, env: []string{"SEAL=what-seals-the-records", "BINDERY_CACHE_KEY=env://SEAL", "XDG_CACHE_HOME=" + cache}}.once(ctx)
	if err != nil {
		return s, a, err
	}
	return s, a, readJSON(file, &a)
}

// blobBytes returns the size of the blobs in a registry, including manifests and configurations.
func blobBytes(dir string) int64 { return sizeOf(filepath.Join(dir, "docker/registry/v2/blobs")) }

// edited changes one package of the catalog after another and compares the new bytes with that package's layer.
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
	if _, _, err := b.pushOne(ctx, catalog, name, dir+"-cache"); err != nil {
		return err
	}
	packages, err := os.ReadDir(catalog)
	if err != nil {
		return err
	}
	var most float64
	var worst string
	edited := 0
	for _, pkg := range packages {
		file := filepath.Join(catalog, pkg.Name(), "catalog.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			continue // of another name
		}
		changed := bytes.Replace(text, []byte("schema: olm.package\n"), []byte("schema: olm.package\n# edited\n"), 1)
		if bytes.Equal(text, changed) {
			continue
		}
		if err := os.WriteFile(file, changed, 0o644); err != nil {
			return err
		}
		before := blobBytes(dir)
		_, image, err := b.pushOne(ctx, catalog, name, dir+"-cache")
		if err != nil {
			return err
		}
		grown, sent := blobBytes(dir)-before, image.Traffic.Pushed.Bytes+image.Traffic.Manifests.Bytes
		for _, l := range image.Layers {
			if slices.Contains(l.Packages, pkg.Name()) {
				edited++
				if over := float64(max(grown, sent)-20_000) / float64(l.Bytes); over > most {
					most, worst = over, pkg.Name()
				}
			}
		}
	}
	verdict := "ok"
	if most > 1.1 || edited == 0 {
		verdict = "MISSED"
	}
	fmt.Printf(
		"one package edited, %d of %d in turn: at most %.2f of its layer and 20 kB are new and sent (%s; promised: "+
			"1.1): %s\n", edited, len(packages), most, worst, verdict)
	return nil
}

func kb(n int64) string { return fmt.Sprintf("%.0f", float64(n)/1e3) }
