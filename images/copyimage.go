package images

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/blobcache"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/registry"
)

// CopyResult is what [Client.Copy] has written.
type CopyResult struct {
	// Source is the name of the image as given, without credentials.
	Source string `json:"source"`
	Result
	referrers.Account
}

// CheckCopy returns the error that [Client.Copy] has, before any work, for a source whose attachments the destination
// cannot keep, and for a name that is none.
func CheckCopy(name string, dest Destination, what referrers.Kinds) error {
	asked, err := parseSourceName(name)
	if err != nil {
		return redact.Error(fmt.Errorf("image %.300q: %w", name, err))
	}
	if what != (referrers.Kinds{}) && asked.transport.keepsAttachments() {
		return dest.CheckAttachments()
	}
	return nil
}

// Copy copies the image with a name in the form of [ParseSource] to a destination, byte for byte and with all
// platforms, with what is attached to it, its entries and its attachments ([referrers.Copy]). The name is resolved
// once, and the policy of the client must accept the image. What the destination has is not sent again, and a registry
// mounts blobs from the source if that is in it.
//
// A destination that keeps no attachments is an [ErrNoAttachments] before anything is written, unless none are asked
// for or the source keeps none. Policy and Attachments of the options are not used.
func (c *Client) Copy(ctx context.Context, name string, dest Destination, what referrers.Kinds,
	o CopyOptions) (_ CopyResult, err error) {
	result := CopyResult{Source: redact.Text(name), Account: referrers.Account{Copied: []referrers.Copied{}}}
	ref, err := c.Reference(name)
	if err != nil {
		return result, redact.Error(err)
	}
	asked, err := parseSourceName(name)
	if err != nil {
		return result, redact.Error(err)
	}
	if err := CheckCopy(name, dest, what); err != nil {
		return result, err
	}
	ctx, cancel := o.deadline(ctx)
	defer cancel()
	o.Attachments = nil
	src, err := ref.NewImageSource(ctx, nil)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	verified := src.(*verifiedSource)
	from, err := FromSource(ctx, verified)
	if err != nil {
		return result, err
	}
	if asked.transport == Docker {
		from.Reader = &cached{from.Reader, c.o.Cache, asked.repository.Name()}
	}
	if what != (referrers.Kinds{}) && asked.transport.keepsAttachments() {
		var beside store.Reader
		if remote, ok := verified.ImageSource.(*registry.Source); ok {
			beside = remote.Repository()
		} else {
			at, _, err := openLayout(ctx, asked.place(), c.o.Limits, c.o.Temp)
			if err != nil {
				return result, redact.Error(err)
			}
			defer func() { err = errors.Join(err, at.Close()) }()
			beside = at
		}
		o.Attachments = []store.Attachment{&copiedAttachments{from: beside, what: what, account: &result.Account}}
	}
	done, err := Copy(ctx, from, []Destination{dest}, o)
	if len(done) > 0 {
		result.Result = done[0]
		if dest.Transport == DockerArchive { // the archive has no manifest that could have a digest
			result.Digest, result.MediaType = from.Top.Digest, from.Top.MediaType
		}
	}
	return result, err
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

// cached reads the blobs of an image in a registry from the cache, and keeps them there, so that an interrupted copy goes
// on with what it has. A registry that has the image mounts them.
type cached struct {
	store.Reader
	cache      *blobcache.Cache
	repository string
}

func (c *cached) Can() store.Abilities {
	return store.Abilities{Repositories: func(digest.Digest) []string { return []string{c.repository} }}
}

func (c *cached) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	return store.Skip(func() (io.ReadCloser, error) {
		if b, ok := c.cache.Open(ctx, d.Digest, d.Size); ok {
			return b, nil
		}
		b, err := c.Reader.Blob(ctx, d, 0)
		if err != nil {
			return nil, err
		}
		return c.cache.Tee(d.Digest, d.Size, b), nil
	}, from)
}
