package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// CheckAccepted returns an error unless the signature policy accepts an image: itself, or of an index every entry,
// whatever it is for, since others may choose an entry that this package does not. want is the digest that the name
// must refer to. Errors are those of [Client.Reference], of the class [ErrPolicy] for what is refused.
func (c *Client) CheckAccepted(ctx context.Context, name string, want digest.Digest) (err error) {
	ref, err := c.Reference(name)
	if err != nil {
		return err
	}
	src, err := ref.NewImageSource(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	v := src.(*verifiedSource)
	if got := identityOf(v.ImageSource, v.text); got != want {
		return fmt.Errorf("%w: %s was changed meanwhile, from %s to %s", fault.ErrIntegrity, name, want, got)
	}
	if v.top.accepted {
		return nil
	}
	entries := 0
	var check func(text []byte, depth int) error
	check = func(text []byte, depth int) error {
		var index v1.Index
		if err := json.Unmarshal(text, &index); err != nil {
			return fmt.Errorf("%w: index: %v", fault.ErrInvalid, err)
		}
		entries += len(index.Manifests)
		if entries > limit.MaxIndexEntries || depth > limit.MaxIndexDepth {
			return fmt.Errorf("index: %w: more than %d entries, or more than %d deep", fault.ErrLimit,
				limit.MaxIndexEntries, limit.MaxIndexDepth)
		}
		for _, d := range index.Manifests {
			if err := verify.Digest(d.Digest); err != nil {
				return fmt.Errorf("index: %w", err)
			}
			text, kind, err := v.GetManifest(ctx, &d.Digest)
			if err == nil && manifest.MIMETypeIsMultiImage(kind) {
				err = check(text, depth+1)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return check(v.text, 0)
}
