package rules

import (
	"context"
	"iter"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// PackageCheck checks one package of a catalog while its blobs are read for something else.
type PackageCheck struct {
	p *packageCheck
}

// NewPackageCheck begins the check of a package by the rules of a run. Of the subject count the gates and Manifests.
func NewPackageCheck(r *Run, s CatalogSubject, name string) *PackageCheck {
	return &PackageCheck{&packageCheck{catalogCheck: &catalogCheck{CatalogSubject: &s, run: r}, name: name}}
}

// Blobs returns the blobs of a catalog, in the order of [declcfg.Stream], and checks those of the package as they pass.
// The rules on the package as a whole are called at their end. An error of the check is yielded like one of the blobs.
func (c *PackageCheck) Blobs(ctx context.Context, blobs iter.Seq2[declcfg.Blob, error]) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		for b, err := range blobs {
			if err == nil && b.BlobPackage() == c.p.name {
				at := b.Position()
				d := declcfg.IndexedDocument{Schema: b.BlobSchema(), Package: c.p.name, Name: b.BlobName()}
				d.File, d.Line = at.File, at.Line
				c.p.all = append(c.p.all, d)
				err = c.p.add(ctx, b)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
		if err := c.end(ctx); err != nil {
			yield(nil, err)
		}
	}
}

func (c *PackageCheck) end(ctx context.Context) error {
	if err := Each(ctx, c.p.run, blobChecks, c.p.catalogCheck); err != nil {
		return err
	}
	return Each(ctx, c.p.run, packageChecks, c.p)
}

// About reports whether a finding is about one of the bundles, or about what is no bundle. A bundle that another one of
// its version is taken for is about both.
func (f Finding) About(bundles ...string) bool {
	return f.Bundle == "" || slices.Contains(bundles, f.Bundle) || f.first != "" && slices.Contains(bundles, f.first)
}
