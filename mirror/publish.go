package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/convert"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/outage"
	"github.com/operator-bindery/bindery/mirror/internal/sizes"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/sqlite"
)

// publisher puts the catalogs at the target, after all that they name.
type publisher struct {
	o      *Options
	report *report
	places *places
	copier *copier
	work   *images.Workspace
	// asDocker warns once of catalogs that are written with Docker's types.
	asDocker sync.Once
}

// publishAll decides on each catalog after the images are copied, and publishes those that can be. A run of one shard
// publishes none: the images of other shards may still be missing.
func (r *publisher) publishAll(ctx context.Context, catalogs []*catalog) error {
	for _, c := range catalogs {
		err := r.publishComplete(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			c.account.Error = err.Error()
			if outage.Fatal(err) {
				r.report.addUnpublished(c, err)
				return err
			}
			r.report.unpublished(c, err)
		}
		r.report.progress.add(func(e *Event) { e.Images++; e.Image, e.Err = c.op.Catalog.Name(), err })
	}
	return nil
}

// publishComplete publishes a catalog without the bundles that lack images.
func (r *publisher) publishComplete(ctx context.Context, c *catalog) error {
	if r.o.Shard.Count > 0 {
		return nil
	}
	if err := removeIncompleteBundles(ctx, r.o, r.report, c); err != nil {
		return err
	}
	c.accountPackages()
	if err := r.publish(ctx, c); err != nil {
		return err
	}
	return r.checkTag(ctx, c)
}

// publish puts a catalog at the target, after all that it names. A rebuilt catalog is a function of its source, the
// filter and what was taken out, so that its digest is the same in every run.
func (r *publisher) publish(ctx context.Context, c *catalog) error {
	if c.asIs {
		return r.publishAsIs(ctx, c)
	}
	err := r.publishMade(ctx, c)
	if !errors.Is(err, store.ErrNoOCI) || c.docker {
		return err
	}
	// A registry that takes Docker's types alone has the images, which are copied as they are, and is to have the catalog.
	c.docker = true
	if r.publishMade(ctx, c) != nil {
		return err
	}
	r.asDocker.Do(func() {
		r.report.log.warn("catalogs are written with Docker's types, as the registry refuses those of OCI: " + redact.Error(err).Error())
	})
	return nil
}

// publishMade writes a catalog that was rebuilt, now or before it was put into an archive.
func (r *publisher) publishMade(ctx context.Context, c *catalog) error {
	write := func(b store.Reader, top v1.Descriptor) error { return r.write(ctx, c, b, top) }
	if c.ready == nil || len(c.account.LeftOut) > 0 {
		return r.rebuilt(ctx, c, write)
	}
	from, top := store.Reader(c.ready.reader), c.ready.top
	if c.docker {
		var err error
		if from, top, err = convert.To(ctx, from, top, convert.Docker); err != nil {
			return err
		}
	}
	return write(from, top)
}

// write writes the image of a catalog to the target, with its signatures.
func (r *publisher) write(ctx context.Context, c *catalog, from store.Reader, top v1.Descriptor) error {
	dest := r.destination(c, top.Digest)
	c.setDestination(dest, top.Digest)
	to, err := r.places.to.repository(dest)
	if err != nil {
		return err
	}
	there, err := to.Head(ctx, dest.Tag)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", dest.Name(), err)
	}
	if there.Digest == top.Digest && len(r.o.Sign) == 0 {
		c.account.Published, c.account.Present = true, true
		return nil
	}
	moves := r.report.moved.Image()
	defer moves.End()
	_, err = store.CopyOne(ctx, from, top, to, dest.Tag, store.CopyOptions{
		Absent: there.Digest == "" && r.places.output == nil, Elsewhere: r.places.input.reposElsewhere, Jobs: r.o.Layers,
		Attach: func(ctx context.Context, to store.Writer, image store.Image) error {
			if image.Name = dest.Name(); r.places.output != nil {
				image.Name = "" // signatures for policies need the name that it gets at a registry
			}
			if c.carrier != nil { // the catalog may have been signed when the medium was written
				attached, err := copyAttached(ctx, r.o.With, c.carrier, to, image)
				if err != nil {
					return err
				}
				for _, text := range attached.Problems {
					r.report.problem(filter.Warning, dest.Name(), "", "not all signatures could be read: %s", text)
				}
			}
			for _, s := range r.o.Sign {
				if err := s.Attach(ctx, to, image); err != nil {
					return err
				}
			}
			return nil
		},
		Moved: moves.Event,
	})
	if err != nil {
		return err
	}
	c.account.Published = true
	r.report.log.info(r.o.Mode.published() + " the catalog " + dest.Name())
	return nil
}

// publishAsIs copies a catalog that nothing is taken out of, with its signatures.
func (r *publisher) publishAsIs(ctx context.Context, c *catalog) error {
	source := c.op.Catalog
	if source.Transport != "oci" {
		source.Digest = c.digest
	}
	dest := r.o.destination().Catalog(c.op, false, "", c.account.FilterHash)
	i := &item{source: source, destination: dest, kind: Catalog, platforms: c.op.Platforms}
	i.nameOnMedium(r.sourceInArchive(c))
	i.startAccount(r.report.moved)
	defer i.moving.End()
	if err := r.copier.copyItem(ctx, i); err != nil {
		return err
	}
	c.setDestination(dest, i.account.Digest)
	c.account.Published, c.account.Present = true, i.account.Status == Present
	return nil
}

// checkTag finds out whether the tag of a catalog that is named by its digest is the catalog: in registries without an
// API for referrers it is the list of them.
func (r *publisher) checkTag(ctx context.Context, c *catalog) error {
	if r.places.output != nil || c.dest.Tag != imageset.DigestTag(c.account.DestinationDigest) {
		return nil
	}
	to, err := r.places.to.repository(c.dest)
	if err != nil {
		return err
	}
	there, err := to.Head(ctx, c.dest.Tag)
	c.tagKept = err == nil && there.Digest != c.account.DestinationDigest
	return err
}

// destination is where a rebuilt catalog goes. In archives of oc-mirror it stands beside its source, with the hash of
// the filter as its tag.
func (r *publisher) destination(c *catalog, rebuilt digest.Digest) imageset.Ref {
	if r.places.output == nil || r.o.Medium.Form != medium.OCMirror {
		return r.o.destination().Catalog(c.op, true, rebuilt, c.account.FilterHash)
	}
	at := r.sourceInArchive(c)
	at.Tag = c.account.FilterHash
	return at
}

// sourceInArchive is where the source of a catalog is in an archive: under its own tag in those of oc-mirror, and if it
// is copied as it is. In others the rebuilt catalog has that tag, and the source that of its digest.
func (r *publisher) sourceInArchive(c *catalog) imageset.Ref {
	source := c.op
	source.TargetCatalog, source.TargetTag = "", ""
	if source.Catalog.InRegistry() && source.Catalog.Tag == "" {
		source.Catalog.Digest = c.digest
	}
	at := onMedium.Catalog(source, false, "", "")
	if r.places.output != nil && r.o.Medium.Form == medium.OCI && !c.asIs {
		at.Tag = imageset.DigestTag(c.digest)
	}
	return at
}

// measure counts what publishing a catalog would send, as long as no bundle is left out of it: then it is less. To an
// archive its source goes, too.
func (r *publisher) measure(ctx context.Context, c *catalog, total *sizes.Total) error {
	dest := c.dest
	add := func(from store.Reader, top v1.Descriptor, platforms []v1.Platform) error {
		if r.places.to != nil {
			to, err := r.places.to.repository(dest)
			if err != nil {
				return err
			}
			if there, err := to.Head(ctx, r.destination(c, top.Digest).Tag); err == nil && there.Digest == top.Digest {
				return nil
			}
		}
		m, err := sizes.Measure(ctx, from, top, platforms)
		if err == nil {
			r.places.other.remove(m.Blobs)
			total.Add(dest.Repository(), m.Blobs)
		}
		return err
	}
	switch {
	case r.o.Shard.Count > 0:
		return nil
	case c.ready != nil:
		return add(c.ready.reader, c.ready.top, nil)
	case !c.asIs:
		if err := r.rebuilt(ctx, c, func(b store.Reader, top v1.Descriptor) error { return add(b, top, nil) }); err != nil {
			return err
		}
		if r.o.Mode != ToDisk || c.digest == "" {
			return nil
		}
	}
	source, err := r.o.Images.OpenPart(ctx, c.name, c.op.Platforms)
	if err != nil {
		return err
	}
	return errors.Join(add(source, source.Top, c.op.Platforms), source.Close())
}

// rebuilt calls use with the image of a rebuilt catalog.
func (r *publisher) rebuilt(ctx context.Context, c *catalog, use func(store.Reader, v1.Descriptor) error) (err error) {
	dir := filepath.Join(r.work.Dir(), "catalog-"+digest.FromString(c.account.Destination).Encoded()[:16])
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	image, err := rebuildCatalog(ctx, r.o, c, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	return use(image.Store(), image.Top())
}

// rebuildCatalog assembles the image of a filtered catalog.
func rebuildCatalog(ctx context.Context, options *Options, c *catalog, dir string) (*build.Image, error) {
	spec := options.Spec
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
	docker := c.docker
	if c.index.Image != nil {
		d, err := spec.Images.Describe(ctx, c.name)
		if err != nil {
			return nil, err
		}
		docker = docker || convert.Of(d.MediaType) == convert.Docker
		if made := d.Variants[0].Config.Created; spec.Build.Created.IsZero() && made != nil {
			spec.Build.Created = *made // the source's, whenever this runs
		}
		var of []v1.Platform
		for _, v := range d.Variants {
			if platform.Matches(v.Platform, c.op.Platforms...) {
				of = append(of, platform.Plain(v.Platform))
			}
		}
		if spec.Platforms = of; len(of) == 0 {
			return nil, errors.New("the catalog has none of the platforms that are requested")
		}
		if options.Base == KeepBase {
			spec.Build.TrimBase = true
			if spec.Build.Base, err = build.NamedBase(spec.Images, c.name); err != nil {
				return nil, err
			}
		}
	}
	if docker { // which has no annotations
		labels := maps.Clone(spec.Build.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, spec.Build.Annotations)
		spec.Build.Labels, spec.Build.Annotations = labels, nil
		spec.Build.Format, spec.Build.Compression = build.FormatDocker, layers.Gzip
	}
	o, err := spec.Edited(ctx, c.index, c.name, true, dir, options.Render)
	if err != nil {
		return nil, err
	}
	return c.index.Build(ctx, o, sqlite.WriteOptions{})
}
