package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/outage"
	"github.com/operator-bindery/bindery/mirror/internal/sizes"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// forecast finds out what a run would do, and copies nothing: it writes the mapping of all images (SOURCE=DESTINATION), and
// finds out how many bytes would be sent to each repository.
func (r *run) forecast(ctx context.Context) (err error) {
	list, err := r.found.keepShard(ctx, r.o, r.places.from)
	if err != nil {
		return err
	}
	if err := r.o.Workspace.files().RemoveAll("dry-run"); err != nil {
		return err
	}
	if r.o.Mode == ToDisk {
		if r.places.other, err = readOtherSide(r.o, r.report); err != nil {
			return err
		}
		var closeNeighbour func() error
		if closeNeighbour, err = r.openNeighbour(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeNeighbour()) }()
	}
	if err := r.keepTags(ctx, list); err != nil {
		return err
	}
	r.report.progress.add(func(e *Event) { e.AllImages = len(list) })
	total := &sizes.Total{} // what would be sent
	err = guard.Each(ctx, r.o.ParallelImages, list, func(ctx context.Context, _ int, i *item) error {
		if i.account.Status == Blocked {
			return nil
		}
		err := r.measureImage(ctx, i, total)
		if err == nil && r.o.ManifestLists && i.account.Status == Present {
			err = r.listInstances(ctx, i)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.report.imageFailed(i, "cannot be copied", err)
		}
		r.report.imageDone(i, err)
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range r.found.catalogs {
		err := r.measureCatalog(ctx, c, total)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case outage.DiskFull(err):
			return err
		case err != nil:
			c.fail(err)
			r.report.unpublished(c.op.Catalog.Name(), Catalog, err)
		}
	}
	r.report.account.Repositories = ByRepository(total.ByRepository())
	if r.o.Mode == ToDisk && r.o.Archive != "" {
		var sum int64
		for _, of := range r.report.account.Repositories {
			sum += of.Bytes
		}
		r.report.account.Free = checkSpace(r.report, r.o.Archive, sum+int64(total.Blobs())*blobOverhead)
	}
	if err := r.writeMapping(list); err != nil {
		return err
	}
	for _, c := range r.found.catalogs {
		c.accountPackages()
		if r.o.Shard.Count == 0 && r.o.OnMissing != FailMissing {
			c.account.LeftOut = c.lackingBundles(r.o.PruneBlocked)
		}
	}
	if r.o.Mode == ToDisk {
		return nil
	}
	dir, err := r.o.Workspace.files().Path("dry-run", "cluster-resources")
	if r.o.Compat {
		dir, err = r.o.Workspace.Resources()
	}
	if err != nil {
		return err
	}
	return r.writeResources(ctx, dir)
}

// openNeighbour counts what the archive that is in the directory has as left out, too, as a run does.
func (r *run) openNeighbour(ctx context.Context) (end func() error, err error) {
	if !r.o.leavesOutNeighbour() {
		return func() error { return nil }, nil
	}
	reader, err := medium.Open(ctx, r.o.Archive)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return func() error { return nil }, nil // there is no archive yet; the run itself reports one that cannot be read
	}
	r.places.other.addArchive(reader)
	return reader.Close, nil
}

// measureCatalog counts what publishing a catalog would send, as long as no bundle is left out of it: then it is less. To
// an archive its source goes, too.
func (r *run) measureCatalog(ctx context.Context, c *catalog, total *sizes.Total) error {
	if r.o.Shard.Count > 0 {
		return nil
	}
	c.image.startAccount(r.report.moved)
	at := c.image.destination // files of a dry run have the name that is known without building the catalog
	r.chooseImage(c)
	err := r.measureImage(ctx, c.image, total)
	c.image.setDestination(at)
	if err == nil && r.o.Mode == ToDisk && !c.asIs && c.digest != "" {
		err = r.measureImage(ctx, r.sourceItem(c), total)
	}
	return err
}

// measureImage decides on an image, and adds what would be sent of it to the total.
func (r *run) measureImage(ctx context.Context, i *item, total *sizes.Total) error {
	d, err := r.decide(ctx, i)
	if err != nil || d.from == nil {
		return err
	}
	image, err := r.measureCopy(ctx, i, d)
	if err = errors.Join(err, d.from.close()); err != nil {
		return err
	}
	if i.account.Status = Planned; len(image.Blobs) == 0 {
		i.account.Status = Present
		return nil
	}
	i.result().kept, i.account.Bytes = image.Instances, image.Sum()
	r.places.other.remove(image.Blobs)
	total.Add(i.destination.Repository(), image.Blobs)
	return nil
}

// measureCopy reads the manifests of an image that is to be copied: of an index that the destination has, those entries
// that it lacks.
func (r *run) measureCopy(ctx context.Context, i *item, d decision) (*sizes.Image, error) {
	image, err := sizes.Measure(ctx, d.from.Reader, d.from.top, i.platforms)
	if err != nil || d.there.Digest != d.from.top.Digest {
		return image, err
	}
	to, err := r.places.to.repository(i.destination)
	if err != nil {
		return nil, err
	}
	clear(image.Blobs)
	for _, entry := range image.Instances {
		if _, err := to.Head(ctx, entry.Digest.String()); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		part, err := sizes.Measure(ctx, d.from.Reader, entry, nil)
		if err != nil {
			return nil, err
		}
		maps.Copy(image.Blobs, part.Blobs)
	}
	return image, nil
}

// listInstances lists the images of an index that the target has, as those of one that it does not have are listed.
func (r *run) listInstances(ctx context.Context, i *item) error {
	image, err := r.places.measure(ctx, i, v1.Descriptor{})
	if err == nil {
		i.result().kept = image.Instances
	}
	return err
}

// mapped is an image with its destination.
type mapped struct{ source, destination imageset.Ref }

// writeMapping writes SOURCE=DESTINATION for each image, sorted.
func (r *run) writeMapping(list []*item) error {
	var pairs []mapped
	for _, c := range r.found.catalogs {
		source := c.op.Catalog
		if source.InRegistry() {
			source.Digest, source.Tag = c.digest, ""
		}
		pairs = append(pairs, mapped{source, c.image.destination})
	}
	var missing []mapped
	for _, i := range list {
		if i.account.Status == Blocked {
			continue
		}
		source := i.source
		switch {
		case i.kind == Release && source.Tag != "":
			source.Digest = "" // as oc-mirror names it
		case source.Digest != "":
			source.Tag = ""
		}
		own := []mapped{{source, i.destination}}
		for _, d := range i.result().kept {
			if r.o.ManifestLists {
				child, at := source, i.destination
				child.Digest, at.Digest, at.Tag = d.Digest, d.Digest, ""
				own = append(own, mapped{child, at})
			}
		}
		pairs = append(pairs, own...)
		if i.account.Status == Planned || i.account.Status == Failed {
			missing = append(missing, own...)
		}
	}
	write := func(name string, pairs []mapped) error {
		var b strings.Builder
		for _, line := range mappingLines(pairs) {
			b.WriteString(line)
			b.WriteByte('\n')
		}
		if g := r.found.graph; g != nil { // made, and not copied
			fmt.Fprintf(&b, "graph-data=%s\n", g.destination)
		}
		if b.Len() > limit.MaxMapping {
			return fmt.Errorf("%s: %w: %d bytes (limit %d): mirror fewer images at once", name, fault.ErrLimit, b.Len(),
				limit.MaxMapping)
		}
		path, err := r.o.Workspace.Write([]byte(b.String()), "dry-run", name)
		if err == nil {
			r.report.account.Files = append(r.report.account.Files, path)
			r.report.log.info(fmt.Sprintf("wrote %s", filepath.Clean(path)))
		}
		return err
	}
	if err := write("mapping.txt", pairs); err != nil {
		return err
	}
	if r.o.Mode == ToDisk && len(missing) > 0 {
		return write("missing.txt", missing)
	}
	return nil
}

// mappingLines are the lines of a mapping, sorted.
func mappingLines(pairs []mapped) []string {
	var lines []string
	for _, p := range pairs {
		lines = append(lines, p.source.String()+"="+p.destination.String())
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
