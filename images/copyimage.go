package images

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/convert"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/redact"
)

// CopyResult is what [Client.Copy] has written.
type CopyResult struct {
	// Source is the name of the image as given, without credentials.
	Source string `json:"source"`
	Result
	referrers.Account
}

// CheckCopy returns the error that [Client.Copy] has, before any work, for a source whose attachments the destination
// cannot keep, and for a name that cannot be parsed.
func CheckCopy(ts transport.Table, name string, dest transport.Destination, what referrers.Kinds) error {
	asked, err := ts.Source(name)
	if err != nil {
		return redact.Error(fmt.Errorf("image %.300q: %w", name, err))
	}
	if what != (referrers.Kinds{}) && ts.Row(asked.Transport).Attachments {
		return ts.CheckAttachments(dest)
	}
	return nil
}

// Copy copies the image with a name in the form of [Client.Open] to a destination, byte for byte and with all
// platforms, with what is attached to it, its entries and its attachments ([referrers.Copy]). The name is resolved
// once, and the policy of the client must accept the image. What the destination has is not sent again, and a registry
// mounts blobs from the source if that is in it.
//
// A destination that keeps no attachments is an [transport.ErrNoAttachments] before anything is written, unless none
// are asked for or the source keeps none. The Attachments of the options are not used.
//
// With [CopyOptions.Format] the image is converted if it has another format. Then its digest is another, and an image
// that something is attached to is a [convert.ErrAttached] unless no attachments are asked for.
func (c *Client) Copy(ctx context.Context, name string, dest transport.Destination, what referrers.Kinds,
	o CopyOptions) (_ CopyResult, err error) {
	result := CopyResult{Source: redact.Text(name), Account: referrers.Account{Copied: []referrers.Copied{}}}
	if err := CheckCopy(c.transports, name, dest, what); err != nil {
		return result, err
	}
	ctx, cancel := o.deadline(ctx)
	defer cancel()
	o.Attachments, o.Transports = nil, c.transports
	src, err := c.Open(ctx, name)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	from, top, err := converted(ctx, src, what, o.Format)
	if err != nil {
		return result, src.opened.about(err)
	}
	if what != (referrers.Kinds{}) && src.Can().Attachments && top.Digest == src.Top.Digest {
		o.Attachments = []store.Attachment{&copiedAttachments{from: src, what: what, account: &result.Account}}
	}
	done, err := Copy(ctx, from, top, []transport.Destination{dest}, o)
	if len(done) > 0 {
		result.Result = done[0]
		if c.transports.Row(dest.Transport).Converts { // at the destination the image has no manifest with its digest
			result.Digest, result.MediaType = top.Digest, top.MediaType
		}
	}
	return result, err
}

// converted returns the image in a format, or as it is.
func converted(ctx context.Context, src *Source, what referrers.Kinds, f convert.Format) (store.Reader, v1.Descriptor, error) {
	if f == "" {
		return src, src.Top, nil
	}
	from, top, err := convert.To(ctx, src, src.Top, f)
	if err != nil || top.Digest == src.Top.Digest || what == (referrers.Kinds{}) || !src.Can().Attachments {
		return from, top, err
	}
	image, err := src.Entries(ctx)
	if err != nil {
		return nil, top, err
	}
	tree, err := referrers.ReadTree(ctx, src, image, store.Limits{})
	if err == nil && attached(tree) {
		err = convert.ErrAttached
	}
	return from, top, err
}

// attached tells whether something is attached to an image, or to one in its index.
func attached(t *referrers.Tree) bool {
	return len(t.Attached) > 0 || slices.ContainsFunc(t.Instances, attached)
}

// copiedAttachments are what is attached to the image at its source. They implement [store.Attachment].
type copiedAttachments struct {
	from    store.Reader
	what    referrers.Kinds
	account *referrers.Account
}

func (a *copiedAttachments) Attach(ctx context.Context, to store.Writer, image store.Image) (err error) {
	var all []digest.Digest
	for _, d := range image.Subjects() {
		all = append(all, d.Digest)
	}
	*a.account, err = referrers.Copy(ctx, a.from, to, all, a.what, store.Limits{})
	return err
}
