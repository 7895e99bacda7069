package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/nearest"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/delta"
	"github.com/operator-bindery/bindery/mirror/internal/sizes"
)

// archivedCatalog is a catalog in an archive: where its image is, and how its content was filtered.
type archivedCatalog struct {
	path, tag string
	digest    digest.Digest // of the catalog that it was made of
	// top and reader are the image of the catalog in the archive.
	top    v1.Descriptor
	reader *delta.Reader
	// filtered tells that the catalog was filtered exactly as the image set requests.
	filtered bool
	// narrowed tells that the catalog was filtered in another way, so that it may lack what its source has.
	narrowed bool
	// foreign tells that oc-mirror has filtered the catalog as the image set requests. Its image is built again.
	foreign bool
	// missing describes what is requested and not in the catalog, as far as the description of the archive tells.
	missing []string
}

// archivedCatalogs finds the catalogs of an image set in an archive.
type archivedCatalogs struct {
	*archive
	o      *Options
	report *report
}

// findCatalog finds a catalog in the archive: the one that was filtered as it is asked for, with nothing taken out of
// it, else its source. An archive without the whole source has only what another filter gave: what it lacks is not
// known.
func (a *archivedCatalogs) findCatalog(ctx context.Context, op imageset.Operator) (*archivedCatalog, error) {
	found, exact := a.described(op)
	switch {
	case found == nil:
		return a.findUndescribed(ctx, op)
	case exact:
		return found, nil
	}
	if source, err := a.findSource(ctx, op); err == nil && a.isWhole(ctx, op, source) {
		return source, nil
	}
	found.narrowed = !found.filtered
	if found.narrowed || a.o.Filter.Dependencies {
		found.missing = append(found.missing, unjudged)
	}
	return found, nil
}

// described returns the catalog of an entry that the description of the archive has: exact tells that it was filtered as is asked
// for, with nothing taken out of it or added to it, else it is the first of the same source. It is nil if there is none.
func (a *archivedCatalogs) described(op imageset.Operator) (found *archivedCatalog, exact bool) {
	if a.about == nil {
		return nil, false
	}
	for _, c := range a.about.Catalogs {
		same := c.Source == op.Written && op.FilterHash(c.SourceDigest) == c.Filter
		ofSource := c.Source == op.Written || op.Catalog.Digest != "" && c.SourceDigest == op.Catalog.Digest
		exact = same && len(c.LeftOut) == 0 && !a.o.Filter.Dependencies
		if !exact && (!ofSource || found != nil) {
			continue
		}
		found = &archivedCatalog{path: c.Path, tag: c.Tag, digest: c.SourceDigest, filtered: same}
		if same {
			found.missing = slices.Clone(c.Missing)
			for _, name := range c.LeftOut {
				found.missing = append(found.missing, "bundle "+name+": it was not there when the archive was written")
			}
		}
		if exact {
			break
		}
	}
	return found, exact
}

// findUndescribed finds a catalog in an archive of oc-mirror: the source, or what oc-mirror made of it, if the archive
// leaves out a part of the source that an earlier one had.
func (a *archivedCatalogs) findUndescribed(ctx context.Context, op imageset.Operator) (*archivedCatalog, error) {
	source, err := a.findNamed(ctx, op)
	if err != nil || a.isWhole(ctx, op, source) {
		return source, err
	}
	made := &archivedCatalog{path: source.path, tag: op.FilterHash(source.digest), digest: source.digest, narrowed: true, foreign: true}
	if _, err := a.reader.Repository(made.path).Head(ctx, made.tag); err != nil || !a.isWhole(ctx, op, made) {
		return source, nil // reading it says what it lacks
	}
	return made, nil
}

// findNamed finds a catalog by its name alone: oc-mirror's archives do not describe theirs. They have it under the name
// that it is to have at the target.
func (a *archivedCatalogs) findNamed(ctx context.Context, op imageset.Operator) (*archivedCatalog, error) {
	own := op
	own.TargetCatalog, own.TargetTag = "", ""
	for _, of := range []imageset.Operator{op, own} {
		at := onMedium.Catalog(of, false, "", "")
		names := []string{at.Tag}
		if op.Catalog.Digest != "" {
			names = []string{op.Catalog.Digest.String(), at.Tag}
		}
		repo := a.reader.Repository(at.Path)
		for _, name := range names {
			top, err := repo.Head(ctx, name)
			switch {
			case err == nil:
				return &archivedCatalog{path: at.Path, tag: name, digest: top.Digest}, nil
			case !errors.Is(err, fs.ErrNotExist):
				return nil, err
			}
		}
	}
	return nil, a.noCatalog(op)
}

// noCatalog is the error about a catalog that the archive does not have.
func (a *archivedCatalogs) noCatalog(op imageset.Operator) error {
	text := "the archive has no catalog " + op.Catalog.Name()
	if a.about != nil {
		var names []string
		for _, c := range a.about.Catalogs {
			names = append(names, c.Source)
		}
		if near, ok := nearest.Name(op.Written, names); ok {
			text += " (perhaps " + near + ")"
		}
	}
	return absentError(text)
}

// unjudged is what a message says of a catalog whose source is not in the archive, if the image set now asks for
// something else than the one that the archive was written for.
const unjudged = "not judged: the archive has what another image set or other flags selected, and not what the " +
	"catalog offered, so what it lacks is not known: write the archive for this image set"

// isWhole tells whether the archive, with what it leaves out since the target has it, has all of a catalog's image.
func (a *archivedCatalogs) isWhole(ctx context.Context, op imageset.Operator, c *archivedCatalog) bool {
	dest, err := a.to.repository(a.o.destination().Catalog(op, true, "", ""))
	if err != nil {
		return false
	}
	at := a.repository(c.path, dest)
	top, err := at.Head(ctx, c.tag)
	if err != nil {
		return false
	}
	image, err := sizes.Measure(ctx, at, top, nil)
	if err != nil {
		return false
	}
	for d, size := range image.Blobs {
		if a.reader.Has(d) {
			continue
		}
		blob, err := at.Blob(ctx, v1.Descriptor{Digest: d, Size: size}, 0)
		if err != nil || blob.Close() != nil {
			return false
		}
	}
	return true
}

// findSource finds the source of a catalog in the archive.
func (a *archivedCatalogs) findSource(ctx context.Context, op imageset.Operator) (*archivedCatalog, error) {
	source := op
	source.TargetCatalog, source.TargetTag = "", ""
	path := onMedium.Catalog(source, false, "", "").Path
	if a.about == nil {
		return a.findNamed(ctx, op)
	}
	for _, c := range a.about.Catalogs {
		if c.Source == op.Written || op.Catalog.Digest != "" && c.SourceDigest == op.Catalog.Digest {
			_, err := a.reader.Repository(path).Head(ctx, c.SourceDigest.String())
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("the archive has the filtered catalog and not its source %s, of which the policy wants "+
					"a signature: copy to the archive again: %w", c.SourceDigest, err)
			}
			return &archivedCatalog{path: path, tag: c.SourceDigest.String(), digest: c.SourceDigest}, err
		}
	}
	return nil, a.noCatalog(op)
}

// resolve finds out from where in the archive a catalog is read, which is then done as with any other. One that was
// filtered in the same way is taken whole: it is what the filter gave, less what was taken out. But where the policy
// wants a signature, that of the source says nothing about what was made of it: then the source is judged and filtered
// again.
func (a *archivedCatalogs) resolve(ctx context.Context, c *catalog) error {
	demanded, err := a.o.policyDemands(ctx, c.op.Catalog)
	if err != nil {
		return err
	}
	find := a.findCatalog
	if demanded {
		find = a.findSource
	}
	found, err := find(ctx, c.op)
	if err != nil {
		return err
	}
	c.onMedium, c.account.Missing = found.path+":"+found.tag, found.missing
	if len(found.missing) > 0 && a.o.Filter.Strict {
		return errors.New(strings.Join(found.missing, "; "))
	}
	for _, text := range found.missing {
		a.report.addProblem(Problem{Level: filter.Warning, Object: c.op.Written, Message: text})
	}
	repo := a.reader.Repository(found.path)
	top, err := repo.Head(ctx, found.tag)
	if err == nil {
		err = a.checkName(found.path, found.tag, top.Digest)
	}
	if err != nil {
		return err
	}
	dest, err := a.to.repository(a.o.destination().Catalog(c.op, true, "", ""))
	if err != nil {
		return err
	}
	found.top, found.reader = top, a.repository(found.path, dest)
	c.carrier = found.reader
	if demanded {
		if _, err := a.o.Images.At(ctx, c.op.Catalog.PullName(), found.reader, top, nil); err != nil {
			return err
		}
		found.digest = top.Digest
	}
	if err := a.readWhole(ctx, found); err != nil {
		return err
	}
	c.name, c.digest, c.narrowed = "oci:archive/"+found.path+":"+top.Digest.Encoded(), found.digest, found.narrowed
	c.source = fmt.Sprintf("%s:%s of the archive", found.path, found.tag)
	if found.filtered {
		c.ready = found
	}
	if found.filtered || found.foreign {
		c.selects.Full, c.selects.Packages = true, nil
	}
	// It was judged under its own name.
	for _, client := range []*images.Client{a.o.Render.Images, a.o.Spec.Images} {
		if client == nil {
			continue
		}
		if err := client.Lend(c.name, found.reader, top); err != nil {
			return err
		}
	}
	return nil
}

// readWhole reads all blobs of a catalog's image that the archive has, so that damage is found before anything is
// copied: some of the layers are otherwise read only when the catalog is published.
func (a *archivedCatalogs) readWhole(ctx context.Context, c *archivedCatalog) error {
	image, err := sizes.Measure(ctx, c.reader, c.top, nil)
	if err != nil {
		return err
	}
	for d, size := range image.Blobs {
		if !a.reader.Has(d) {
			continue
		}
		blob, err := c.reader.Blob(ctx, v1.Descriptor{Digest: d, Size: size}, 0)
		if err == nil {
			_, err = io.Copy(io.Discard, blob)
			err = errors.Join(err, blob.Close())
		}
		if err != nil {
			return &store.SourceError{Err: err}
		}
	}
	return nil
}
