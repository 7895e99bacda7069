package mirror

import (
	"context"
	"errors"
	"maps"
	"os"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images/convert"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/outage"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/sqlite"
)

// toPublish are the images that are made and published after all others: that of update graphs, and the catalogs. A run
// of one shard publishes none: the images of other shards may still be missing.
func (r *run) toPublish() (out []*item) {
	if r.o.Shard.Count > 0 {
		return nil
	}
	if r.found.graph != nil {
		out = append(out, r.found.graph)
	}
	for _, c := range r.found.catalogs {
		out = append(out, c.image)
	}
	return out
}

// publish puts the graph image and the catalogs at the destination, after all that they name. That one is not there is no
// error, unless all that come after it would have the same one.
func (r *run) publish(ctx context.Context) error {
	for _, i := range r.toPublish() {
		name, err := i.destination.Name(), error(nil)
		if c := i.catalog; c != nil {
			i.startAccount(r.report.moved)
			name, err = c.op.Catalog.Name(), r.publishCatalog(ctx, c)
		} else {
			err = r.copyItem(ctx, i)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			i.fail(err)
			r.report.unpublished(name, i.kind, err)
		}
		if i.catalog != nil {
			i.catalog.settle()
		}
		r.report.progress.add(func(e *Event) { e.Images++; e.Image, e.Err = name, err })
		if outage.Fatal(err) {
			return err
		}
	}
	return nil
}

// publishCatalog publishes a catalog, without the bundles that lack images. A rebuilt catalog is a function of its source,
// the filter and what was taken out, so that its digest is the same in every run.
func (r *run) publishCatalog(ctx context.Context, c *catalog) error {
	if err := r.removeIncompleteBundles(ctx, c); err != nil {
		return err
	}
	c.accountPackages()
	r.chooseImage(c)
	err := r.copyItem(ctx, c.image)
	if errors.Is(err, store.ErrNoOCI) && !c.docker && !c.asIs {
		// A registry that takes Docker's types alone has the images, which are copied as they are, and is to have the catalog.
		c.docker = true
		if r.copyItem(ctx, c.image) != nil {
			return err
		}
		r.asDocker.Do(func() {
			r.report.log.warn("catalogs are written with Docker's types, as the registry refuses those of OCI: " + redact.Error(err).Error())
		})
	} else if err != nil {
		return err
	}
	if c.image.build != nil && c.image.account.Status == Copied {
		r.report.log.info(r.o.Mode.published() + " the catalog " + c.image.destination.Name())
	}
	return r.checkTag(ctx, c)
}

// chooseImage says what the image of a catalog is: that of its source, or one that is built.
func (r *run) chooseImage(c *catalog) {
	if i := c.image; c.asIs {
		i.source, i.platforms = c.sourceImage(), c.op.Platforms
		i.setDestination(r.o.destination().Catalog(c.op, false, "", c.account.FilterHash))
		i.nameOnMedium(r.sourceInArchive(c))
	} else {
		i.build = func(ctx context.Context) (*opened, error) { return r.buildCatalog(ctx, c) }
	}
}

// checkTag finds out whether the tag of a catalog that is named by its digest is the catalog: in registries without an
// API for referrers it is the list of them.
func (r *run) checkTag(ctx context.Context, c *catalog) error {
	at, is := c.image.destination, c.image.account.Digest
	if r.writing() || at.Tag != imageset.DigestTag(is) {
		return nil
	}
	to, err := r.places.to.repository(at)
	if err != nil {
		return err
	}
	there, err := to.Head(ctx, at.Tag)
	c.tagKept = err == nil && there.Digest != is
	return err
}

// rebuiltAt is where a rebuilt catalog goes. In archives of oc-mirror it stands beside its source, with the hash of
// the filter as its tag.
func (r *run) rebuiltAt(c *catalog, rebuilt digest.Digest) imageset.Ref {
	if !r.writing() || r.o.Medium.Form != medium.OCMirror {
		return r.o.destination().Catalog(c.op, true, rebuilt, c.account.FilterHash)
	}
	at := r.sourceInArchive(c)
	at.Tag = c.account.FilterHash
	return at
}

// sourceInArchive is where the source of a catalog is in an archive: in those of oc-mirror under the name that it is to
// have at the target, and in others under its own, with the tag of its digest unless it is copied as it is. The rebuilt
// catalog has its own tag there.
func (r *run) sourceInArchive(c *catalog) imageset.Ref {
	source := c.op
	if !r.writing() || r.o.Medium.Form != medium.OCMirror {
		source.TargetCatalog, source.TargetTag = "", ""
	}
	if source.Catalog.InRegistry() && source.Catalog.Tag == "" {
		source.Catalog.Digest = c.digest
	}
	at := onMedium.Catalog(source, false, "", "")
	if r.writing() && r.o.Medium.Form == medium.OCI && !c.asIs {
		at.Tag = imageset.DigestTag(c.digest)
	}
	return at
}

// sourceItem is the image that a catalog was made of, which an archive gets with its signatures: the other side can verify
// it, and filter it again.
func (r *run) sourceItem(c *catalog) *item {
	i := &item{source: c.sourceImage(), destination: r.sourceInArchive(c), kind: Catalog}
	i.startAccount(r.report.moved)
	return i
}

// buildCatalog opens the image of a catalog that was rebuilt, now or before it was put into an archive.
func (r *run) buildCatalog(ctx context.Context, c *catalog) (_ *opened, err error) {
	out := &opened{close: func() error { return nil }, carrier: c.carrier, sign: r.o.Sign}
	if c.ready != nil && len(c.account.LeftOut) == 0 {
		if out.Reader, out.top = c.ready.reader, c.ready.top; c.docker {
			out.Reader, out.top, err = convert.To(ctx, out.Reader, out.top, convert.Docker)
		}
	} else {
		var dir string
		if dir, err = os.MkdirTemp(r.work.Dir(), "catalog-"); err != nil {
			return nil, err
		}
		var image *build.Image
		if image, err = rebuildCatalog(ctx, r.o, c, dir); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		out.Reader, out.top = image.Store(), image.Top()
		out.close = func() error { return errors.Join(image.Close(), os.RemoveAll(dir)) }
	}
	c.image.setDestination(r.rebuiltAt(c, out.top.Digest))
	return out, err
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
		if options.CatalogBase == KeepBase {
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
