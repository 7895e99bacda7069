package layouts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/keyed"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Repository reads the manifests and blobs of an OCI image layout, in a directory or an archive, as those of one
// repository: names of images (org.opencontainers.image.ref.name) are its tags. It shows the layout as its index.json
// was when the repository was opened. It is safe for concurrent use.
//
// Referrers are listed in index.json, as ORAS writes them, or by the fallback tag, as regclient does; both are read.
type Repository struct {
	blobFiles
	index *layoutIndex

	subjects keyed.Memo[struct{}, map[digest.Digest][]v1.Descriptor]
}

// OpenRepository opens the layout of a place of the formats [transport.OCI] and [transport.OCIArchive]. The limits are
// for archives, and temp is the directory for what is decompressed of them. The caller must close the repository.
func OpenRepository(ctx context.Context, p transport.Destination, limits limit.Limits,
	temp string) (*Repository, error) {
	if !isLayout(p) {
		return nil, notLayout(p)
	}
	files, err := openFiles(ctx, p, limits, temp)
	if err != nil {
		return nil, err
	}
	index, err := readLayout(files)
	if err != nil {
		return nil, errors.Join(err, files.Close())
	}
	r := newRepository(files, index)
	r.subjects.KeepErrors = true
	return r, nil
}

// newRepository returns the repository of a layout by its files and its index.
func newRepository(files fileStore, index *layoutIndex) *Repository {
	return &Repository{blobFiles: blobFiles{files, blobName}, index: index}
}

// readLayout checks the version of a layout and reads its index.
func readLayout(files fileStore) (*layoutIndex, error) {
	content, err := readFile(files, layoutFile)
	if err != nil {
		return nil, err
	}
	if err := checkLayoutVersion(content); err != nil {
		return nil, err
	}
	if content, err = readFile(files, indexFile); err != nil {
		return nil, err
	}
	index := &layoutIndex{}
	if err := index.parse(content); err != nil {
		return nil, fmt.Errorf("%s: %w", indexFile, err)
	}
	return index, nil
}

// Close closes the files.
func (r *Repository) Close() error { return r.files.Close() }

// Top returns the descriptor of the image that a place chooses by its name, as [OpenSource] does.
func (r *Repository) Top(p transport.Destination) (v1.Descriptor, error) {
	d, err := r.index.find(p.Path, p.Name, func(d v1.Descriptor) bool { return refers(r.files, d) })
	if err != nil {
		return d, err
	}
	if err := verify.Digest(d.Digest); err != nil {
		return d, fmt.Errorf("%s: %w", indexFile, err)
	}
	return d, nil
}

// Manifest returns the text and media type of the manifest with a digest or a tag. The error is [fs.ErrNotExist] if
// there is none, and of the class [fault.ErrIntegrity] if the text has another digest.
func (r *Repository) Manifest(ctx context.Context, name string) (text []byte, mediaType string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", context.Cause(ctx)
	}
	d := v1.Descriptor{Digest: digest.Digest(name)}
	at := -1
	if verify.Digest(d.Digest) == nil {
		// A tag cannot stand for a digest, whatever the layout says.
		at = slices.IndexFunc(r.index.Entries, func(e indexEntry) bool { return e.Digest == d.Digest })
	} else if at = r.index.tagged(name); at < 0 {
		return nil, "", fmt.Errorf("%w: the layout has no image %.140q", fs.ErrNotExist, name)
	}
	if at >= 0 {
		d = r.index.Entries[at].Descriptor
	}
	if err := verify.Digest(d.Digest); err != nil {
		return nil, "", fmt.Errorf("%s: %w", indexFile, err)
	}
	text, err = readManifest(r.files, blobName(d.Digest), d.Digest)
	if at >= 0 && errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("manifest: %w: %s is listed, and its file is missing", fault.ErrIntegrity, d.Digest)
	}
	if err != nil {
		return nil, "", err
	}
	if d.MediaType == "" {
		d.MediaType = manifest.GuessMIMEType(text)
	}
	return text, d.MediaType, nil
}

// readManifest reads the file of a manifest, and compares its digest.
func readManifest(files fileStore, name string, want digest.Digest) ([]byte, error) {
	text, err := readFile(files, name)
	if err != nil {
		return nil, err
	}
	return text, verify.Manifest(text, want)
}

// tagged returns the number of the entry with a tag; -1 if there is none.
func (x *layoutIndex) tagged(tag string) int {
	return slices.IndexFunc(x.Entries, func(e indexEntry) bool {
		return tag != "" && e.Annotations[v1.AnnotationRefName] == tag
	})
}

// blobName returns the name of a blob in a layout, with slashes. The digest must be valid.
func blobName(d digest.Digest) string {
	return blobsDir + "/" + d.Algorithm().String() + "/" + d.Encoded()
}

// Head returns the descriptor of the manifest with a digest or a tag, which is read: the index of a layout does not
// bind what it says of one. The error is that of Manifest.
func (r *Repository) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	return store.HeadOf(ctx, r.Manifest, name)
}

// Name returns nothing: a layout may be anywhere.
func (r *Repository) Name() string { return "" }

// Can tells what a layout can do. It may name what it does not have.
func (r *Repository) Can() store.Abilities { return abilities }

var abilities = store.Abilities{Tags: true, Attachments: true, Staged: true}

// Tags returns the names of images in the order of index.json.
func (r *Repository) Tags(context.Context, int) (tags []string, all bool, err error) {
	return r.index.tags(), true, nil
}

// tags returns the names of images, each once.
func (x *layoutIndex) tags() (tags []string) {
	for _, e := range x.Entries {
		if tag := e.Annotations[v1.AnnotationRefName]; tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// Referrers returns the descriptors of the manifests whose subject is an image: first those in index.json, then those
// that the fallback tag lists, each digest once. What the fallback tag lists is not checked; a fallback tag that is no
// OCI index lists nothing.
func (r *Repository) Referrers(ctx context.Context, subject digest.Digest,
	_ func(tag string) bool) ([]v1.Descriptor, error) {
	if err := verify.Digest(subject); err != nil {
		return nil, err
	}
	subjects, err := r.subjects.Get(ctx, struct{}{}, r.withSubjects)
	if err != nil {
		return nil, err
	}
	return store.WithTagged(subjects[subject], subject, func(tag string) ([]byte, string, error) {
		return r.Manifest(ctx, tag)
	})
}

// withSubjects returns the descriptors of the manifests in the index that have a subject, by its digest. A manifest
// that is not in the layout is passed over: layouts may be sparse. One with another digest than its entry is an error.
func (r *Repository) withSubjects(ctx context.Context) (map[digest.Digest][]v1.Descriptor, error) {
	return store.Subjects(ctx, indexFile, func(yield func(digest.Digest) bool) {
		for _, e := range r.index.Entries {
			if verify.Digest(e.Digest) == nil && e.Size <= limit.MaxManifest && !yield(e.Digest) {
				return
			}
		}
	}, r.Manifest)
}

// signatures reads the signatures in a layout.
func (r *Repository) signatures(ctx context.Context, of digest.Digest) ([][]byte, error) {
	tag := sigblob.Tag(of)
	if r.index.tagged(tag) < 0 {
		return nil, nil
	}
	text, _, err := r.Manifest(ctx, tag)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tag, newMissingError(err))
	}
	found, err := sigblob.Attached(ctx, text, func(ctx context.Context, d v1.Descriptor, _ int64) (io.ReadCloser, error) {
		blob, err := r.Blob(ctx, d, 0)
		return blob, newMissingError(err)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tag, err)
	}
	return found, nil
}

// newMissingError makes a blob that is named and not there an error about the layout.
func newMissingError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", fault.ErrIntegrity, err)
	}
	return err
}
