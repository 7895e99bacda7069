package migrate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/sqlite"
)

// blobSums counts the blobs of a catalog by digest, per package.
type blobSums map[string]map[blobSum]int

type blobSum struct {
	schema, name string
	sum          [sha256.Size]byte
}

func (s *blobSums) add(b declcfg.Blob) {
	if *s == nil {
		*s = blobSums{}
	}
	pkg := b.BlobPackage()
	if (*s)[pkg] == nil {
		(*s)[pkg] = map[blobSum]int{}
	}
	(*s)[pkg][blobSum{b.BlobSchema(), b.BlobName(), sha256.Sum256(declcfg.AppendJSON(nil, b, false))}]++
}

// verifyBlobs reads the catalog in dir again, one package at a time. Its blobs must be those of the source, except for
// the changes in findings, which become differences with a reason.
func verifyBlobs(ctx context.Context, dir string, want blobSums, findings []sqlite.Finding,
	o Options) (*verification, error) {
	v := &verifier{result: verification{Differences: []difference{}}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		pkg := e.Name()
		var c *declcfg.Catalog
		if e.IsDir() {
			if o.Progress != nil {
				o.Progress(StepVerify, i+1, len(entries), pkg)
			}
			c, err = loadPackage(ctx, filepath.Join(dir, pkg), o)
		} else {
			pkg = ""
			c, err = loadFile(ctx, filepath.Join(dir, e.Name()), o)
		}
		if err != nil {
			return nil, fmt.Errorf("verify %q: %w", e.Name(), err)
		}
		var got blobSums
		for b := range c.Blobs() {
			got.add(b)
		}
		for other, sums := range got {
			if other != pkg {
				v.differ(difference{Package: other, What: "blobs",
					Output: fmt.Sprintf("%d in the directory of package %q", len(sums), pkg)}, false)
			}
		}
		v.blobs(pkg, want[pkg], got[pkg])
		delete(want, pkg)
	}
	for _, pkg := range sortedKeys(want) {
		v.differ(difference{Package: pkg, What: "package", Source: "there"}, false)
	}
	slices.SortFunc(v.result.Differences, func(a, b difference) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Bundle, b.Bundle), cmp.Compare(a.What, b.What),
			cmp.Compare(a.Source, b.Source))
	})
	v.result.Same = len(v.result.Differences) == 0
	if !v.result.Same {
		return &v.result, &verificationError{v.result.Differences}
	}
	for _, f := range findings {
		if f.Altered() {
			v.result.Differences = append(v.result.Differences, difference{
				Package: f.Package, Channel: f.Channel, Bundle: f.Bundle, What: f.Field, Source: f.Before,
				Output: f.After, Reason: f.Reason,
			})
		}
	}
	return &v.result, nil
}

func loadFile(ctx context.Context, path string, o Options) (*declcfg.Catalog, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return declcfg.Read(ctx, f, filepath.Base(path), declcfg.LoadOptions{Jobs: o.Render.Jobs, Limits: o.Render.Limits})
}

// blobs compares the blobs of one package.
func (v *verifier) blobs(pkg string, want, got map[blobSum]int) {
	differs := func(s blobSum, source, output int) {
		v.differ(difference{
			Package: pkg, Bundle: s.name, What: s.schema, Source: fmt.Sprintf("%d as %x", source, s.sum[:6]),
			Output: fmt.Sprint(output),
		}, false)
	}
	for s, n := range want {
		if got[s] != n {
			differs(s, n, got[s])
		}
	}
	for s, n := range got {
		if want[s] == 0 {
			differs(s, 0, n)
		}
	}
}
