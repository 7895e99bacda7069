package export

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/render/internal/appregistry"
	"github.com/operator-bindery/bindery/sqlite"
)

// packageOf is a package of the catalog.
type packageOf struct {
	name           string
	defaultChannel string
	channels       []declcfg.Channel
	catalog        declcfg.Catalog // without manifests
}

// bundleOf is a bundle of the catalog.
type bundleOf struct {
	pkg, name, image string
	// dir is the name of its directory.
	dir string
	// wish and warnings are set after its manifests have been read.
	wish     *appregistry.Wish
	warnings []string
}

// collector reads a catalog. It writes bundles with embedded manifests at once, so that the manifests need not stay in
// memory.
type collector struct {
	ctx    context.Context
	w      *appregistry.Writer
	wanted []string

	packages []*packageOf
	bundles  []bundleOf
	known    []string
	dirs     map[string]bool
	broken   map[string]error // packages that were left out, with the reason
}

// collect reads the catalog and checks that it has the requested packages. If packages are named, the others may be
// invalid.
func (c *collector) collect(ref string, o render.Options) error {
	o.Level, o.KeepGoing, o.ImageTemplate, o.Reuse = edit.LevelNone, len(c.wanted) > 0, nil, false
	c.broken = map[string]error{}
	o.Account = &render.Account{}
	blobs, err := o.Render(c.ctx, ref)
	if err != nil {
		return err
	}
	c.dirs = map[string]bool{}
	for blob, err := range blobs {
		if err != nil {
			return err
		}
		if err := c.add(blob); err != nil {
			return err
		}
	}
	for _, left := range o.Account.LeftOut {
		c.broken[left.Package] = left.Reason
	}
	for _, f := range o.Account.Findings {
		if f.Kind == sqlite.Quarantined {
			c.broken[f.Package] = errors.New(f.Reason)
		}
	}
	var errs []error
	for _, name := range c.wanted {
		if reason := c.broken[name]; reason != nil {
			errs = append(errs,
				&render.ReferenceError{Reference: ref, Err: fmt.Errorf("package %s: %w", fault.Quote(name), reason)})
		} else if !slices.ContainsFunc(c.packages, func(p *packageOf) bool { return p.name == name }) {
			errs = append(errs, &declcfg.NotFoundError{Kind: "package", Name: name, Known: c.known})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	valid := (*declcfg.Catalog).Validate
	if o.Compat == sqlite.CompatOPM {
		valid = (*declcfg.Catalog).ValidateAnyImages
	}
	for _, p := range c.packages {
		errs = append(errs, valid(&p.catalog))
	}
	return errors.Join(errs...)
}

// add takes a blob. Packages come before their other blobs.
func (c *collector) add(blob declcfg.Blob) error {
	if p, ok := blob.(*declcfg.Package); ok {
		c.known = append(c.known, p.Name)
		if len(c.wanted) == 0 || slices.Contains(c.wanted, p.Name) {
			of := &packageOf{name: p.Name, defaultChannel: p.DefaultChannel}
			of.catalog.Packages = []declcfg.Package{*p}
			c.packages = append(c.packages, of)
		}
		return nil
	}
	if len(c.packages) == 0 || c.packages[len(c.packages)-1].name != blob.BlobPackage() {
		return nil
	}
	p := c.packages[len(c.packages)-1]
	switch b := blob.(type) {
	case *declcfg.Channel:
		p.channels = append(p.channels, *b)
		p.catalog.Channels = append(p.catalog.Channels, *b)
	case *declcfg.Bundle:
		of, err := c.bundle(b)
		if err != nil {
			return fmt.Errorf("bundle %s of package %s: %w", fault.Quote(b.Name), fault.Quote(b.Package), err)
		}
		c.bundles = append(c.bundles, of)
		b.Reduce()
		p.catalog.Bundles = append(p.catalog.Bundles, *b)
	}
	return nil
}

// bundle chooses the directory name of a bundle and writes the bundle if the catalog contains its manifests. The name
// is the bundle's version, or the bundle's name if another bundle has the same version.
func (c *collector) bundle(b *declcfg.Bundle) (bundleOf, error) {
	property, err := b.PackageProperty()
	if err != nil {
		return bundleOf{}, err
	}
	of := bundleOf{pkg: b.Package, name: b.Name, image: b.Image, dir: property.Version}
	if of.dir == "" || c.dirs[b.Package+"/"+of.dir] {
		of.dir = b.Name
	}
	c.dirs[b.Package+"/"+of.dir] = true
	if b.Image != "" {
		return of, nil
	}
	objects, csv, err := b.Manifests()
	if err != nil {
		return of, err
	}
	if csv == nil {
		return of, fmt.Errorf("%w: it has no image, and its manifests are not in the catalog", appregistry.ErrInvalid)
	}
	files, err := appregistry.Objects(objects)
	if err != nil {
		return of, err
	}
	wish := appregistry.WishOf(csv)
	of.wish = &wish
	return of, c.w.Bundle(c.ctx, of.pkg, of.dir, files)
}

// manifest returns the package manifest: channels sorted by name, with their heads.
func (p *packageOf) manifest() (appregistry.Manifest, error) {
	m := appregistry.Manifest{Package: p.name, DefaultChannel: p.defaultChannel}
	g, err := p.catalog.GraphAnyImages() // images are checked elsewhere
	if err != nil {
		return m, err
	}
	for _, pkg := range g.Packages {
		for _, c := range pkg.Channels {
			head, err := c.Head()
			if err != nil {
				return m, fmt.Errorf("package %s: %w", fault.Quote(p.name), err)
			}
			m.Channels = append(m.Channels, appregistry.ManifestChannel{Name: c.Name, CurrentCSV: head.Name})
		}
	}
	return m, nil
}
