package medium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/verify"
)

// writerRepository is a repository of an archive that is written. Blobs are shared by all repositories of the archive;
// manifests are there only for the repository that they were written to. It is safe for concurrent use, except that a
// change of a tag must not write tags.
type writerRepository struct {
	w    *Writer
	path string

	tagging sync.Mutex // is held while a tag is changed

	mu        sync.Mutex
	tags      map[string]v1.Descriptor
	manifests map[key]v1.Descriptor
	subjects  map[key][]v1.Descriptor
}

var _ store.Writer = (*writerRepository)(nil)

// Name returns the path of the repository.
func (r *writerRepository) Name() string { return r.path }

// The grammar of names in registries (distribution specification, "Pulling manifests"), of a reasonable length.
var (
	repositoryPath = lazyregexp.New(
		`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagName = lazyregexp.New(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)
)

const maxRepositoryPath = 512

func checkPath(path string) error {
	if len(path) > maxRepositoryPath || !repositoryPath().MatchString(path) {
		return fmt.Errorf("%w: %.140q is no path of a repository", fault.ErrInvalid, path)
	}
	return nil
}

// Repository returns the repository of a path, such as acme/alpha-app. What is wrong with the path is an error of all
// its methods that write.
func (w *Writer) Repository(path string) store.Writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.repos[path]
	if r == nil {
		r = &writerRepository{w: w, path: path, tags: map[string]v1.Descriptor{},
			manifests: map[key]v1.Descriptor{}, subjects: map[key][]v1.Descriptor{}}
		w.repos[path] = r
	}
	return r
}

// Head returns the descriptor of the manifest with a digest or a tag, also of one that is left out. The error is
// [fs.ErrNotExist] if the repository has none.
func (r *writerRepository) Head(_ context.Context, name string) (v1.Descriptor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.tags[name]
	if k, err := keyOf(digest.Digest(name)); err == nil {
		d, ok = r.manifests[k]
	}
	if !ok {
		return d, fmt.Errorf("%w: %s has no manifest %.140q", fs.ErrNotExist, r.path, name)
	}
	return d, nil
}

// Can tells what an archive can do. It is Complete: blobs that it does not hold are at its destination.
func (r *writerRepository) Can() store.Abilities {
	return store.Abilities{Tags: true, Attachments: true, Complete: true, Staged: true}
}

// Tags returns the tags of the repository in order.
func (r *writerRepository) Tags(context.Context, int) (tags []string, all bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.tags)), true, nil
}

// Commit does nothing: the archive is committed as a whole.
func (r *writerRepository) Commit(context.Context) error { return nil }

// Discard does nothing, as Commit.
func (r *writerRepository) Discard() error { return nil }

// Manifest returns the text and media type of a manifest that was written to this repository. The error is
// [fs.ErrNotExist] if it was not, and if it is left out.
func (r *writerRepository) Manifest(ctx context.Context, name string) (text []byte, mediaType string, err error) {
	d, err := r.Head(ctx, name)
	if err != nil {
		return nil, "", err
	}
	k, err := keyOf(d.Digest)
	if err != nil {
		return nil, "", err
	}
	text, err = r.w.manifest(k)
	return text, d.MediaType, err
}

// manifest reads the text of a manifest.
func (w *Writer) manifest(k key) ([]byte, error) {
	p, has := w.findBlob(k)
	if !has {
		return nil, fmt.Errorf("%w: %s is left out", fs.ErrNotExist, k.digest())
	}
	if err := verify.ManifestSize(p.size); err != nil {
		return nil, err
	}
	f, err := w.openPlace(p)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(verify.NewReader(f, k.digest(), p.size))
	return text, errors.Join(err, f.Close())
}

// openPlace opens the content of a blob in its segment.
func (w *Writer) openPlace(p place) (io.ReadSeekCloser, error) {
	f, err := w.root.Open(partial(p.segment))
	if err != nil {
		return nil, err
	}
	return section{io.NewSectionReader(f, p.at, p.size), f}, nil
}

// section is a part of a file that is closed with it.
type section struct {
	*io.SectionReader
	f *os.File
}

func (s section) Close() error { return s.f.Close() }

// HasBlob tells whether the archive holds a blob of that digest and size.
func (r *writerRepository) HasBlob(_ context.Context, d v1.Descriptor) (bool, error) {
	k, err := keyOf(d.Digest)
	if err != nil {
		return false, err
	}
	p, has := r.w.findBlob(k)
	return has && p.size == d.Size, nil
}

// Blob opens a blob of the archive at an offset. From the start, the reader fails at its end if the digest or the size
// differs from the descriptor.
func (r *writerRepository) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	k, err := keyOf(d.Digest)
	if err != nil {
		return nil, err
	}
	p, has := r.w.findBlob(k)
	if !has {
		return nil, fmt.Errorf("%w: the archive has no blob %s", fs.ErrNotExist, d.Digest)
	}
	f, err := r.w.openPlace(p)
	if err != nil {
		return nil, err
	}
	return store.ReadAt(ctx, d, f, p.size, from)
}

// Referrers returns the descriptors of the manifests with a subject that were written to the repository.
func (r *writerRepository) Referrers(_ context.Context, subject digest.Digest,
	_ func(tag string) bool) ([]v1.Descriptor, error) {
	k, err := keyOf(subject)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.subjects[k]), nil
}

// WriteBlob writes a blob to the archive, unless it is there or the destination has it. Blobs of more than 1 MiB are
// streamed into the segment beside one another, smaller ones are fetched into memory first. If a blob breaks off, open
// is called again for the rest; what was read before is compared with the digest too. The string is always empty.
func (r *writerRepository) WriteBlob(ctx context.Context, d v1.Descriptor, c store.Content) (string, error) {
	if err := checkPath(r.path); err != nil {
		return "", err
	}
	return "", r.w.writeBlob(ctx, r, d, c.Open)
}

// WriteManifest writes a manifest, unless the destination has it; then it is listed as left out. It can be read by its
// digest in this repository. One with a subject is listed among its referrers. A condition is not looked at.
func (r *writerRepository) WriteManifest(ctx context.Context, text []byte, mediaType string,
	o store.WriteOptions) error {
	if o.Tag != "" {
		return r.UpdateTag(ctx, o.Tag, func([]byte) ([]byte, string, error) { return text, mediaType, nil })
	}
	_, err := r.writeManifest(ctx, text, mediaType)
	return err
}

func (r *writerRepository) writeManifest(ctx context.Context, text []byte,
	mediaType string) (v1.Descriptor, error) {
	if err := checkPath(r.path); err != nil {
		return v1.Descriptor{}, err
	}
	if err := verify.ManifestSize(int64(len(text))); err != nil {
		return v1.Descriptor{}, err
	}
	mediaType = typeOf(text, mediaType)
	described, subject, err := reflist.Describe(text, mediaType)
	if err != nil {
		return described, err
	}
	parts, err := partsOf(text)
	if err != nil {
		return described, err
	}
	d := v1.Descriptor{MediaType: described.MediaType, Digest: described.Digest, Size: described.Size}
	k, err := keyOf(d.Digest)
	if err != nil {
		return d, err
	}
	err = r.w.writeBlob(ctx, r, d, func(context.Context, int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	})
	if err != nil {
		return d, err
	}
	r.w.mu.Lock()
	if a := r.w.leftOut[k]; a != nil {
		a.mediaType, a.parts = mediaType, parts
	}
	r.w.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	_, again := r.manifests[k]
	r.manifests[k] = d
	if subject != nil && !again {
		r.subjects[*parts.subject] = append(r.subjects[*parts.subject], described)
	}
	return d, nil
}

// UpdateTag replaces the manifest of a tag by what change returns for the present one, which is nil if there is none or
// if it is left out. A nil text leaves it.
func (r *writerRepository) UpdateTag(ctx context.Context, tag string,
	change func(old []byte) (text []byte, mediaType string, err error)) error {
	if !tagName().MatchString(tag) {
		return fmt.Errorf("%w: %.140q is no tag", fault.ErrInvalid, tag)
	}
	r.tagging.Lock()
	defer r.tagging.Unlock()
	old, _, err := r.Manifest(ctx, tag)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, mediaType, err := change(old)
	if err != nil || text == nil {
		return err
	}
	d, err := r.writeManifest(ctx, text, mediaType)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tags[tag] = d
	return nil
}
