package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
)

// maxScanned is how many bytes of manifests [Subjects] reads.
const maxScanned = 256 << 20

// Subjects is for places that do not list manifests by their subjects: it reads manifests, by [Reader.Manifest], and
// returns the descriptors of those that have a subject, by its digest. It skips manifests that are not there, and what is
// no manifest. Manifests of more than 256 MiB are an error, in which list names where they are listed.
func Subjects(ctx context.Context, list string, manifests iter.Seq[digest.Digest],
	read func(context.Context, string) ([]byte, string, error)) (map[digest.Digest][]v1.Descriptor, error) {
	found := map[digest.Digest][]v1.Descriptor{}
	seen := map[digest.Digest]bool{}
	total := 0
	for m := range manifests {
		if seen[m] {
			continue
		}
		seen[m] = true
		text, mediaType, err := read(ctx, m.String())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if total += len(text); total > maxScanned {
			return nil, fmt.Errorf("%s: %w: manifests of more than %d bytes", list, fault.ErrLimit, maxScanned)
		}
		if d, subject, err := reflist.Describe(text, mediaType); err == nil && subject != nil {
			found[subject.Digest] = append(found[subject.Digest], d)
		}
	}
	return found, nil
}

// WithTagged returns the referrers that a place lists, and then those that the manifest of the fallback tag of their
// subject lists, each digest once. What the tag lists is not checked. A tag that is not there, and one that is no list,
// lists nothing.
func WithTagged(listed []v1.Descriptor, subject digest.Digest,
	read func(tag string) (text []byte, mediaType string, err error)) ([]v1.Descriptor, error) {
	text, _, err := read(reflist.Tag(subject))
	if errors.Is(err, fs.ErrNotExist) {
		return Once(listed), nil
	}
	if err != nil {
		return nil, err
	}
	tagged, err := reflist.ParseTag(text, subject)
	if err != nil && !errors.Is(err, reflist.ErrNotList) {
		return nil, err
	}
	return Once(append(listed[:len(listed):len(listed)], tagged...)), nil
}
