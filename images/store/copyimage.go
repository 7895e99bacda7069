package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/transfer"
	"github.com/operator-bindery/bindery/internal/verify"
)

// ImageOptions configure [CopyImage]. The zero value copies everything and writes no tag.
type ImageOptions struct {
	// Platforms, unless empty, are those whose images of an index are copied: operating system and architecture, and
	// the variant if it is given. Entries of the index that name no platform are copied too, and of those that
	// describe another image, as attestations of buildkit do, those whose image is. An image that is in no index is
	// copied whatever its platform.
	Platforms []v1.Platform
	// Sparse decides what becomes of an index of which images are left out.
	Sparse Sparse
	// ByDigest tells that others name the image by its digest, which must stay.
	ByDigest bool
	// Limits bound the manifests; the size of the blobs has no limit if Content is zero.
	Limits Limits
	// Jobs is how many blobs are copied at once; 5 if it is zero.
	Jobs int
	// Before, unless nil, is called when all manifests are there under their digests and before the tag is written,
	// also for an image that was there: for what is attached to it. The image has Name only if Name is set.
	Before func(ctx context.Context, image Image) error
	// Name is the name of the image at the destination, for Before.
	Name string
	// Tag is written at last; none if it is empty. A tag that is derived from a digest (sha256-HEX) and is a list of
	// referrers is left: see [ImageAccount].
	Tag string
	// Moved, unless nil, receives the steps of the blobs; it is called concurrently.
	Moved func(transfer.Event)
}

// ImageAccount is what [CopyImage] has done. Sizes are in bytes.
type ImageAccount struct {
	// Digest, MediaType and Size are those of the manifest or index at the destination. They are those of the source
	// unless Trimmed is set.
	Digest    digest.Digest `json:"digest"`
	MediaType string        `json:"mediaType"`
	Size      int64         `json:"size"`
	// Trimmed tells that the index was replaced by one of the images that are kept.
	Trimmed bool `json:"trimmed,omitempty"`
	// Manifests and Blobs are how many were looked at, those that are there in images that were there not included;
	// Bytes is the size of all of them.
	Manifests int   `json:"manifests"`
	Blobs     int   `json:"blobs"`
	Bytes     int64 `json:"bytes"`
	// Sent is what was read of blobs to be sent, with repetitions, and the manifests; Mounted is the size of the blobs
	// that the destination took from another place of its own.
	Sent    int64 `json:"sent"`
	Mounted int64 `json:"mounted,omitempty"`
	// Present tells that the destination had the image with all that was asked for. The tag may be new anyway.
	Present bool `json:"present,omitempty"`
	// TagKept tells that the tag was not written, since it is the list of referrers of the image whose digest it is
	// derived from. The image is there under its digest.
	TagKept bool `json:"tagKept,omitempty"`
	// Instances are the entries of the index, and of indexes in it, that are at the destination; LeftOut the others.
	Instances []v1.Descriptor `json:"instances,omitempty"`
	LeftOut   []v1.Descriptor `json:"leftOut,omitempty"`
	// Foreign are the layers that only other servers have, by the addresses in the manifest (image specification,
	// "Non-Distributable Layers"): neither the source nor the destination has them.
	Foreign []digest.Digest `json:"foreign,omitempty"`
}

// CopyImage copies an image, or an index with its images, byte for byte: blobs, then manifests, then the tag. Every
// blob is compared with its digest and size on the way. What the destination has is not sent again; an image that it
// has costs one request for it, and for an index one for each entry, if the destination is a [Header].
//
// Errors are those of the two places, a [*SourceError] for those of the source; of the classes images.ErrInvalid (also
// for images of Docker's schema 1), images.ErrIntegrity and images.ErrLimit; a [*PlatformError] if the index has none
// of the platforms; and a [*SparseError] if an index cannot be written without the images that are left out. The
// account is good for what was done until then.
func CopyImage(ctx context.Context, from Reader, to Writer, top v1.Descriptor, o ImageOptions) (ImageAccount, error) {
	o.Jobs = cmp.Or(o.Jobs, 5)
	if o.Limits.Content == 0 {
		o.Limits.Content = 1 << 60
	}
	c := &imageCopy{budget: budget{limits: o.Limits.WithDefaults()}, from: from, to: to, o: o}
	if err := verify.Digest(top.Digest); err != nil {
		return c.account, err
	}
	err := c.run(ctx, top, true)
	if c.trusted.Load() && errors.Is(err, ErrIncomplete) {
		// The destination had a manifest, and not what it refers to. Nothing is taken for there any more.
		c.bytes.Store(0)
		c.content.Store(0)
		err = c.run(ctx, top, false)
	}
	return c.account, err
}

// SourceError is an error of reading the source, and not of the destination.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return "source: " + e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// run copies the image. trust tells that a manifest which is there has what it refers to.
func (c *imageCopy) run(ctx context.Context, top v1.Descriptor, trust bool) error {
	c.trust, c.account = trust, ImageAccount{Sent: c.account.Sent}
	c.nodes, c.instances, c.leftOut, c.platforms, c.matched = map[digest.Digest]*node{}, nil, nil, nil, false
	root, err := c.plan(ctx, top)
	if err != nil {
		return err
	}
	c.collect(root, map[digest.Digest]bool{})
	if len(c.platforms) > 0 && len(c.o.Platforms) > 0 && !c.matched {
		return &PlatformError{Wanted: c.o.Platforms, There: c.platforms}
	}
	if err := c.checkSparse(ctx, root); err != nil {
		return err
	}
	c.account.Instances, c.account.LeftOut = c.instances, c.leftOut
	if err := c.blobs(ctx, root); err != nil {
		return err
	}
	if c.o.Before == nil && c.o.Tag != "" && !reflist.Belongs(c.o.Tag) && (root.parts == nil ||
		root.parts.Subject == nil) {
		root.written = true // together with the tag
	}
	if err := c.manifests(ctx, root); err != nil {
		return err
	}
	c.account.Digest, c.account.MediaType, c.account.Size = root.Digest, root.MediaType, root.Size
	c.account.Present = root.complete()
	if err := c.before(ctx, root); err != nil {
		return err
	}
	return c.tag(ctx, root)
}

// before has the attachments written, and makes sure of their tags.
func (c *imageCopy) before(ctx context.Context, root *node) error {
	if c.o.Before == nil {
		return nil
	}
	top := root.Descriptor
	top.Annotations, top.Platform = nil, nil
	if err := c.o.Before(ctx, Image{Name: c.o.Name, Top: top, Instances: c.instances}); err != nil {
		return err
	}
	return c.to.Commit(ctx)
}

// tag writes the tag, unless it stands for the image.
func (c *imageCopy) tag(ctx context.Context, root *node) error {
	if c.o.Tag == "" || root.tagged {
		return nil
	}
	if reflist.Belongs(c.o.Tag) {
		kept, err := c.isList(ctx, root)
		if c.account.TagKept = kept; kept || root.tagged || err != nil {
			return err
		}
	} else if root.complete() {
		if is, err := c.to.Head(ctx, c.o.Tag); err == nil && is.Digest == root.Digest {
			return nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if root.text == nil {
		if err := c.read(ctx, root); err != nil {
			return err
		}
	}
	return c.write(ctx, root, c.o.Tag)
}

// isList tells whether the tag is derived from a digest and is the list of referrers of that digest. Lists of referrers
// and images may have the same tag: an image that has the digest in its tag is no list, an OCI index with another
// digest is one.
func (c *imageCopy) isList(ctx context.Context, root *node) (bool, error) {
	if c.o.Tag != reflist.Tag(root.Digest) {
		return false, nil // a tag of cosign, or a digest of another image, which the caller has chosen
	}
	is, err := c.to.Head(ctx, c.o.Tag)
	if root.tagged = err == nil && is.Digest == root.Digest; root.tagged || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	text, _, err := c.to.Manifest(ctx, c.o.Tag)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if root.tagged = digest.FromBytes(text) == root.Digest; root.tagged {
		return false, nil
	}
	_, err = reflist.Parse(text)
	return err == nil, nil
}

// imageCopy is one run of [CopyImage].
type imageCopy struct {
	budget
	from  Reader
	to    Writer
	o     ImageOptions
	trust bool
	// trusted tells that something was taken for there since the destination had its manifest.
	trusted atomic.Bool

	mu        sync.Mutex
	account   ImageAccount
	nodes     map[digest.Digest]*node
	instances []v1.Descriptor // that are copied
	leftOut   []v1.Descriptor
	platforms []v1.Platform // of all entries
	matched   bool          // an entry has one of the platforms
}

// move reports a step of a blob.
func (c *imageCopy) move(kind transfer.EventKind, d v1.Descriptor, done int64) {
	if c.o.Moved != nil {
		c.o.Moved(transfer.Event{Kind: kind, Destination: cmp.Or(c.o.Name, c.to.Name()), Blob: d.Digest, Size: d.Size,
			Done: done})
	}
}
