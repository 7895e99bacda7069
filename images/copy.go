package images

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/convert"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/redact"
)

// CopyOptions configure [Copy]. The zero value makes one attempt without a limit of time.
type CopyOptions struct {
	registries.Options
	// Transports are those that destinations can have; nil means those of [BuiltIn].
	Transports transport.Table
	// Timeout, unless zero, is the time for the whole copy.
	Timeout time.Duration
	// IfDigest, unless empty, is what the tags in registries must point to until they are written: a digest, or
	// [store.IfNone] for no image; otherwise the error is a [*store.ConflictError]. Tags are compared before anything
	// is written, and again just before each is written, since most registries cannot compare and set in one step.
	IfDigest string
	// Checked, unless nil, is the result of [CopyOptions.CheckPush] with the same options. Its events go to the Events
	// of the check.
	Checked *PushCheck
	// Platform selects the image of an index that is written to a store; by default that for this machine, else any for
	// Linux.
	Platform v1.Platform
	// Format, unless empty, is what [Client.Copy] converts images to.
	Format convert.Format
	// Attachments are written beside the image in every destination, in their order. Destinations that keep none are
	// refused before anything is written; see [transport.ErrNoAttachments].
	Attachments []store.Attachment
}

// Result is what was written to one destination.
type Result struct {
	// Destination is the text of the destination.
	Destination string `json:"destination"`
	// Reference names the image: with its digest if the transport has digests.
	Reference string        `json:"reference"`
	Digest    digest.Digest `json:"digest"`
	MediaType string        `json:"mediaType"`
	// Written are the blobs that were written, with the configuration, Reused those that were there already, and
	// Mounted those that the registry took from another of its repositories.
	Written []digest.Digest `json:"written,omitempty"`
	Reused  []digest.Digest `json:"reused,omitempty"`
	Mounted []digest.Digest `json:"mounted,omitempty"`
	// Blobs has all blobs of an image in a registry, and Traffic their sums. Of several tags in one repository the
	// first one has the transfers.
	Blobs   []store.Move   `json:"blobs,omitempty"`
	Traffic *store.Traffic `json:"traffic,omitempty"`
}

// Copy writes an image at a place that is open, or all images of an index, to all destinations, in four steps:
//
//  1. stores, and files that the containers library writes, receive the image beside its place or without its name;
//  2. the others receive blobs and manifests, and then the attachments, registries in their place and layouts beside it;
//  3. registries receive the tags;
//  4. what was staged is put in place by renames, and stores receive the name.
//
// If a step fails, no later one begins, and no tag points to an incomplete image. After an error in the last two steps
// some destinations may be written: the results are those. Errors contain no credentials.
//
// A blob is read from the source only if the registry has it neither in the repository nor in another one that it can
// be mounted from ([store.Abilities]).
func Copy(ctx context.Context, from store.Reader, top v1.Descriptor, dests []transport.Destination,
	o CopyOptions) (results []Result, err error) {
	ctx, cancel := o.deadline(ctx)
	defer cancel()
	defer func() { err = redact.Error(err) }()
	for _, check := range []error{o.checkDistinct(dests), CheckIfDigest(o.IfDigest), o.checkAttachable(dests),
		o.checkFormats(top.MediaType, dests)} {
		if check != nil {
			return nil, check
		}
	}
	c, err := newCopier(ctx, from, top, dests, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for _, d := range dests {
		if err := c.open(ctx, d); err != nil {
			return nil, fmt.Errorf("%s: %w", d, err)
		}
	}
	for _, d := range dests {
		if err := c.fill(ctx, d); err != nil {
			return nil, fmt.Errorf("%s: %w", d, err)
		}
	}
	accounts, err := store.Copy(ctx, from, top, c.targets(), c.options())
	if err == nil {
		err = c.commit(ctx)
	}
	return c.results(dests, accounts), err
}

func (o CopyOptions) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, o.Timeout,
		fmt.Errorf("not done within %v: %w", o.Timeout, context.DeadlineExceeded))
}

// checkDistinct returns an error if two destinations are the same file, since the second image would replace the first.
func (o CopyOptions) checkDistinct(dests []transport.Destination) error {
	seen := map[string]bool{}
	for _, d := range dests {
		key := d.String()
		if row := o.transports().Row(d.Transport); row != nil && row.Files && !row.Many {
			key = d.Path
		}
		if seen[key] {
			return fmt.Errorf("%s: given twice", d)
		}
		seen[key] = true
	}
	return nil
}

// checkFormats returns an error if a destination cannot hold an image of a media type without converting it.
func (o CopyOptions) checkFormats(mediaType string, dests []transport.Destination) error {
	for _, d := range dests {
		row := o.transports().Row(d.Transport)
		if row == nil || row.Takes == nil {
			continue
		}
		if err := row.Takes(mediaType); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}
	return nil
}
