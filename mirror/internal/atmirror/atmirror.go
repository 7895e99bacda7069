// Package atmirror finds images at a mirror: the names by which they are pulled, and the tags of what is attached to
// them.
package atmirror

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// PullName is the name by which an image at a mirror is pulled: its digest if it is named by one. At a registry without
// the referrers API the tag sha256-HEX may have the list of what is attached to the image, and not the image.
func PullName(at imageset.Ref) string {
	if at.Digest != "" {
		return at.Digest.String()
	}
	if d := digest.Digest(strings.Replace(at.Tag, "-", ":", 1)); d.Validate() == nil {
		return d.String()
	}
	return at.Tag
}

// Head returns the descriptor of an image at a mirror, and the name by which it is found: [PullName], or the tag if the
// mirror does not have that digest.
func Head(ctx context.Context, at interface {
	Head(ctx context.Context, name string) (v1.Descriptor, error)
}, ref imageset.Ref) (name string, top v1.Descriptor, err error) {
	name = PullName(ref)
	if top, err = at.Head(ctx, name); IsAbsent(err) && ref.Tag != "" && name != ref.Tag {
		name = ref.Tag
		top, err = at.Head(ctx, name)
	}
	return name, top, err
}

// IsAbsent tells whether an error says that something does not exist. When images are copied, a refusal of access
// counts as that too. Here it does not: what is hidden may be needed by other images.
func IsAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) && !IsRefused(err)
}

// IsRefused tells whether a registry refuses access.
func IsRefused(err error) bool {
	var answer *registries.StatusError
	return errors.As(err, &answer) && (answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden)
}

// ParseSource parses the name of a source that an earlier run has read, whatever its transport is.
func ParseSource(name string) (ref imageset.Ref, err error) {
	err = ref.UnmarshalText([]byte(name))
	return ref, err
}

// DigestTag returns the tag that an image at a mirror has by its digest; empty if its source is not named by one.
func DigestTag(source string) string {
	if from, err := imageset.ParseRef(source); err == nil && from.InRegistry() && from.Digest != "" {
		return imageset.DigestTag(from.Digest)
	}
	return ""
}

// WithHost gives a reference the name by which a command knows the registry. It is false for another registry.
func WithHost(reference, host string) (string, bool) {
	ref, err := imageset.ParseRef(reference)
	if err != nil {
		return "", false
	}
	ref, ok := AtHost(ref, host)
	if !ok {
		return "", false
	}
	return ref.String(), true
}

// AtHost does the same with a reference that was parsed.
func AtHost(ref imageset.Ref, host string) (imageset.Ref, bool) {
	if !ref.InRegistry() || !ref.AtHost(host) {
		return imageset.Ref{}, false
	}
	ref.Host = host
	return ref, true
}

// ImagesOf yields the images that a bundle names: its own, and those that are related to it.
func ImagesOf(b *declcfg.Bundle) iter.Seq2[string, bool] {
	return func(yield func(image string, own bool) bool) {
		if b.Image != "" && !yield(b.Image, true) {
			return
		}
		for _, r := range b.RelatedImages {
			if r.Image != "" && r.Image != b.Image && !yield(r.Image, false) {
				return
			}
		}
	}
}
