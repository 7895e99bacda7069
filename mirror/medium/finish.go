package medium

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

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
	// Unused are those of them that belong to no image: they were written for an image that failed, or that an
	// interrupted run with the same key wanted and this run does not. They are harmless and take space.
	Unused      int   `json:"unused,omitempty"`
	UnusedBytes int64 `json:"unusedBytes,omitempty"`
	// LeftOut is how many blobs and manifests are left out, LeftOutBytes their size.
	LeftOut      int   `json:"leftOut"`
	LeftOutBytes int64 `json:"leftOutBytes"`
	// Removed are the segments of an older archive that were there, also those that new ones of the name replaced.
	Removed []string `json:"removed,omitempty"`
	// Kept are the segments of an older archive, which the new ones follow.
	Kept []string `json:"kept,omitempty"`
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
	if err := full(len(w.names)+1, maxFiles, "files"); err != nil {
		return err
	}
	err := w.writeMember(name, size, func(to io.Writer) error {
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

// writeText writes a manifest of the archive's own making. The caller holds w.turn.
func (w *Writer) writeText(by *writerRepository, text []byte, mediaType string) (v1.Descriptor, error) {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
	k, err := keyOf(d.Digest)
	if err != nil || w.Has(d.Digest) {
		return d, err
	}
	left, err := w.leave(k, by, d)
	if err != nil {
		return d, err
	}
	if left {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.leftOut[k].mediaType = mediaType
		return d, nil
	}
	r, err := w.reserve(w.o.Form.blobName(k), d.Size)
	if err != nil {
		return d, err
	}
	err = w.fill(r, func(to io.Writer) error {
		_, err := to.Write(text)
		return err
	})
	if err != nil {
		_, failed := r.fail()
		return d, errors.Join(err, failed)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blobs[k] = place{r.s.n, r.at, d.Size, by}
	return d, nil
}

// Finish writes what makes an archive of the blobs, makes all segments durable, gives them their names and removes the
// segments of an older archive. Before that, and after an error, the older archive is as it was. If the process is
// killed while names are given, readers take the new archive anyway, and the next run finishes it. The error is
// of the class [fault.ErrIntegrity] if an image that has a tag lacks a blob that was neither written nor left out. The
// writer can then only be closed; [Create] goes on with its blobs. A blob that was given up while another one was
// written behind it, and that was not written again, leaves a file .void/HEX without a meaning.
func (w *Writer) Finish(ctx context.Context, about Contents) (*Account, error) {
	if err := w.acquire(ctx); err != nil {
		return nil, err
	}
	defer w.release()
	if err := w.voidHoles(); err != nil {
		return nil, err
	}
	all, err := w.listings(ctx)
	if err != nil {
		return nil, err
	}
	tags, revisions := 0, 0
	for _, l := range all {
		tags, revisions = tags+len(l.tags)+len(l.attached), revisions+len(l.manifests)+len(l.attached)
	}
	if err := errors.Join(full(tags, maxTags, "tags"), full(revisions, maxRevisions, "manifests"),
		full(len(w.blobs)+len(all), maxIndexed, "blobs")); err != nil {
		return nil, err
	}
	if err := w.addListings(ctx, all); err != nil {
		return nil, err
	}
	account := w.account(all)
	if account.Kept, err = w.keep(all); err != nil {
		return nil, err
	}
	if err := w.addContents(ctx, about); err != nil {
		return nil, err
	}
	if err := w.endSegment(); err != nil {
		return nil, err
	}
	w.ended = true
	for _, s := range w.segments {
		if s.result == nil {
			return nil, fmt.Errorf("%w: %s is still written", fault.ErrInvalid, partial(s.n))
		}
		account.Segments = append(account.Segments, w.named(s))
		account.Bytes += s.result.Bytes
	}
	account.Removed, err = commit(w.root, w.dir, pending{account.Kept, account.Segments})
	return account, err
}

// named is a complete segment with the name that it gets.
func (w *Writer) named(s *segment) Segment {
	named := *s.result
	named.Name = segmentName(w.base + s.n)
	return named
}

// keep decides whether an archive that is there stays, and returns its segments if so. It does unless the new one has
// all of its blobs, manifests and tags. The caller holds w.turn.
func (w *Writer) keep(all []*listing) ([]string, error) {
	if w.kept == nil || w.covers(all) {
		return nil, nil
	}
	names, err := segmentNames(w.root)
	if err != nil {
		return nil, err
	}
	if w.base, err = segmentNumber(names[len(names)-1]); err == nil && w.base+len(w.segments)+1 > maxSegments {
		err = fmt.Errorf("%w: more than %d segments: move the older archives elsewhere", fault.ErrLimit, maxSegments)
	}
	return names, err
}

// covers tells whether the new archive has all that the one which is there has.
func (w *Writer) covers(all []*listing) bool {
	tags := map[string]map[string]v1.Descriptor{}
	for _, l := range all {
		tags[l.path] = l.tags
	}
	for path, r := range w.kept.repos {
		for tag := range r.tags {
			if _, has := tags[path][tag]; !has {
				return false
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, chunk := range w.kept.blobs.chunks {
		for _, b := range chunk {
			if _, has := w.blobs[b.k]; !has {
				return false
			}
		}
	}
	return true
}

// voidHoles makes files without a meaning of the places of blobs that failed and were not written again. The caller
// holds w.turn.
func (w *Writer) voidHoles() error {
	if err := w.trimSegment(); err != nil {
		return err
	}
	for k, r := range w.holes {
		head, err := header(voidPrefix+k.digest().Encoded(), r.size)
		if err != nil {
			return err
		}
		if int64(len(head)) != r.at-r.start {
			return fmt.Errorf("%w: a header of %d bytes", fault.ErrInvalid, len(head))
		}
		if _, err := r.s.f.WriteAt(head, r.start); err != nil {
			return w.written(err)
		}
		if err := r.finish(); err != nil {
			return w.written(err)
		}
		delete(w.holes, k)
	}
	for _, s := range w.segments {
		if s.settled() {
			if err := s.close(); err != nil {
				return w.written(err)
			}
		}
	}
	return nil
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
			err := w.writeMember(m.name, int64(len(m.content)), func(to io.Writer) error {
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
func (w *Writer) account(all []*listing) *Account {
	used := map[key]bool{}
	for _, l := range all {
		maps.Copy(used, l.blobs)
		maps.Copy(used, l.manifests)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &Account{Blobs: len(w.blobs), LeftOut: len(w.leftOut)}
	for k, p := range w.blobs {
		a.BlobBytes += p.size
		if !used[k] {
			a.Unused++
			a.UnusedBytes += p.size
		}
	}
	for _, o := range w.leftOut {
		a.LeftOutBytes += o.size
	}
	return a
}

// addContents writes the description as the last member.
func (w *Writer) addContents(ctx context.Context, about Contents) error {
	about.Version, about.Form, about.Key, about.LeftOut = contentsVersion, w.o.Form, w.o.Key, w.leftOutList(about)
	for {
		about.Segments = nil
		for _, s := range w.segments {
			if s.result != nil {
				about.Segments = append(about.Segments, w.named(s))
			}
		}
		last := len(w.segments)
		if w.current() == nil {
			last++
		}
		about.Segments = append(about.Segments, Segment{Name: segmentName(w.base + last)})
		if len(about.Segments) != last {
			return fmt.Errorf("%w: a segment is still written", fault.ErrInvalid)
		}
		text, err := json.MarshalIndent(about, "", " ")
		if err != nil {
			return err
		}
		if len(text) >= maxContents {
			return fmt.Errorf("%s: %w: %d bytes (limit %d)", contentsFile, fault.ErrLimit, len(text), maxContents)
		}
		m := member{w.o.Form.contentsName(), append(text, '\n')}
		head, err := header(m.name, int64(len(m.content)))
		if err != nil {
			return err
		}
		if err := w.room(m.name, int64(len(m.content)), head); err != nil {
			return err
		}
		if len(w.segments) == last {
			return w.add(ctx, m)
		}
		// It is in the next segment, and the one before is among those with a sum.
	}
}

// leftOutList lists the blobs that are left out of the archive, sorted by digest. A blob that about lists already keeps
// the time (Since) that it has there.
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
		l := LeftOut{Digest: d, Size: a.size, MediaType: a.mediaType}
		if w.o.Have != nil && w.o.Have(d) {
			l.Since = w.o.Since
		}
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

// LeftOut returns the blobs that are left out of the archive so far, sorted by digest.
func (w *Writer) LeftOut() []LeftOut { return w.leftOutList(Contents{}) }

// Had returns what is in the archive and what is left out, for [History.WriteNext]: each digest with the repository
// that wrote it first.
func (w *Writer) Had() map[digest.Digest]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := make(map[digest.Digest]string, len(w.blobs)+len(w.leftOut))
	add := func(k key, by *writerRepository) {
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
