// Command layercosts measures the cost of rules for grouping packages into the layers of an image: the average number of
// compressed bytes of new layers when one package of a catalog changes, is added, or is removed. docs/explain/layers.md
// contains its output.
//
//	go run ./build/internal/layercosts [-budgets 5,10,20,90] DIR...
//
// The size of a layer is estimated as the sum of its packages' sizes in separate layers, compressed with gzip; the
// error is less than a hundredth.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/layers"
)

func main() {
	budgets := flag.String("budgets", "5,10,20,90", "how many layers there are for packages")
	flag.Parse()
	if err := run(context.Background(), *budgets, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, budgets string, dirs []string, out io.Writer) error {
	fmt.Fprint(out, "| catalog | layers |")
	for _, r := range rules {
		fmt.Fprintf(out, " %s |", r.name)
	}
	fmt.Fprintf(out, "\n|%s\n", strings.Repeat("---|", 2+len(rules)))
	for _, dir := range dirs {
		c, err := weigh(ctx, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		name := fmt.Sprintf("%s, %d packages, %s", filepath.Base(dir), len(c.plain), kilobytes(float64(c.total())))
		for text := range strings.SplitSeq(budgets, ",") {
			budget, err := strconv.Atoi(text)
			if err != nil || budget < 2 {
				return fmt.Errorf("invalid budget %q", text)
			}
			fmt.Fprintf(out, "| %s | %d |", name, budget)
			for _, r := range rules {
				fmt.Fprintf(out, " %s |",
					c.cost(func(sizes map[string]int64) [][]string { return r.divide(sizes, budget) }))
			}
			fmt.Fprintln(out)
			name = ""
		}
	}
	return nil
}

// weighed has the sizes of a catalog's packages in bytes before and after compression.
type weighed struct{ plain, packed map[string]int64 }

func (w weighed) total() (n int64) {
	for _, size := range w.packed {
		n += size
	}
	return n
}

// weigh packs each package of a catalog.
func weigh(ctx context.Context, dir string) (weighed, error) {
	w := weighed{map[string]int64{}, map[string]int64{}}
	root, err := declcfg.OpenDir(dir)
	if err != nil {
		return w, err
	}
	catalog, err := declcfg.Load(ctx, root, declcfg.LoadOptions{Skeleton: true})
	if err != nil {
		return w, err
	}
	files, err := build.FilesOf(catalog)
	if err != nil {
		return w, err
	}
	entries := map[string][]layers.Entry{}
	for _, f := range files {
		if len(f.Packages) != 1 {
			return w, fmt.Errorf("%s holds %d packages, and only catalogs with one package a file can be measured",
				f.Path, len(f.Packages))
		}
		e, err := layers.File(f.Path, root, f.Path)
		if err != nil {
			return w, err
		}
		entries[f.Packages[0]] = append(entries[f.Packages[0]], e)
	}
	for pkg, es := range entries {
		l := layers.Layer{Name: pkg, Entries: es}
		b, err := l.Write(ctx, io.Discard, layers.Options{Compression: layers.Gzip})
		if err != nil {
			return w, err
		}
		w.plain[pkg], w.packed[pkg] = l.Size(), b.Size
	}
	return w, nil
}

// cost returns the average number of new bytes when one package changes, is added, and is removed.
func (w weighed) cost(divide func(map[string]int64) [][]string) string {
	all := divide(w.plain)
	var changed, added, removed float64
	for _, g := range all {
		changed += float64(int64(len(g)) * w.of(g))
	}
	for pkg := range w.plain {
		without := map[string]int64{}
		for other, size := range w.plain {
			if other != pkg {
				without[other] = size
			}
		}
		rest := divide(without)
		added += float64(w.newIn(rest, all))
		removed += float64(w.newIn(all, rest))
	}
	n := float64(len(w.plain))
	return kilobytes(changed/n) + " / " + kilobytes(added/n) + " / " + kilobytes(removed/n)
}

// of returns the size of a layer.
func (w weighed) of(group []string) (n int64) {
	for _, pkg := range group {
		n += w.packed[pkg]
	}
	return n
}

// newIn returns the size of the layers that did not exist before.
func (w weighed) newIn(before, after [][]string) (n int64) {
	there := map[string]bool{}
	for _, g := range before {
		there[key(g)] = true
	}
	for _, g := range after {
		if !there[key(g)] {
			n += w.of(g)
		}
	}
	return n
}

func key(group []string) string { return strings.Join(slices.Sorted(slices.Values(group)), ",") }

func kilobytes(n float64) string {
	if n >= 999_500 {
		return fmt.Sprintf("%.2f MB", n/1e6)
	}
	return fmt.Sprintf("%.0f kB", n/1e3)
}
