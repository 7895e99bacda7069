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
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/nearest"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// openReader opens the medium.
func (r *run) openReader(ctx context.Context) (err error) {
	reader, err := medium.Open(ctx, r.o.Archive, medium.ReadOptions{})
	if err != nil {
		return err
	}
	r.readFrom(reader)
	r.elsewhere = map[digest.Digest][]string{}
	if r.contained != nil {
		for _, l := range r.contained.LeftOut {
			for _, name := range l.Repositories {
				at := r.o.Target.Image(imageset.Ref{Path: name})
				r.elsewhere[l.Digest] = append(r.elsewhere[l.Digest], at.Repository())
			}
		}
	}
	return r.checkCountedOn(ctx)
}

// readFrom makes a medium the source.
func (r *run) readFrom(reader *medium.Reader) {
	r.reader, r.contained, r.from = reader, reader.Contents(), mediumOrigin{r}
	r.described = map[string][]digest.Digest{}
	if r.contained == nil {
		return
	}
	add := func(path, tag string, d digest.Digest) {
		if name := path + ":" + tag; d != "" {
			r.described[name] = append(r.described[name], d)
		}
	}
	for _, i := range r.contained.Images {
		add(i.Path, i.Tag, i.Digest)
	}
	for _, c := range r.contained.Catalogs {
		add(c.Path, c.Tag, c.Digest)
	}
}

// checkName returns an error if a name stands for another image than the description of the medium says.
func (r *run) checkName(path, tag string, d digest.Digest) error {
	if known := r.described[path+":"+tag]; len(known) > 0 && !slices.Contains(known, d) {
		return fmt.Errorf("%w: the archive has %s as %s:%s, and its description says %s: it was changed after it was "+
			"written", fault.ErrIntegrity, d, path, tag, known[0])
	}
	return nil
}

// otherPlaces are the repositories of the target from which a blob that the medium leaves out can be mounted.
func (r *run) otherPlaces(d digest.Digest) []string {
	return r.elsewhere[d]
}

// mediumOrigin reads images from a medium, and what the medium leaves out from the target.
type mediumOrigin struct{ run *run }

func (o mediumOrigin) open(ctx context.Context, i *item) (*opened, error) {
	at := i.onMedium
	to, err := o.run.to.repository(i.destination)
	if err != nil {
		return nil, err
	}
	from := &deltaReader{run: o.run, medium: o.run.reader.Repository(at.Path), target: to}
	top, err := o.head(ctx, i)
	if err == nil {
		err = o.run.checkName(at.Path, at.Tag, top.Digest)
	}
	if i.source.Digest != "" && (errors.Is(err, fs.ErrNotExist) || err == nil && top.Digest != i.source.Digest) {
		// The tag may be that of another image of the archive.
		top, err = from.medium.Head(ctx, i.source.Digest.String())
		if errors.Is(err, fs.ErrNotExist) {
			top, err = to.Head(ctx, i.source.Digest.String())
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("neither the archive nor the registry has %s:%s: %w", at.Path, at.Tag, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	out := &opened{from, top, func() error { return nil }, nil}
	demanded, err := o.run.demands(ctx, i.source)
	if demanded {
		out.judged, err = o.run.o.Images.At(ctx, i.source.PullName(), from, top)
		if err == nil {
			out.Reader, out.top = out.judged, out.judged.Top
		}
	}
	return out, err
}

func (o mediumOrigin) head(ctx context.Context, i *item) (v1.Descriptor, error) {
	return o.run.reader.Repository(i.onMedium.Path).Head(ctx, i.onMedium.Tag)
}

// deltaReader reads a repository of a medium, and what the medium leaves out from the target, which has it.
type deltaReader struct {
	run    *run
	medium store.Reader
	target store.Reader
}

func (d *deltaReader) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	text, kind, err := d.medium.Manifest(ctx, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, kind, err
	}
	if digest.Digest(name).Validate() != nil {
		// A tag of what is left out, such as the signatures of an image that an earlier archive carried.
		of, herr := d.medium.Head(ctx, name)
		if herr != nil {
			return nil, "", err
		}
		name = of.Digest.String()
	}
	there, thereKind, failed := d.target.Manifest(ctx, name)
	if errors.Is(failed, fs.ErrNotExist) {
		return nil, "", err // it may say that the registry was to have it
	}
	return there, thereKind, failed
}

// Name returns the path of the repository.
func (d *deltaReader) Name() string { return d.medium.Name() }

// Can tells what the medium can do, and where else the target has what the medium leaves out.
func (d *deltaReader) Can() store.Abilities {
	can := d.medium.Can()
	can.Repositories = d.run.otherPlaces
	return can
}

// Head returns the descriptor of a manifest on the medium.
func (d *deltaReader) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	return d.medium.Head(ctx, name)
}

// HasBlob tells whether the medium or the target has a blob.
func (d *deltaReader) HasBlob(ctx context.Context, want v1.Descriptor) (bool, error) {
	if there, err := d.medium.HasBlob(ctx, want); there || err != nil {
		return there, err
	}
	return d.target.HasBlob(ctx, want)
}

// Tags returns the tags on the medium.
func (d *deltaReader) Tags(ctx context.Context, pages int) (tags []string, all bool, err error) {
	return d.medium.Tags(ctx, pages)
}

func (d *deltaReader) Blob(ctx context.Context, want v1.Descriptor, from int64) (io.ReadCloser, error) {
	r, absent := d.medium.Blob(ctx, want, from)
	if !errors.Is(absent, fs.ErrNotExist) {
		return r, absent
	}
	if r, err := d.target.Blob(ctx, want, from); err == nil {
		return r, nil
	}
	for _, name := range d.run.otherPlaces(want.Digest) {
		at, err := d.run.o.Remote.Repository(name)
		if err != nil {
			continue
		}
		if r, err := at.Blob(ctx, want, from); err == nil {
			return r, nil
		}
	}
	return nil, absent
}

func (d *deltaReader) Referrers(ctx context.Context, subject digest.Digest,
	has func(tag string) bool) ([]v1.Descriptor, error) {
	return d.medium.Referrers(ctx, subject, has)
}

// onMediumCatalog is where a catalog is on the medium, and what it is.
type onMediumCatalog struct {
	path, tag string
	digest    digest.Digest // of its source
	// top and reader are its image there.
	top    v1.Descriptor
	reader store.Reader
	// filtered tells that it is the result of the very filter that is requested.
	filtered bool
	// narrowed tells that it is the result of another filter, and not what its source has.
	narrowed bool
	// missing is what is asked for and not in it, as far as the description of the medium says.
	missing []string
}

// findCatalog finds a catalog on the medium: the one that was filtered as it is asked for, with nothing taken out of it,
// else its source. An archive without the whole source has only what another filter gave: what it lacks is not known.
func (r *run) findCatalog(ctx context.Context, op imageset.Operator) (*onMediumCatalog, error) {
	if r.contained != nil {
		var other *onMediumCatalog
		for _, c := range r.contained.Catalogs {
			same := c.Source == op.Written && op.FilterHash(c.SourceDigest) == c.Filter
			found := &onMediumCatalog{path: c.Path, tag: c.Tag, digest: c.SourceDigest, filtered: same}
			if same {
				found.missing = slices.Clone(c.Missing)
			}
			if same && len(c.LeftOut) == 0 && !r.o.Filter.Dependencies {
				return found, nil
			}
			if other == nil && (same || c.Source == op.Written ||
				op.Catalog.Digest != "" && c.SourceDigest == op.Catalog.Digest) {
				other = found
				for _, name := range c.LeftOut {
					if same {
						other.missing = append(other.missing, "bundle "+name+": it was not there when the archive was written")
					}
				}
			}
		}
		if other != nil {
			if source, err := r.findSource(ctx, op); err == nil && r.isWhole(ctx, op, source) {
				return source, nil
			}
			other.narrowed = !other.filtered
			if other.narrowed || r.o.Filter.Dependencies {
				other.missing = append(other.missing, unjudged)
			}
			return other, nil
		}
	}
	source := op
	source.TargetCatalog, source.TargetTag = "", ""
	tags := []string{onMedium.Catalog(source, false, "", "").Tag}
	path := onMedium.Catalog(source, false, "", "").Path
	if op.TargetTag != "" {
		tags = append(tags, op.TargetTag) // a pinned image set has the tag there
	}
	repo := r.reader.Repository(path)
	names := tags
	if op.Catalog.Digest != "" {
		names = append([]string{op.Catalog.Digest.String()}, tags...)
	}
	for _, name := range names {
		top, err := repo.Head(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &onMediumCatalog{path: path, tag: name, digest: top.Digest}, nil
	}
	return nil, r.noCatalog(op)
}

// noCatalog is the error about a catalog that the medium does not have.
func (r *run) noCatalog(op imageset.Operator) error {
	text := "the archive has no catalog " + op.Catalog.Name()
	if r.contained != nil {
		var names []string
		for _, c := range r.contained.Catalogs {
			names = append(names, c.Source)
		}
		if near, ok := nearest.Name(op.Written, names); ok {
			text += " (perhaps " + near + ")"
		}
	}
	return absentError(text)
}

// unjudged is said of a catalog whose source is not on the medium, where something else is asked for than then.
const unjudged = "not judged: the archive has what another image set or other flags selected, and not what the catalog " +
	"offered, so what it lacks is not known: write the archive for this image set"

// isWhole tells whether the medium, with what it leaves out since the target has it, has all of a catalog's image.
func (r *run) isWhole(ctx context.Context, op imageset.Operator, c *onMediumCatalog) bool {
	dest, err := r.to.repository(r.place().Catalog(op, true, "", ""))
	if err != nil {
		return false
	}
	at := &deltaReader{r, r.reader.Repository(c.path), dest}
	top, err := at.medium.Head(ctx, c.tag)
	if err != nil {
		return false
	}
	sizes, err := measure(ctx, at, top, nil)
	if err != nil {
		return false
	}
	for d, size := range sizes.blobs {
		if r.reader.Has(d) {
			continue
		}
		blob, err := at.Blob(ctx, v1.Descriptor{Digest: d, Size: size}, 0)
		if err != nil || blob.Close() != nil {
			return false
		}
	}
	return true
}

// findSource finds the source of a catalog on the medium.
func (r *run) findSource(ctx context.Context, op imageset.Operator) (*onMediumCatalog, error) {
	source := op
	source.TargetCatalog, source.TargetTag = "", ""
	path := onMedium.Catalog(source, false, "", "").Path
	if r.contained == nil {
		return r.findCatalog(ctx, op) // oc-mirror's own archives have it under its name
	}
	for _, c := range r.contained.Catalogs {
		if c.Source == op.Written || op.Catalog.Digest != "" && c.SourceDigest == op.Catalog.Digest {
			_, err := r.reader.Repository(path).Head(ctx, c.SourceDigest.String())
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("the archive has the filtered catalog and not its source %s, of which the policy wants "+
					"a signature: copy to the archive again: %w", c.SourceDigest, err)
			}
			return &onMediumCatalog{path: path, tag: c.SourceDigest.String(), digest: c.SourceDigest}, err
		}
	}
	return nil, r.noCatalog(op)
}

// catalogOnMedium finds a catalog on the medium, where it is read as any other. One that was filtered in the same way is
// taken whole: it is what the filter gave, less what was taken out. But where the policy wants a signature, that of the
// source says nothing about what was made of it: then the source is judged and filtered again.
func (r *run) catalogOnMedium(ctx context.Context, c *catalog) error {
	demanded, err := r.demands(ctx, c.op.Catalog)
	if err != nil {
		return err
	}
	find := r.findCatalog
	if demanded {
		find = r.findSource
	}
	found, err := find(ctx, c.op)
	if err != nil {
		return err
	}
	c.onMedium, c.account.Missing = found.path+":"+found.tag, found.missing
	if len(found.missing) > 0 && r.o.Filter.Strict {
		return errors.New(strings.Join(found.missing, "; "))
	}
	for _, text := range found.missing {
		r.note(Problem{Level: Warning, Object: c.op.Written, Message: text})
	}
	repo := r.reader.Repository(found.path)
	top, err := repo.Head(ctx, found.tag)
	if err == nil {
		err = r.checkName(found.path, found.tag, top.Digest)
	}
	if err != nil {
		return err
	}
	dest, err := r.to.repository(r.place().Catalog(c.op, true, "", ""))
	if err != nil {
		return err
	}
	found.top, found.reader = top, &deltaReader{r, repo, dest}
	c.carrier = found.reader
	if demanded {
		judged, err := r.o.Images.At(ctx, c.op.Catalog.PullName(), found.reader, top)
		if err == nil {
			err = judged.CheckEntries(ctx, nil)
		}
		if err != nil {
			return err
		}
		found.digest = top.Digest
	}
	if err := r.readCatalog(ctx, found); err != nil {
		return err
	}
	c.name, c.digest, c.narrowed = "oci:archive/"+found.path+":"+top.Digest.Encoded(), found.digest, found.narrowed
	c.source = fmt.Sprintf("%s:%s of the archive", found.path, found.tag)
	if found.filtered {
		c.ready = found
		c.selects.Full, c.selects.Packages = true, nil
	}
	// It was judged under its own name.
	for _, client := range []*images.Client{r.o.Render.Images, r.o.Spec.Images} {
		if client == nil {
			continue
		}
		if err := client.Lend(c.name, found.reader, top); err != nil {
			return err
		}
	}
	return nil
}

// readCatalog reads all that the medium has of a catalog's image. Of a damaged archive nothing is copied: a layer of the
// catalog may be one that nothing else reads until the catalog is published.
func (r *run) readCatalog(ctx context.Context, c *onMediumCatalog) error {
	sizes, err := measure(ctx, c.reader, c.top, nil)
	if err != nil {
		return err
	}
	for d, size := range sizes.blobs {
		if !r.reader.Has(d) {
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
