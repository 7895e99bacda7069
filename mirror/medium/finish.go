package medium

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Account is what an archive consists of.
type Account struct {
	Segments []Segment `json:"archives"`
	// Bytes is the size of all segments.
	Bytes int64 `json:"bytes"`
	// Blobs are the blobs and manifests in the archive, BlobBytes their size.
	Blobs     int   `json:"blobs"`
	BlobBytes int64 `json:"blobBytes"`
	// LeftOut is how many blobs and manifests are left out, LeftOutBytes their size.
	LeftOut      int   `json:"leftOut"`
	LeftOutBytes int64 `json:"leftOutBytes"`
	// Removed are the segments of an older archive that were there, also those that new ones of the name replaced.
	Removed []string `json:"removed,omitempty"`
}

// AddFile adds a file of the run: working-dir/... or isc_TIME. They come after all blobs: what is behind the first file
// is not kept if the run is interrupted. The size must be that of the content.
func (w *Writer) AddFile(ctx context.Context, name string, size int64, content io.Reader) error {
	if err := checkFileName(name); err != nil {
		return err
	}
	if err := w.acquire(ctx); err != nil {
		return err
	}
	defer w.release()
	return w.addFile(ctx, name, size, content)
}

// checkFileName returns an error for a name that no reader would take.
func checkFileName(name string) error {
	if !fs.ValidPath(name) || name == workingDir+contentsFile ||
		!strings.HasPrefix(name, workingDir) && (!strings.HasPrefix(name, configPrefix) || path.Dir(name) != ".") {
		return fmt.Errorf("%w: %.200q is no file of an archive", fault.ErrInvalid, name)
	}
	return nil
}

func (w *Writer) addFile(ctx context.Context, name string, size int64, content io.Reader) error {
	if w.names[name] {
		return fmt.Errorf("%w: %.200q is in the archive", fault.ErrInvalid, name)
	}
	err := w.writeMember(name, size, nil, func(to io.Writer) error {
		_, err := ctxio.Copy(to, io.LimitReader(ctxio.Reader{Ctx: ctx, R: content}, size+1))
		return err
	})
	if err == nil {
		w.names[name] = true
	}
	return err
}

func (w *Writer) add(ctx context.Context, m member) error {
	return w.addFile(ctx, m.name, int64(len(m.content)), strings.NewReader(string(m.content)))
}

// writeText writes a manifest of the archive's own making. The caller has the turn.
func (w *Writer) writeText(by *WriterRepository, text []byte, mediaType string) (v1.Descriptor, error) {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
	k, err := keyOf(d.Digest)
	if err != nil || w.Has(d.Digest) {
		return d, err
	}
	if w.leave(k, by, d) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.leftOut[k].mediaType = mediaType
		return d, nil
	}
	return d, w.writeMember(w.o.Form.blobName(k), d.Size, &ownBlob{k, by}, func(to io.Writer) error {
		_, err := to.Write(text)
		return err
	})
}

// Finish writes what makes an archive of the blobs, makes all segments durable, gives them their names and removes the
// segments of an older archive. Before that, and after an error, the older archive is as it was. If the process is
// killed while names are given, readers take the new archive all the same, and the next run finishes it. The error is
// of the class [fault.ErrIntegrity] if an image that has a tag lacks a blob that was neither written nor left out. The
// writer can then only be closed; [Create] goes on with its blobs.
func (w *Writer) Finish(ctx context.Context, about Contents) (*Account, error) {
	if err := w.acquire(ctx); err != nil {
		return nil, err
	}
	defer w.release()
	all, err := w.listings()
	if err != nil {
		return nil, err
	}
	if err := w.addListings(ctx, all); err != nil {
		return nil, err
	}
	account := w.account()
	if err := w.addContents(ctx, about); err != nil {
		return nil, err
	}
	if err := w.endSegment(); err != nil {
		return nil, err
	}
	w.ended = true
	account.Segments = w.done
	for _, s := range w.done {
		account.Bytes += s.Bytes
	}
	account.Removed, err = commit(w.root, w.dir, w.done)
	return account, err
}

// addListings writes the index or the links.
func (w *Writer) addListings(ctx context.Context, all []*listing) error {
	if w.o.Form == OCI {
		members, err := ociMembers(all)
		if err != nil {
			return err
		}
		for _, m := range members {
			if err := w.add(ctx, m); err != nil {
				return err
			}
		}
		return nil
	}
	for _, l := range all {
		if err := w.fallbackLists(l); err != nil {
			return fmt.Errorf("%s: list of referrers: %w", l.path, err)
		}
	}
	for _, l := range all {
		for m := range l.links() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := w.writeMember(m.name, int64(len(m.content)), nil, func(to io.Writer) error {
				_, err := to.Write(m.content)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// account counts what is in the archive.
func (w *Writer) account() *Account {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &Account{Blobs: len(w.blobs), LeftOut: len(w.leftOut)}
	for _, p := range w.blobs {
		a.BlobBytes += p.size
	}
	for _, o := range w.leftOut {
		a.LeftOutBytes += o.size
	}
	return a
}

// addContents writes the description as the last member.
func (w *Writer) addContents(ctx context.Context, about Contents) error {
	about.Version, about.Form, about.Key, about.LeftOut = ContentsVersion, w.o.Form, w.o.Key, w.leftOutList(about)
	for {
		about.Segments = slices.Clone(w.done)
		about.Segments = append(about.Segments, Segment{Name: SegmentName(len(w.done) + 1)})
		text, err := json.MarshalIndent(about, "", " ")
		if err != nil {
			return err
		}
		m := member{w.o.Form.contentsName(), append(text, '\n')}
		if w.names[m.name] {
			return fmt.Errorf("%w: %q is in the archive", fault.ErrInvalid, m.name)
		}
		before := len(w.done)
		head, err := header(m.name, int64(len(m.content)))
		if err != nil {
			return err
		}
		if err := w.room(m.name, int64(len(m.content)), head); err != nil {
			return err
		}
		if len(w.done) == before {
			return w.add(ctx, m)
		}
		// It is in the next segment, and the one before is among those with a sum.
	}
}

// leftOutList returns what is left out, by digest. Times that the caller knows stay.
func (w *Writer) leftOutList(about Contents) []LeftOut {
	known := map[digest.Digest]LeftOut{}
	for _, l := range about.LeftOut {
		known[l.Digest] = l
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := map[key]bool{}
	for k := range maps.Keys(w.leftOut) {
		keys[k] = true
	}
	var list []LeftOut
	for _, k := range sorted(keys) {
		a, d := w.leftOut[k], k.digest()
		l := LeftOut{Digest: d, Size: a.size, MediaType: a.mediaType, Since: w.o.Since}
		if since := known[d].Since; since != nil {
			l.Since = since
		}
		if w.o.Where != nil {
			l.Repositories = w.o.Where(d)
		}
		list = append(list, l)
	}
	return list
}

// LeftOut returns what is left out so far, by digest.
func (w *Writer) LeftOut() []LeftOut { return w.leftOutList(Contents{}) }

// Had returns what is in the archive and what is left out, for [WriteHistory]: each digest with the repository that
// wrote it first.
func (w *Writer) Had() map[digest.Digest]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := make(map[digest.Digest]string, len(w.blobs)+len(w.leftOut))
	add := func(k key, by *WriterRepository) {
		path := ""
		if by != nil {
			path = by.path
		}
		had[k.digest()] = path
	}
	for k, p := range w.blobs {
		add(k, p.by)
	}
	for k, a := range w.leftOut {
		add(k, a.by)
	}
	return had
}

// commit gives the segments their names. The list of them, which is written first, tells readers and the next run that
// this has begun.
func commit(root *os.Root, dir string, segments []Segment) (removed []string, err error) {
	text, err := json.Marshal(segments)
	if err != nil {
		return nil, err
	}
	if err := writeSync(root, commitFile, text); err != nil {
		return nil, err
	}
	if err := atomicfs.SyncDir(dir); err != nil {
		return nil, err
	}
	return rollForward(root, dir, segments)
}

// rollForward gives those segments their names that have none yet, and removes others.
func rollForward(root *os.Root, dir string, segments []Segment) (removed []string, err error) {
	removed, err = segmentNames(root)
	if err != nil {
		return nil, err
	}
	for i, s := range segments {
		err := root.Rename(partial(i+1), s.Name)
		if errors.Is(err, fs.ErrNotExist) {
			_, err = root.Lstat(s.Name) // it has its name
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range removed {
		if !slices.ContainsFunc(segments, func(s Segment) bool { return s.Name == name }) {
			if err := root.Remove(name); err != nil {
				return nil, err
			}
		}
	}
	if err := atomicfs.SyncDir(dir); err != nil {
		return nil, err
	}
	// The journal may stay where open files cannot be removed: it is that of a run that left nothing.
	_ = root.Remove(journalFile)
	return removed, root.Remove(commitFile)
}

// writeSync writes a file under a temporary name and renames it.
func writeSync(root *os.Root, name string, text []byte) error {
	f, err := root.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, root.Remove(name+".new"))
	}
	return root.Rename(name+".new", name)
}
