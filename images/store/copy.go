package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Target is a place that an image is copied to, and the names that it gets there.
type Target struct {
	To Writer
	// Names are written in their order; none is an image that is reached by its digest alone.
	Names []Name
}

// Name is a name of an image at a target.
type Name struct {
	// Text is what events and errors call it; the name of the place by default.
	Text string
	// Tag is the tag; empty for an image that is named by its digest, or that a layout lists without a name.
	Tag string
	// Image is the name for what is attached to the image, see [Image].
	Image string
}

// CopyOptions configure [Copy]. The zero value copies everything.
type CopyOptions struct {
	// Platforms, unless empty, are those whose images of an index are copied: operating system and architecture, and
	// the variant if it is given. An image without a variant has the one that its architecture has by default: v7 of
	// arm, v8 of arm64, v1 of amd64. Entries of the index that name no platform are copied too, and of those that
	// describe another image, as attestations of buildkit do, those whose image is. An image that is in no index is
	// copied whatever its platform.
	Platforms []v1.Platform
	// Sparse decides how an index is written if some of its images are not copied.
	Sparse Sparse
	// ByDigest tells that others name the image by its digest, which must stay.
	ByDigest bool
	// Limits bound the manifests; the size of the blobs has no limit if Content is zero.
	Limits Limits
	// Jobs is how many blobs are copied at once; 5 if it is zero.
	Jobs int
	// Uploads, unless nil, limits the blobs that are sent at once by all copies that have it to its capacity. A staged
	// target, which writes one after the other, is not limited.
	Uploads chan struct{}
	// If, unless empty, is what the tags must stand for until they are written: a digest, or [IfNone]; otherwise the
	// error is a [*ConflictError]. Tags are compared before anything is written, and again just before each is written,
	// since most registries cannot compare and set in one step. A tag that stands for the image already is no conflict.
	If string
	// Absent tells that the tags are known not to be there, so that neither the image is asked for, nor what belongs to
	// an index, nor small blobs.
	Absent bool
	// Named tells that images are named by their digests, so that a tag derived from one that stands for the image
	// gives way to the list of what is attached to it, see [WriteOptions].
	Named bool
	// Confirm has the manifest read back before the tags are written, to detect servers that accept everything and
	// store nothing. A place that allows no reading is trusted.
	Confirm bool
	// Attach, unless nil, is called for each name when all targets have the image, also one that was there, and before
	// the first tag is written: for what is attached to it.
	Attach func(ctx context.Context, to Writer, image Image) error
	// Whole has every manifest read at the source, also those that a target has, so that the account has every blob.
	Whole bool
	// Elsewhere, unless nil, returns repositories that may have a blob, beside those of the source; see [Content].
	Elsewhere func(d digest.Digest) []string
	// Moved, unless nil, receives the steps of the blobs; it is called concurrently.
	Moved func(Event)
}

// Account is what [Copy] has done at one target. Sizes are in bytes.
type Account struct {
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
	// TagKept tells that a tag was not written, since it is the list of referrers of the image whose digest it is
	// derived from. The image is there under its digest.
	TagKept bool `json:"tagKept,omitempty"`
	// Instances are the entries of the index, and of indexes in it, that are at the destination; LeftOut the others.
	Instances []v1.Descriptor `json:"instances,omitempty"`
	LeftOut   []v1.Descriptor `json:"leftOut,omitempty"`
	// Foreign are the layers that only other servers have, by the addresses in the manifest (image specification,
	// "Non-Distributable Layers"): neither the source nor the destination has them.
	Foreign []digest.Digest `json:"foreign,omitempty"`
	// Moves are how the blobs that were looked at got there, in the order of the manifests.
	Moves []Move `json:"-"`
	// Written are the requests for writing manifests, and WrittenBytes the size of their texts.
	Written      int   `json:"-"`
	WrittenBytes int64 `json:"-"`
	// Tagged is how many of the names are written, and Done tells that the target is committed.
	Tagged int  `json:"-"`
	Done   bool `json:"-"`
}

// Copy copies an image, or an index with its images, byte for byte from one place to others, in four steps:
//
//  1. every target gets the blobs, and then the manifests under their digests;
//  2. what is attached to the image;
//  3. the tags;
//  4. every target is committed.
//
// No step begins before the one before it is done at every target, so that no tag points to an incomplete image. Every
// blob is compared with its digest and size on the way. What a target has is not sent again; an image that it has costs
// one request for it, and for an index one for each entry. The top manifest is written together with its first tag
// unless something must be read or written before that needs it.
//
// Errors are those of the places, a [*SourceError] for those of the source; of the classes fault.ErrInvalid (also for
// images of Docker's schema 1), fault.ErrIntegrity and fault.ErrLimit; a [*PlatformError] if the index has none of the
// platforms; a [*SparseError] if an index cannot be written without the images that are left out; and a
// [*ConflictError]. The accounts, one for each target, are good for what was done until then. Copy discards no writer.
func Copy(ctx context.Context, from Reader, top v1.Descriptor, targets []Target, o CopyOptions) ([]Account, error) {
	o.Jobs = cmp.Or(o.Jobs, 5)
	if o.Limits.Content == 0 {
		o.Limits.Content = 1 << 60
	}
	accounts := make([]Account, len(targets))
	all := make([]*imageCopy, len(targets))
	for i, t := range targets {
		all[i] = &imageCopy{from: from, to: t.To, names: t.Names, o: o, top: top, account: &accounts[i]}
		for _, before := range targets[:i] {
			all[i].others = append(all[i].others, before.To.Name())
		}
	}
	if err := verify.Digest(top.Digest); err != nil {
		return accounts, err
	}
	for _, step := range []func(c *imageCopy) error{
		func(c *imageCopy) error { return c.compare(ctx) },
		func(c *imageCopy) error { return nameError(ctx, c.name(), c.fill(ctx)) },
		func(c *imageCopy) error { return c.attach(ctx) },
		func(c *imageCopy) error { return c.tags(ctx) },
		func(c *imageCopy) error { return nameError(ctx, c.name(), c.commit(ctx)) },
	} {
		for _, c := range all {
			if err := step(c); err != nil {
				return accounts, err
			}
		}
	}
	return accounts, nil
}

// CopyOne is [Copy] to one target, under one tag or none.
func CopyOne(ctx context.Context, from Reader, top v1.Descriptor, to Writer, tag string, o CopyOptions) (Account, error) {
	t := Target{To: to}
	if tag != "" {
		t.Names = []Name{{Tag: tag}}
	}
	accounts, err := Copy(ctx, from, top, []Target{t}, o)
	return accounts[0], err
}

// imageCopy is the copy of an image to one target.
type imageCopy struct {
	from  Reader
	to    Writer
	names []Name
	// others are the names of the targets that are written before this one: blobs can be mounted from them.
	others []string
	o      CopyOptions
	top    v1.Descriptor
	trust  bool
	root   *node
	// writing is held while beside writes the top manifest, which the attachments need.
	writing sync.Mutex
	refused error // why it could not be written
	// attached tells that something was written beside the image, or is there.
	attached atomic.Bool

	mu        sync.Mutex
	budget    *Budget
	account   *Account
	order     []v1.Descriptor // of the blobs
	moves     map[digest.Digest]Move
	nodes     map[digest.Digest]*node
	platforms []v1.Platform // of all entries
	matched   bool          // an entry has one of the platforms
}

// name is the first name, which events and errors have.
func (c *imageCopy) name() Name {
	if len(c.names) == 0 {
		return Name{}
	}
	return c.names[0]
}

// nameError adds a name to an error, unless it is empty.
func nameError(ctx context.Context, n Name, err error) error {
	if err == nil || n.Text == "" {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return fmt.Errorf("%s: %w", n.Text, err)
}

// event reports a step.
func (c *imageCopy) event(e Event) {
	if c.o.Moved != nil {
		e.Destination = cmp.Or(c.name().Text, c.to.Name())
		c.o.Moved(e)
	}
}

// move reports a step of a blob.
func (c *imageCopy) move(kind EventKind, d v1.Descriptor, done int64) {
	c.event(Event{Kind: kind, Blob: d.Digest, Size: d.Size, Done: done})
}

// fill writes the blobs and the manifests. If something is missing then, everything is asked for once more.
func (c *imageCopy) fill(ctx context.Context) error {
	err := c.round(ctx, true)
	if c.lacks(err) {
		err = c.askAgain(ctx, err)
	}
	if err != nil || !c.o.Confirm {
		return err
	}
	return c.confirm(ctx)
}

// lacks tells whether a manifest was refused since something is missing that was taken for there.
func (c *imageCopy) lacks(err error) bool {
	return c.trust && errors.Is(err, ErrIncomplete) && !errors.Is(err, ErrSparse)
}

// askAgain asks for everything once more, after a manifest was refused since something is missing.
func (c *imageCopy) askAgain(ctx context.Context, err error) error {
	c.event(Event{Kind: EventRetry, Attempt: 1, Err: redact.Error(err)})
	return c.round(ctx, false)
}

// round copies what is not there. trust tells that a manifest which is there has what it refers to.
func (c *imageCopy) round(ctx context.Context, trust bool) error {
	c.trust, *c.account = trust, Account{Sent: c.account.Sent, Written: c.account.Written,
		WrittenBytes: c.account.WrittenBytes, Tagged: c.account.Tagged, TagKept: c.account.TagKept}
	c.budget = c.o.Limits.NewBudget()
	c.nodes, c.platforms, c.matched = map[digest.Digest]*node{}, nil, false
	root, err := c.plan(ctx, c.top)
	if err != nil {
		return err
	}
	c.root = root
	c.collect(root)
	if len(c.platforms) > 0 && len(c.o.Platforms) > 0 && !c.matched {
		return &PlatformError{Wanted: c.o.Platforms, There: c.platforms}
	}
	if err := c.checkSparse(ctx, root); err != nil {
		return err
	}
	c.account.Digest, c.account.MediaType, c.account.Size = root.Digest, root.MediaType, root.Size
	for _, n := range root.list()[1:] {
		c.account.Instances = append(c.account.Instances, n.Descriptor)
	}
	c.account.Instances = Once(c.account.Instances) // two indexes may have become one
	if err := c.blobs(ctx, root); err != nil {
		return err
	}
	c.account.Moves = c.movesInOrder()
	c.account.Present = root.complete()
	root.withTag = c.writesWithTag(root)
	if err := c.manifests(ctx, root); err != nil {
		return err
	}
	if c.to.Can().Staged {
		return c.tags(ctx) // before what is attached, so that the image is the first in an index
	}
	return nil
}

// writesWithTag tells whether the top manifest is written together with its first tag, which saves a request, and not
// before that under its digest. One that is read back needs the digest. One with a subject is listed after it is
// written: a tag that is there would tell the next run that it is done.
func (c *imageCopy) writesWithTag(root *node) bool {
	return !root.written && !c.o.Confirm && !root.refers && len(c.names) > 0 &&
		(c.names[0].Tag != "" || c.to.Can().Staged)
}

// ensureTop makes sure that the target has the top manifest under its digest.
func (c *imageCopy) ensureTop(ctx context.Context) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.root.written || c.refused != nil {
		return c.refused
	}
	c.refused = c.writeTop(ctx, WriteOptions{})
	return c.refused
}

func (c *imageCopy) commit(ctx context.Context) error {
	err := c.to.Commit(ctx)
	c.account.Done = err == nil
	return err
}

// confirm reads the manifest back.
func (c *imageCopy) confirm(ctx context.Context) error {
	text, _, err := c.to.Manifest(ctx, c.root.Digest.String())
	if errors.Is(err, ErrDenied) {
		return nil
	}
	if errors.Is(err, ErrNoManifest) {
		err = fmt.Errorf("%w: %w", fault.ErrIntegrity, err)
	}
	if err != nil {
		return fmt.Errorf("reading back what was pushed: %w", err)
	}
	if digest.FromBytes(text) != c.root.Digest {
		return fmt.Errorf("%w: %s@%s does not return what was pushed to it: it begins with %.80q", fault.ErrIntegrity,
			c.to.Name(), c.root.Digest, text)
	}
	return nil
}
