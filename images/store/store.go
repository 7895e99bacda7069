package store

import (
	"context"
	"errors"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/webclient"
)

// Reader reads the manifests and blobs of one place of images. It is safe for concurrent use.
type Reader interface {
	// Name is what people know the place by, such as HOST/REPOSITORY; empty if it has no name.
	Name() string
	// Can tells what the place can do.
	Can() Abilities
	// Head returns the digest, media type and size in bytes of the manifest with a digest or a tag, as a rule without
	// reading it. The error is [fs.ErrNotExist] if there is none.
	Head(ctx context.Context, name string) (v1.Descriptor, error)
	// Manifest returns the text and media type of the manifest with a digest or a tag. A text that was asked for by
	// its digest has that digest. The error is [fs.ErrNotExist] if there is no such manifest.
	Manifest(ctx context.Context, name string) (text []byte, mediaType string, err error)
	// HasBlob tells whether the place has a blob of that digest and size.
	HasBlob(ctx context.Context, d v1.Descriptor) (bool, error)
	// Blob opens a blob at an offset in bytes, from 0 to the size of the descriptor; others are an error. From the
	// start, the reader fails at its end if the digest or the size differs from the descriptor; from another offset only
	// the size is compared.
	Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error)
	// Tags returns the tags. Unless pages is 0, at most that number of pages of a list is read; all tells whether these
	// are all. The error is [fs.ErrNotExist] if there is no such repository, also [ErrNoRepository] if the place says so
	// itself, and [ErrNoTags] if the place lists none.
	Tags(ctx context.Context, pages int) (tags []string, all bool, err error)
	// Referrers returns the descriptors that are listed for a subject, in the order of the list and unchecked; none if
	// nothing is listed. An error of the place is an error, not an empty list. has, unless nil, tells which tags there
	// are: one that is not there is not asked for.
	Referrers(ctx context.Context, subject digest.Digest, has func(tag string) bool) ([]v1.Descriptor, error)
}

// Writer also writes to the place. What is written may be seen by others at once, as in a registry, or by Commit, as in
// a layout; its own methods see it at once.
type Writer interface {
	Reader
	// WriteBlob writes a blob unless it is there. If the place takes it from another repository of its own, from is its
	// name, and empty otherwise.
	WriteBlob(ctx context.Context, d v1.Descriptor, c Content) (from string, err error)
	// WriteManifest writes a manifest under its digest or under a tag. One with a subject is listed among the referrers
	// of the subject, once.
	WriteManifest(ctx context.Context, text []byte, mediaType string, o WriteOptions) error
	// UpdateTag replaces the manifest of a tag by what change returns for the present one, which is nil if there is
	// none. A nil text leaves it. If another client writes the tag at the same time, change is called again with the
	// new manifest, perhaps not before Commit: then a context of the call may have ended.
	UpdateTag(ctx context.Context, tag string, change func(old []byte) (text []byte, mediaType string, err error)) error
	// Commit makes what was written last: other clients may have written a tag of UpdateTag at the same time, and what
	// is staged is put in its place. After an error the place is as it was, as far as others see what is written
	// before Commit.
	Commit(ctx context.Context) error
	// Discard removes what is staged and not committed, and ends the use of the writer. It may follow Commit.
	Discard() error
}

// WriteOptions are how a manifest is written.
type WriteOptions struct {
	// Tag is the tag to write the manifest under, in place of what had the tag before; if it is empty, the manifest is
	// written under its digest.
	Tag string
	// If, unless empty, is what the tag must stand for: a digest, or [IfNone]. The error of a place that compares it is
	// [ErrChanged]; others do not look at it, see [Abilities].
	If string
	// Listed tells that a manifest without a tag is an image of its own: a layout lists it without a name.
	Listed bool
	// OverImage lets the list of referrers replace the subject under the tag that is derived from the subject's digest, as
	// others find the subject by its digest; otherwise that is an error.
	OverImage bool
	// Sparse tells that an index is written of which manifests are missing. The error of a place that takes no such
	// index is [ErrSparse].
	Sparse bool
}

// IfNone is the value of [WriteOptions.If] for a tag that must not exist.
const IfNone = "none"

// Abilities is what a place can do beyond what every place does.
type Abilities struct {
	// Tags: the tags are listed, so that a list may save requests.
	Tags bool
	// Attachments: manifests with a subject, and tags that are derived from digests, are kept beside an image.
	Attachments bool
	// Complete: a manifest that is there has what it refers to, or writing one that refers to it is [ErrIncomplete].
	Complete bool
	// Staged: nothing that is written is seen by others before Commit.
	Staged bool
	// Mounts: WriteBlob may take a blob from another repository of the place.
	Mounts bool
	// Conditions: WriteManifest compares a tag with [WriteOptions.If] and writes it in one step, where the registry
	// does.
	Conditions bool
	// Unattached: nothing is attached to the image that is being written, as far as is known, so that it is not asked for
	// before something is. Only [CopyOptions].Attach gets such a writer.
	Unattached bool
	// Repositories, unless nil, returns other repositories that have a blob, as [Content] has them.
	Repositories func(d digest.Digest) []string
	// File, unless nil, returns a file of a blob, as that of [Content].
	File func(ctx context.Context, d digest.Digest, make bool) (path string, ok bool)
	// TakesReferrers, unless nil, tells before anything is written whether a manifest with a subject would be listed; the
	// error is of the class [ErrNoReferrers]. A place may still refuse such a manifest when it is written.
	TakesReferrers func(ctx context.Context, subject digest.Digest) error
	// NoSparse is the answer by which the place has refused an index of which manifests are missing; nil if it takes
	// them, or was not asked.
	NoSparse error
}

// The classes of errors of places.
var (
	// ErrIncomplete is the error of a manifest that is refused since something is not there to which it refers.
	ErrIncomplete = errors.New("something that it refers to is missing")
	// ErrSparse is the error of an index that is refused since manifests of it are missing.
	ErrSparse = errors.New("an index whose manifests are not all there")
	// ErrNoOCI is the error of a place that refuses the types of the OCI image specification, and may take Docker's.
	ErrNoOCI = errors.New("images of the OCI format are refused here")
	// ErrNoReferrers is the error of a place that takes no manifest with a subject, or does not list it.
	ErrNoReferrers = errors.New("nothing can be attached here as a referrer")
	// ErrChanged is the error of a tag that is not what [WriteOptions.If] says. It was not written.
	ErrChanged = errors.New("the tag was changed")
	// ErrDenied is the error of a place that refuses the credentials, or a request without any. Registries refuse what
	// is not there.
	ErrDenied = errors.New("access denied")
	// ErrNoManifest is the error of a place that answers with something else than a manifest.
	ErrNoManifest = errors.New("the answer is no manifest")
	// ErrHidden is the error of a place that refuses to show a tag. It says nothing of whether there is one.
	ErrHidden = errors.New("the tag is not shown")
	// ErrNoTags is the error of a place that lists no tags.
	ErrNoTags = errors.New("tags are not listed here")
	// ErrNoRepository is the error of a registry that says it has no such repository, and not only that it has nothing of
	// a name.
	ErrNoRepository = errors.New("there is no such repository")
	// ErrStalled is the failure of an attempt that transferred nothing for too long.
	ErrStalled = webclient.ErrStalled
)
