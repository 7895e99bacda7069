package medium

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/keyed"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/verify"
)

// readerRepository is a repository of an archive that is read. Manifests and blobs with a digest are found wherever the
// archive has them; tags and referrers are those of the repository. It is safe for concurrent use.
type readerRepository struct {
	r     *Reader
	path  string
	index *repositoryIndex

	subjects keyed.Memo[struct{}, map[digest.Digest][]v1.Descriptor]
}

var _ store.Reader = (*readerRepository)(nil)

// Name returns the path of the repository.
func (p *readerRepository) Name() string { return p.path }

// Repository returns the repository of a path, which is empty if the archive has none.
func (r *Reader) Repository(path string) store.Reader {
	index := r.repos[path]
	if index == nil {
		index = &repositoryIndex{}
	}
	return &readerRepository{r: r, path: path, index: index,
		subjects: keyed.Memo[struct{}, map[digest.Digest][]v1.Descriptor]{KeepErrors: true}}
}

// resolve returns the digest that a digest or a tag stands for.
func (p *readerRepository) resolve(name string) (key, error) {
	if k, err := keyOf(digest.Digest(name)); err == nil {
		return k, nil
	}
	k, ok := p.index.tags[name]
	if !ok {
		return k, fmt.Errorf("%w: %s has no image %.140q in the archive", fs.ErrNotExist, p.path, name)
	}
	return k, nil
}

// Head returns the descriptor of a manifest. For one that is left out there is only what the archive says of it: at
// least its digest. The error is [fs.ErrNotExist] if the repository has no such tag, or the archive neither holds nor
// names the digest.
func (p *readerRepository) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	k, err := p.resolve(name)
	if err != nil {
		return v1.Descriptor{}, err
	}
	if d, ok := p.index.described[k]; ok {
		return d, nil
	}
	if _, has := p.r.find(k); has {
		text, mediaType, err := p.manifest(ctx, k)
		return v1.Descriptor{MediaType: mediaType, Digest: k.digest(), Size: int64(len(text))}, err
	}
	if name == k.digest().String() {
		return v1.Descriptor{}, p.absent(k)
	}
	d := v1.Descriptor{Digest: k.digest()}
	if l := p.leftOut(k); l != nil {
		d.MediaType, d.Size = l.MediaType, l.Size
	}
	return d, nil
}

// leftOut returns the entry of a digest in the archive's list of what the destination has; nil if it has none.
func (p *readerRepository) leftOut(k key) *LeftOut {
	if p.r.contents == nil {
		return nil
	}
	list := p.r.contents.LeftOut
	i, ok := slices.BinarySearchFunc(list, k.digest(),
		func(l LeftOut, d digest.Digest) int { return compare(l.Digest, d) })
	if !ok {
		return nil
	}
	return &list[i]
}

// absent is the error about a digest that the archive does not hold.
func (p *readerRepository) absent(k key) error {
	if l := p.leftOut(k); l != nil {
		if l.Since != nil {
			return fmt.Errorf("%s: %w (archive of %s)", k.digest(), ErrLeftOut, l.Since.UTC().Format(timeFormat))
		}
		return fmt.Errorf("%s: %w", k.digest(), ErrLeftOut)
	}
	return fmt.Errorf("%w: the archive has no %s", fs.ErrNotExist, k.digest())
}

// Can tells what an archive can do. It may name what it does not hold.
func (p *readerRepository) Can() store.Abilities {
	return store.Abilities{Tags: true, Attachments: true}
}

// Tags returns the tags of the repository in order.
func (p *readerRepository) Tags(context.Context, int) (tags []string, all bool, err error) {
	return slices.Sorted(maps.Keys(p.index.tags)), true, nil
}

// Manifest returns the text and media type of the manifest with a digest or a tag, with its digest checked. The error
// is [fs.ErrNotExist] if the archive does not hold it, and [ErrLeftOut] if it says so.
func (p *readerRepository) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	k, err := p.resolve(name)
	if err != nil {
		return nil, "", err
	}
	return p.manifest(ctx, k)
}

func (p *readerRepository) manifest(ctx context.Context, k key) (text []byte, mediaType string, err error) {
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	found, ok := p.r.find(k)
	if !ok {
		return nil, "", p.absent(k)
	}
	if text, err = p.r.readSpan(span{found.segment, found.at, found.size}, limit.MaxManifest); err != nil {
		return nil, "", fmt.Errorf("manifest %s: %w", k.digest(), err)
	}
	if err := verify.Manifest(text, k.digest()); err != nil {
		return nil, "", err
	}
	return text, typeOf(text, p.index.described[k].MediaType), nil
}

// HasBlob tells whether the archive holds a blob of that digest and size.
func (p *readerRepository) HasBlob(_ context.Context, d v1.Descriptor) (bool, error) {
	k, err := keyOf(d.Digest)
	if err != nil {
		return false, err
	}
	found, ok := p.r.find(k)
	return ok && found.size == d.Size, nil
}

// Blob opens a blob in its segment, at an offset. From the start, the reader fails at its end if the digest or the size
// differs from the descriptor.
func (p *readerRepository) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	k, err := keyOf(d.Digest)
	if err != nil {
		return nil, err
	}
	found, ok := p.r.find(k)
	if !ok {
		return nil, p.absent(k)
	}
	f, err := p.r.openSpan(span{found.segment, found.at, found.size})
	if err != nil {
		return nil, err
	}
	return store.ReadAt(ctx, d, f, found.size, from)
}

// Referrers returns the descriptors of the manifests whose subject is an image: those that the archive lists, and those
// of the list that the fallback tag names. In the form of oc-mirror, which has no other list, the manifests of the
// repository are read once.
func (p *readerRepository) Referrers(ctx context.Context, subject digest.Digest,
	_ func(tag string) bool) ([]v1.Descriptor, error) {
	k, err := keyOf(subject)
	if err != nil {
		return nil, err
	}
	subjects, err := p.subjects.Get(ctx, struct{}{}, p.readSubjects)
	if err != nil {
		return nil, err
	}
	listed := slices.Concat(p.index.referrers[k], subjects[subject])
	if p.index.tags[reflist.Tag(subject)] == k {
		return store.Once(listed), nil // the tag sha256-HEX is also how an image is named that is mirrored by its digest
	}
	return store.WithTagged(listed, subject, func(tag string) ([]byte, string, error) { return p.Manifest(ctx, tag) })
}

// readSubjects returns the manifests of a repository that have a subject, by the subject.
func (p *readerRepository) readSubjects(ctx context.Context) (map[digest.Digest][]v1.Descriptor, error) {
	return store.Subjects(ctx, p.path, func(yield func(digest.Digest) bool) {
		for _, k := range p.index.revisions {
			if at, has := p.r.find(k); has && at.size <= limit.MaxManifest && !yield(k.digest()) {
				return
			}
		}
	}, p.Manifest)
}

func compare(a, b digest.Digest) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
