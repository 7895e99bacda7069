package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/sqlite"
)

// filterAnnotation has the hash of the filter of a rebuilt catalog.
const filterAnnotation = "io.github.operator-bindery.mirror.filter"

// lacksAnnotation has, of a rebuilt catalog, what was asked for and is not in it: a line each.
const lacksAnnotation = "io.github.operator-bindery.mirror.lacks"

// maxLacks is the limit of that annotation in bytes.
const maxLacks = 64 << 10

// lacks is what was asked for and is not in the catalog, a line each.
func (c *catalog) lacks() string {
	lines := slices.Clone(c.account.Missing)
	for _, l := range c.account.LeftOut {
		lines = append(lines, fmt.Sprintf("package %q: bundle %s, version %s, lacks %s", l.Package, l.Bundle, l.Version,
			cmp.Or(l.Image, "an image")))
	}
	for n, line := range lines {
		lines[n] = strings.ReplaceAll(line, "\n", "; ")
	}
	text := strings.Join(lines, "\n")
	if len(text) > maxLacks {
		return itoa(len(lines)) + " of what was asked for, too many to be listed"
	}
	return text
}

// publish puts a catalog at the target, after all that it names. A rebuilt catalog is a function of its source, the
// filter and what was taken out, so that its digest is the same in every run.
func (r *run) publish(ctx context.Context, c *catalog) error {
	if c.asIs {
		return r.publishAsIs(ctx, c)
	}
	if c.ready != nil && len(c.account.LeftOut) == 0 {
		return r.put(ctx, c, c.ready.reader, c.ready.top, r.o.Sign)
	}
	return r.built(ctx, c, func(b store.Reader, top v1.Descriptor) error { return r.put(ctx, c, b, top, r.o.Sign) })
}

// built calls use with the image of a rebuilt catalog.
func (r *run) built(ctx context.Context, c *catalog, use func(store.Reader, v1.Descriptor) error) (err error) {
	dir := filepath.Join(r.work.Dir(), "catalog-"+digest.FromString(c.account.Destination).Encoded()[:16])
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	image, err := r.rebuild(ctx, c, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	return use(image.Store(), image.Top())
}

// weigh counts what publishing a catalog would send, as long as no bundle is left out of it: then it is less. To an archive
// its source goes, too.
func (r *run) weigh(ctx context.Context, c *catalog) error {
	dest := c.dest
	add := func(from store.Reader, top v1.Descriptor, platforms []v1.Platform) error {
		if r.to != nil {
			to, err := r.to.repository(dest)
			if err != nil {
				return err
			}
			if there, err := to.Head(ctx, r.rebuiltAt(c, top.Digest).Tag); err == nil && there.Digest == top.Digest {
				return nil
			}
		}
		m, err := measure(ctx, from, top, platforms)
		if err == nil {
			r.dropLeftOut(m.blobs)
			r.weights.add(dest.Repository(), m.blobs)
		}
		return err
	}
	switch {
	case r.o.Shard.Count > 0:
		return nil
	case c.ready != nil:
		return add(c.ready.reader, c.ready.top, nil)
	case !c.asIs:
		if err := r.built(ctx, c, func(b store.Reader, top v1.Descriptor) error { return add(b, top, nil) }); err != nil {
			return err
		}
		if r.o.Mode != ToDisk || c.digest == "" {
			return nil
		}
	}
	source, err := r.o.Images.OpenUnverified(ctx, c.name)
	if err != nil {
		return err
	}
	return errors.Join(add(source, source.Top, c.op.Platforms), source.Close())
}

// checkTag finds out whether the tag of a catalog that is named by its digest is the catalog: in registries without an API
// for referrers it is the list of them.
func (r *run) checkTag(ctx context.Context, c *catalog) error {
	if r.writer != nil || c.dest.Tag != imageset.DigestTag(c.account.DestinationDigest) {
		return nil
	}
	to, err := r.to.repository(c.dest)
	if err != nil {
		return err
	}
	there, err := to.Head(ctx, c.dest.Tag)
	c.tagKept = err == nil && there.Digest != c.account.DestinationDigest
	return err
}

// put writes a catalog to the target.
func (r *run) put(ctx context.Context, c *catalog, from store.Reader, top v1.Descriptor,
	sign []store.Attachment) error {
	dest := r.rebuiltAt(c, top.Digest)
	c.goesTo(dest, top.Digest)
	to, err := r.to.repository(dest)
	if err != nil {
		return err
	}
	there, err := to.Head(ctx, dest.Tag)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", dest.Name(), err)
	}
	if there.Digest == top.Digest && len(sign) == 0 {
		c.account.Published, c.account.Present = true, true
		return nil
	}
	moves := r.tally.image()
	defer moves.end()
	_, err = store.CopyOne(ctx, from, top, to, dest.Tag, store.CopyOptions{
		Absent: there.Digest == "" && r.writer == nil, Elsewhere: r.otherPlaces, Jobs: r.o.Layers,
		Attach: func(ctx context.Context, to store.Writer, image store.Image) error {
			if image.Name = dest.Name(); r.writer != nil {
				image.Name = "" // signatures for policies need the name that it gets at a registry
			}
			if c.carrier != nil { // it may have been signed when the medium was written
				attached, err := r.attach(ctx, c.carrier, to, image)
				if err != nil {
					return err
				}
				for _, text := range attached.Problems {
					r.problem(Warning, dest.Name(), "", "not all signatures could be read: %s", text)
				}
			}
			for _, s := range sign {
				if err := s.Attach(ctx, to, image); err != nil {
					return err
				}
			}
			return nil
		},
		Moved: moves.event,
	})
	if err != nil {
		return err
	}
	c.account.Published = true
	r.log.info(r.publishing() + " the catalog " + dest.Name())
	return nil
}

// rebuiltAt is where a rebuilt catalog goes. In archives of oc-mirror it stands beside its source, with the hash of the
// filter as its tag.
func (r *run) rebuiltAt(c *catalog, rebuilt digest.Digest) imageset.Ref {
	if r.writer == nil || r.o.Medium.Form != medium.OCMirror {
		return r.place().Catalog(c.op, true, rebuilt, c.account.FilterHash)
	}
	at := r.sourceOnMedium(c)
	at.Tag = c.account.FilterHash
	return at
}

// sourceOnMedium is where the source of a catalog is in an archive: under its own tag in those of oc-mirror, and if it
// is copied as it is. In others the rebuilt catalog has that tag, and the source that of its digest.
func (r *run) sourceOnMedium(c *catalog) imageset.Ref {
	source := c.op
	source.TargetCatalog, source.TargetTag = "", ""
	if source.Catalog.InRegistry() && source.Catalog.Tag == "" {
		source.Catalog.Digest = c.digest
	}
	at := onMedium.Catalog(source, false, "", "")
	if r.writer != nil && r.o.Medium.Form == medium.OCI && !c.asIs {
		at.Tag = imageset.DigestTag(c.digest)
	}
	return at
}

// publishAsIs copies a catalog that nothing is taken out of, with its signatures.
func (r *run) publishAsIs(ctx context.Context, c *catalog) error {
	source := c.op.Catalog
	if source.Transport != "oci" {
		source.Digest = c.digest
	}
	dest := r.place().Catalog(c.op, false, "", c.account.FilterHash)
	i := &item{source: source, destination: dest, onMedium: r.sourceOnMedium(c), kind: Catalog,
		platforms: c.op.Platforms}
	i.begin(&r.tally)
	defer i.moving.end()
	if err := r.copyItem(ctx, i); err != nil {
		return err
	}
	c.goesTo(dest, i.account.Digest)
	c.account.Published, c.account.Present = true, i.account.Status == Present
	return nil
}

// rebuild assembles the image of a filtered catalog.
func (r *run) rebuild(ctx context.Context, c *catalog, dir string) (*build.Image, error) {
	spec := r.o.Spec
	spec.AnyPlatform = true
	spec.Build.Annotations = maps.Clone(spec.Build.Annotations)
	if spec.Build.Annotations == nil {
		spec.Build.Annotations = map[string]string{}
	}
	spec.Build.Annotations[filterAnnotation] = c.account.FilterHash
	if lacks := c.lacks(); lacks != "" {
		spec.Build.Annotations[lacksAnnotation] = lacks
	}
	if c.digest != "" {
		spec.Build.Annotations[v1.AnnotationBaseImageDigest] = c.digest.String()
		if c.op.Catalog.InRegistry() {
			// also when it comes out of an archive
			spec.Build.Annotations[v1.AnnotationBaseImageName] = c.op.Catalog.Name()
		}
	}
	if c.index.Image != nil {
		d, err := spec.Images.Describe(ctx, c.name)
		if err != nil {
			return nil, err
		}
		if made := d.Variants[0].Config.Created; spec.Build.Created.IsZero() && made != nil {
			spec.Build.Created = *made // the source's, whenever this runs
		}
		var of []v1.Platform
		for _, v := range d.Variants {
			of = append(of, v1.Platform{OS: v.Platform.OS, Architecture: v.Platform.Architecture,
				Variant: v.Platform.Variant})
		}
		if spec.Platforms = platformsOf(of, c.op.Platforms); len(spec.Platforms) == 0 {
			return nil, errors.New("the catalog has none of the platforms that are requested")
		}
		if r.o.Base == KeepBase {
			spec.Build.TrimBase = true
			if spec.Build.Base, err = build.NamedBase(spec.Images, c.name); err != nil {
				return nil, err
			}
		}
	}
	o, err := spec.Edited(ctx, c.index, c.name, true, dir, r.o.Render)
	if err != nil {
		return nil, err
	}
	return c.index.Build(ctx, o, sqlite.WriteOptions{})
}
