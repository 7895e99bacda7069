package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/fault"
)

// bundle writes the rows of one bundle.
func (p *packageWriter) bundle(ctx context.Context, b *declcfg.Bundle) error {
	if other, ok := p.bundles[b.Name]; ok {
		p.broken = true
		if other != p.name { // otherwise the package is invalid
			p.problem(p.name,
				fmt.Errorf("%w: package %s has a bundle of the name %s too, and a database has only one of each name",
					ErrInvalid, fault.Quote(other), fault.Quote(b.Name)))
		}
		return nil
	}
	p.bundles[b.Name] = p.name
	property, err := b.PackageProperty()
	plan := p.plans[b.Name]
	if err != nil || plan == nil {
		p.broken = true // validating the package finds the reason
		return nil
	}
	for _, text := range []struct{ what, s string }{{"the name", b.Name}, {"the image", b.Image},
		{"the version", property.Version}, {"skipRange", plan.skipRange}} {
		if err := checkText(text.what, text.s); err != nil {
			return err
		}
	}
	p.unknown(Finding{Bundle: b.Name}, b.Unknown)
	p.release(b, property)
	columns, err := p.manifests(b, plan, property)
	if err != nil {
		return err
	}
	m := columns.parsed
	own, err := p.origin(b, plan, m.csv)
	if err != nil {
		return err
	}
	csv, stored := columns.csv, columns.bundle
	if p.options.HeadManifests && b.Image != "" && !plan.head {
		csv, stored = nil, nil
	}
	err = p.run(ctx, insertBundle, b.Name, csv, stored, b.Image, plan.skipRange, property.Version,
		own.Replaces, strings.Join(own.Skips, ","), own.SubstitutesFor)
	if err != nil {
		return err
	}
	p.written.Bundles++
	if err := p.relatedImages(ctx, b, m); err != nil {
		return err
	}
	return p.properties(ctx, b, property.Version, columns)
}

// release reports that a release is kept only in the property, which readers of databases ignore.
func (p *packageWriter) release(b *declcfg.Bundle, property property.Package) {
	if property.Release != "" {
		p.changed(Finding{Bundle: b.Name, Field: "release",
			Reason: "the release is kept in a property; opm does not read it from a database"})
	}
	if p.version == nil {
		p.version = map[string]string{}
	}
	if other, ok := p.version[property.Version]; ok {
		p.lost(Finding{Bundle: b.Name, Field: "version",
			Reason: "opm reads no releases from a database, where the bundle has the same version as " + fault.Quote(
				other)})
	}
	p.version[property.Version] = b.Name
}

// columns are the manifests of a bundle for its row; nil is NULL.
type columns struct {
	csv, bundle any
	parsed      *manifests
	document    *csvDocument // in column csv; nil if there is none
}

// manifests builds the columns csv and bundle and parses them: content that cannot be read back is not written.
func (p *packageWriter) manifests(b *declcfg.Bundle, plan *plan, property property.Package) (*columns, error) {
	objects, document, err := b.Manifests()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	size := 0
	for _, object := range objects {
		size += len(object) + 1
	}
	bundle := make([]byte, 0, size)
	for i, stored := range b.Properties {
		if stored.Type != declcfg.PropertyBundleObject {
			continue
		}
		if len(objects) == 0 {
			return nil,
				fmt.Errorf(
					"%w: property %d of type %s has no data; the catalog has to be read with the manifests of its "+
						"bundles", ErrInvalid, i, declcfg.PropertyBundleObject)
		}
		object := bytes.TrimSpace(objects[0])
		objects = objects[1:]
		var again []declcfg.Property
		again, p.encoded = encodeObjects(p.encoded[:0], object, []span{{0, int32(len(object))}})
		if !bytes.Equal(again[0].Value, stored.Value) {
			p.changed(Finding{Bundle: b.Name, Field: "bundle",
				Reason: "a manifest is not stored as one JSON object, and will be"})
		}
		bundle = append(append(bundle, object...), '\n')
	}
	document = bytes.TrimSpace(document)
	inColumn := document
	switch {
	case len(document) > 0 && plan.shown:
		if inColumn, err = p.withIcon(b, document); err != nil {
			return nil, err
		}
	case len(document) == 0:
		if inColumn, err = p.stub(b, plan, property); err != nil {
			return nil, err
		}
	}
	c := &columns{}
	if len(inColumn) > 0 {
		c.csv = string(inColumn) + "\n"
	}
	if len(bundle) > 0 {
		c.bundle = string(bundle)
	}
	if c.parsed, c.document, err = readManifests(inColumn, bundle); err != nil {
		return nil, err
	}
	if size := len(inColumn) + len(bundle) + 1; size > p.options.Limits.ValueBytes {
		return nil, fmt.Errorf("%w: its manifests have %d bytes (limit %d)", ErrLimit, size,
			p.options.Limits.ValueBytes)
	}
	return c, nil
}

// relatedImages writes the images of a bundle. Their names are those in the ClusterServiceVersion.
func (p *packageWriter) relatedImages(ctx context.Context, b *declcfg.Bundle, m *manifests) error {
	back := &bundle{manifests: m}
	seen := map[string]bool{}
	for _, r := range b.RelatedImages {
		if err := checkText("a related image", r.Image); err != nil {
			return err
		}
		if r.Image == "" || seen[r.Image] {
			continue
		}
		seen[r.Image] = true
		back.images = append(back.images, r.Image)
		if err := p.run(ctx, insertImage, r.Image, b.Name); err != nil {
			return err
		}
	}
	want, have := sortedImages(b.RelatedImages), sortedImages(imagesOf(back, CompatNone))
	for _, r := range want {
		if !slices.Contains(have, r) {
			p.lost(Finding{Bundle: b.Name, Field: "relatedImages",
				Reason: fmt.Sprintf(
					"the image %s has not the name %s in the ClusterServiceVersion, where a database has names",
					fault.Quote(r.Image), fault.Quote(r.Name))})
		}
	}
	for _, r := range have {
		if !slices.Contains(want, r) && !slices.ContainsFunc(want,
			func(w declcfg.RelatedImage) bool { return w.Image == r.Image }) {
			p.lost(Finding{Bundle: b.Name, Field: "relatedImages",
				Reason: "the ClusterServiceVersion names an image that the catalog does not: " + fault.Quote(r.Image)})
		}
	}
	return nil
}

func sortedImages(list []declcfg.RelatedImage) []declcfg.RelatedImage {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b declcfg.RelatedImage) int {
		return cmp.Or(cmp.Compare(a.Image, b.Image), cmp.Compare(a.Name, b.Name))
	})
	return list
}
