package rules

import (
	"context"
	"iter"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// CheckPackage returns the blobs of a catalog, in the order of [declcfg.Stream], and checks those of one package as
// they pass. The rules on the package as a whole are called at their end. An error of the check is yielded like one
// of the blobs. Of the subject count the gates and Manifests.
func (r *Run) CheckPackage(ctx context.Context, s CatalogSubject, name string,
	blobs iter.Seq2[declcfg.Blob, error]) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		p := &packageCheck{catalogCheck: &catalogCheck{CatalogSubject: &s, run: r}, name: name}
		for b, err := range blobs {
			if err == nil && b.BlobPackage() == name {
				at := b.Position()
				d := declcfg.IndexedDocument{Schema: b.BlobSchema(), Package: name, Name: b.BlobName()}
				d.File, d.Line = at.File, at.Line
				p.all = append(p.all, d)
				err = p.add(ctx, b)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
		err := Each(ctx, r, blobChecks, p.catalogCheck)
		if err == nil {
			err = Each(ctx, r, packageChecks, p)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// About reports whether a finding is about one of the bundles, or about what is no bundle. A bundle that another one of
// its version is taken for is about both.
func (f Finding) About(bundles ...string) bool {
	return f.Bundle == "" || slices.Contains(bundles, f.Bundle) || f.first != "" && slices.Contains(bundles, f.first)
}
