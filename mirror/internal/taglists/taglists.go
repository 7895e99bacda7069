// Package taglists saves the requests for attachments that are not there: the tags of a source repository are listed
// once.
package taglists

import (
	"context"
	"io/fs"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/keyed"
)

// Lists are the tags of source repositories. What is attached to an image takes four requests of tags that are mostly
// not there; a list takes one for all images of a repository, as long as it has no more pages than images. It is safe
// for concurrent use.
type Lists struct {
	// images is how many images of a repository are copied, where that are several; not changed while images are.
	images map[string]int

	lists keyed.Memo[string, map[string]bool]
}

// New returns the lists of repositories, with how many images are copied of those that have several.
func New(images map[string]int) *Lists {
	return &Lists{images: images}
}

// Reader returns a reader of a repository that asks for no tag which is known not to be there.
func (t *Lists) Reader(repository string, from store.Reader) store.Reader {
	if from.Can().Tags {
		return &listedReader{Reader: from, lists: t, repository: repository}
	}
	return from
}

// attachmentTags returns the tags of a repository that attachments may have; nil if they are not known, where the list
// takes more requests than it saves, or is refused.
func (t *Lists) attachmentTags(ctx context.Context, name string, from store.Reader) map[string]bool {
	list, _ := t.lists.Get(ctx, name, func(ctx context.Context) (map[string]bool, error) {
		tags, all, err := from.Tags(ctx, max(t.images[name], 1))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil || !all {
			return nil, nil
		}
		out := map[string]bool{}
		for _, tag := range tags {
			if strings.HasPrefix(tag, tagPrefix) {
				out[tag] = true
			}
		}
		return out, nil
	})
	return list
}

// tagPrefix is what the tags of attachments begin with.
const tagPrefix = "sha256-"

// listedReader reads a repository whose tags are listed once.
type listedReader struct {
	store.Reader
	lists      *Lists
	repository string
}

// absent tells whether a tag is known not to be there.
func (r *listedReader) absent(ctx context.Context, tag string) bool {
	known := r.lists.attachmentTags(ctx, r.repository, r.Reader)
	return known != nil && !known[tag]
}

func (r *listedReader) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	if strings.HasPrefix(name, tagPrefix) && r.absent(ctx, name) {
		return nil, "", fs.ErrNotExist
	}
	return r.Reader.Manifest(ctx, name)
}

func (r *listedReader) Referrers(ctx context.Context, subject digest.Digest,
	_ func(tag string) bool) ([]v1.Descriptor, error) {
	return r.Reader.Referrers(ctx, subject, func(tag string) bool { return !r.absent(ctx, tag) })
}
