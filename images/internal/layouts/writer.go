package layouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Writer writes manifests and blobs beside an image in an OCI layout, in a directory or an archive. What it writes is
// in a stage until the output is committed; its methods read the stage and, behind it, what is at the place already. It
// is safe for concurrent use, except that a change of a tag must not write tags or manifests with a subject.
//
// A manifest with a subject is listed twice, since readers look in one place only: in index.json without a name, as
// ORAS does it, and in the index that the fallback tag names, as regclient does it.
type Writer struct {
	out    *Output
	dir    string // the staged layout
	old    *Repository
	limits limit.Limits // for archives
	temp   string

	staged fileStore
	tags   sync.Mutex // is held while a tag is changed

	mu      sync.Mutex
	index   *layoutIndex
	updates []tagUpdate // under tags
}

// tagUpdate is a change of a tag. It is made again if the layout got another manifest under the tag since it was
// staged.
type tagUpdate struct {
	tag    string
	seen   digest.Digest // what the tag stood for; empty if there was none
	change func(old []byte) (text []byte, mediaType string, err error)
}

// NewWriter makes a stage for images that are written to a layout, which keeps its other ones, or to an archive, which
// is replaced and has nothing that the writer could see. limits and temp are those of [OpenRepository]. The caller
// calls [Writer.Commit], and in any case [Writer.Discard].
func NewWriter(ctx context.Context, p transport.Destination, limits limit.Limits, temp string) (*Writer, error) {
	if !isLayout(p) {
		return nil, notLayout(p)
	}
	out, err := NewOutput(ctx, p)
	if err != nil {
		return nil, err
	}
	return out.open(ctx, limits, temp)
}

// NewAddition is like [NewWriter], for what is added to the layout or the archive at a place, which must exist.
func NewAddition(ctx context.Context, p transport.Destination, limits limit.Limits, temp string) (*Writer, error) {
	in, err := StageDir(p)
	if err != nil {
		return nil, err
	}
	if !isLayout(p) {
		return nil, notLayout(p)
	}
	if _, err := os.Lstat(p.Path); err != nil {
		return nil, err
	}
	out := &Output{place: p, within: true}
	if err := out.makeStage(ctx, in); err != nil {
		return nil, err
	}
	return out.open(ctx, limits, temp)
}

// open returns the writer into the staged layout of an output, which is discarded after an error.
func (out *Output) open(ctx context.Context, limits limit.Limits, temp string) (_ *Writer, err error) {
	w := &Writer{out: out, dir: out.stage.Join(stagedLayout), limits: limits, temp: temp}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Discard())
		}
	}()
	if w.staged, err = openDirFiles(w.dir); err != nil {
		return nil, err
	}
	out.writer = w
	if w.index, err = readLayout(w.staged); err != nil {
		return nil, err
	}
	if out.place.Transport == transport.OCI || out.within {
		w.old, err = OpenRepository(ctx, out.place, limits, temp)
		if errors.Is(err, fs.ErrNotExist) && !out.within {
			err = nil // there is no layout yet
		}
	}
	return w, err
}

// Commit completes the output that is staged and puts it in its place, see [Output.Finish] and [Output.Commit].
func (w *Writer) Commit(ctx context.Context) error {
	if err := w.out.Finish(ctx); err != nil {
		return err
	}
	return w.out.Commit(ctx)
}

// Discard removes what is staged.
func (w *Writer) Discard() error { return w.out.Discard() }

// close closes what the writer reads.
func (w *Writer) close() error {
	if w == nil {
		return nil
	}
	err := w.staged.Close()
	if w.old != nil {
		err = errors.Join(err, w.old.Close())
	}
	return err
}

func (w *Writer) layout() *Repository { return newRepository(w.staged, w.now()) }

// now returns the staged index, which is not changed any more: changes replace it.
func (w *Writer) now() *layoutIndex {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.index
}

// Manifest returns the text and media type of the manifest with a digest or a tag. The error is [fs.ErrNotExist] if
// there is none.
func (w *Writer) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	text, mediaType, err := w.layout().Manifest(ctx, name)
	if errors.Is(err, fs.ErrNotExist) && w.old != nil {
		return w.old.Manifest(ctx, name)
	}
	return text, mediaType, err
}

// Head returns the descriptor of the manifest with a digest or a tag. The error is that of Manifest.
func (w *Writer) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	return store.HeadOf(ctx, w.Manifest, name)
}

// Name returns nothing: a layout may be anywhere.
func (w *Writer) Name() string { return "" }

// Can tells what a layout can do.
func (w *Writer) Can() store.Abilities { return abilities }

// Tags returns the names of images, those that were there first.
func (w *Writer) Tags(context.Context, int) (tags []string, all bool, err error) {
	if w.old != nil {
		tags = w.old.index.tags()
	}
	for _, tag := range w.now().tags() {
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags, true, nil
}

// HasBlob tells whether the stage or the layout has a blob of that digest and size, whatever its content.
func (w *Writer) HasBlob(ctx context.Context, d v1.Descriptor) (bool, error) {
	there, err := w.layout().HasBlob(ctx, d)
	if there || err != nil || w.old == nil {
		return there, err
	}
	return w.old.HasBlob(ctx, d)
}

// Blob opens a blob at an offset. From the start, the reader fails at its end if the digest or the size differs from
// the descriptor.
func (w *Writer) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	r, err := w.layout().Blob(ctx, d, from)
	if errors.Is(err, fs.ErrNotExist) && w.old != nil {
		return w.old.Blob(ctx, d, from)
	}
	return r, err
}

// Referrers returns the descriptors of the manifests whose subject is an image, those that were there first.
func (w *Writer) Referrers(ctx context.Context, subject digest.Digest,
	has func(tag string) bool) ([]v1.Descriptor, error) {
	added, err := w.layout().Referrers(ctx, subject, has)
	if err != nil || w.old == nil {
		return added, err
	}
	found, err := w.old.Referrers(ctx, subject, has)
	return store.Once(append(found, added...)), err
}

// WriteBlob writes a blob unless it is there. It is opened at most once.
func (w *Writer) WriteBlob(ctx context.Context, d v1.Descriptor, c store.Content) (from string, err error) {
	return "", w.writeBlob(ctx, d, c)
}

func (w *Writer) writeBlob(ctx context.Context, d v1.Descriptor, c store.Content) (err error) {
	if err := verify.Digest(d.Digest); err != nil {
		return err
	}
	if d.Size < 0 {
		return fmt.Errorf("%w: %s has the size %d", fault.ErrInvalid, d.Digest, d.Size)
	}
	to := BlobPath(w.dir, d.Digest)
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if done, err := linked(ctx, c, false, to); done || err != nil {
		return err
	}
	if w.old != nil {
		if dir, ok := w.old.files.(*dirFiles); ok {
			if done, err := reuse(ctx, BlobPath(dir.root.Name(), d.Digest), to, d); done || err != nil {
				return err
			}
		} else if r, err := w.old.Blob(ctx, d, 0); err == nil {
			// Another process may replace the archive: the stage gets the blob although the archive has it now.
			err = errors.Join(w.write(to, r), r.Close())
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	}
	if done, err := linked(ctx, c, true, to); done || err != nil {
		return err
	}
	r, err := c.Open(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return w.write(to, verify.NewReader(ctxio.Reader{Ctx: ctx, R: r}, d.Digest, d.Size))
}

// linked links the file of a blob into the stage, if there is one, or with make if one can be made, in the same file
// system.
func linked(ctx context.Context, c store.Content, make bool, to string) (bool, error) {
	if c.File == nil {
		return false, nil
	}
	path, ok := c.File(ctx, make)
	if !ok {
		return false, nil
	}
	if err := os.Link(path, to); err != nil && !cannotLink(err) && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	_, err := os.Lstat(to)
	return err == nil, nil
}

// reuse links a blob of the old layout into the new one if it is intact, and tells whether it did.
func reuse(ctx context.Context, from, to string, d v1.Descriptor) (bool, error) {
	f, err := regularfile.Open(from)
	if err != nil {
		return false, nil // missing or not readable: it is copied
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, verify.NewReader(ctxio.Reader{Ctx: ctx, R: f}, d.Digest, d.Size))
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		return false, nil
	}
	switch err := os.Link(from, to); {
	case err == nil || errors.Is(err, fs.ErrExist):
		return true, nil
	case cannotLink(err) || errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}

// write writes a file of the stage, so that no other goroutine reads a part.
func (w *Writer) write(to string, r io.Reader) error {
	return atomicfs.WriteBlob(filepath.Dir(w.dir), to, r)
}

// WriteManifest writes a manifest under its digest or under a tag. One with a subject is listed among the referrers of
// the subject; another one without a tag is reached through a manifest or a tag that refers to it. A condition is not
// looked at.
// The error is [reflist.ErrNotList] if the fallback tag of the subject is no OCI index.
func (w *Writer) WriteManifest(ctx context.Context, text []byte, mediaType string, o store.WriteOptions) error {
	d, subject, err := reflist.Describe(text, mediaType)
	if err != nil {
		return err
	}
	if err := w.writeText(ctx, text); err != nil {
		return err
	}
	if o.Tag != "" || o.Listed {
		w.list(v1.Descriptor{MediaType: mediaType, Digest: d.Digest, Size: d.Size}, o.Tag, true)
	}
	if subject == nil {
		return nil
	}
	w.list(d, "", false)
	err = w.UpdateTag(ctx, reflist.Tag(subject.Digest), func(old []byte) ([]byte, string, error) {
		list, err := reflist.AddTag(old, subject.Digest, d)
		return list, v1.MediaTypeImageIndex, err
	})
	if err != nil {
		return fmt.Errorf("listing %s among the referrers of %s: %w", d.Digest, subject.Digest, err)
	}
	return nil
}

func (w *Writer) writeText(ctx context.Context, text []byte) error {
	if err := verify.ManifestSize(int64(len(text))); err != nil {
		return err
	}
	d := v1.Descriptor{Digest: digest.FromBytes(text), Size: int64(len(text))}
	return w.writeBlob(ctx, d, store.Bytes(text))
}

// list adds a manifest to the staged index: under a tag, in place of what the tag stood for, or without one, unless the
// stage has an entry with the digest, or the layout has one and it is no image.
func (w *Writer) list(d v1.Descriptor, tag string, image bool) {
	if tag != "" {
		d.Annotations = map[string]string{v1.AnnotationRefName: tag}
	} else if _, named := d.Annotations[v1.AnnotationRefName]; named {
		// In an index.json the annotation would be the name of an image.
		d.Annotations = maps.Clone(d.Annotations)
		delete(d.Annotations, v1.AnnotationRefName)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	same := func(e indexEntry) bool { return e.Digest == d.Digest }
	if image && tag == "" {
		same = func(e indexEntry) bool { return e.Digest == d.Digest && e.Annotations[v1.AnnotationRefName] == "" }
	}
	if tag == "" && (slices.ContainsFunc(w.index.Entries, same) ||
		!image && w.old != nil && slices.ContainsFunc(w.old.index.Entries, same)) {
		return
	}
	text, _ := json.Marshal(d) // strings and numbers alone cannot fail
	next := &layoutIndex{Fields: w.index.Fields, Entries: slices.Clone(w.index.Entries)}
	if at := next.tagged(tag); at >= 0 {
		next.Entries[at] = indexEntry{d, text}
	} else {
		next.Entries = append(next.Entries, indexEntry{d, text})
	}
	w.index = next
}

// UpdateTag replaces the manifest of a tag by what change returns for the present one, which is nil if there is none. A
// nil text leaves it. change is called again when the output is committed if another process has written the tag
// meanwhile: it must be usable until then.
func (w *Writer) UpdateTag(ctx context.Context, tag string,
	change func(old []byte) (text []byte, mediaType string, err error)) error {
	w.tags.Lock()
	defer w.tags.Unlock()
	u := tagUpdate{tag: tag, change: change}
	if w.old != nil {
		if at := w.old.index.tagged(tag); at >= 0 {
			u.seen = w.old.index.Entries[at].Digest
		}
	}
	old, _, err := w.Manifest(ctx, tag)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := w.apply(ctx, u, old); err != nil {
		return err
	}
	w.updates = append(w.updates, u)
	return nil
}

// apply makes a change of a tag whose manifest is old, or nil, and returns what the tag stands for then.
func (w *Writer) apply(ctx context.Context, u tagUpdate, old []byte) ([]byte, error) {
	text, mediaType, err := u.change(old)
	if err != nil || text == nil {
		return old, err
	}
	if err := w.writeText(ctx, text); err != nil {
		return old, err
	}
	w.list(v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}, u.tag, true)
	return text, nil
}

// reapplyTags makes the changes of those tags again that another process has written: in dir is the layout as it is
// now, with its index. The caller holds the lock of the layout.
func (w *Writer) reapplyTags(ctx context.Context, dir string, index *layoutIndex) error {
	if index == nil {
		index = &layoutIndex{}
	}
	files, err := openDirFiles(dir)
	if err != nil {
		return err
	}
	defer files.Close()
	now := newRepository(files, index)
	w.tags.Lock()
	defer w.tags.Unlock()
	texts := map[string][]byte{} // of the tags that others have written
	for _, u := range w.updates {
		text, changed := texts[u.tag]
		if !changed {
			var is digest.Digest
			if at := index.tagged(u.tag); at >= 0 {
				is = index.Entries[at].Digest
			}
			if is == u.seen {
				continue
			}
			w.unlist(u.tag)
			if is != "" {
				if text, _, err = now.Manifest(ctx, u.tag); err != nil {
					return err
				}
			}
		}
		if texts[u.tag], err = w.apply(ctx, u, text); err != nil {
			return fmt.Errorf("tag %s: %w", u.tag, err)
		}
	}
	return w.flush()
}

// unlist removes a tag from the staged index.
func (w *Writer) unlist(tag string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := w.index.tagged(tag); at >= 0 {
		w.index = &layoutIndex{Fields: w.index.Fields, Entries: slices.Delete(slices.Clone(w.index.Entries), at, at+1)}
	}
}

// flush writes the staged index.
func (w *Writer) flush() error {
	text, err := w.now().merge(&layoutIndex{})
	if err != nil {
		return err
	}
	path := filepath.Join(w.dir, indexFile)
	if err := os.Remove(path); err != nil {
		return err
	}
	return WriteSync(path, text)
}
