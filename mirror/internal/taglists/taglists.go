// Package taglists saves the requests for tags that are not there: those of a repository are listed once.
package taglists

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/keyed"
)

// Lists are the tags of repositories. What is attached to an image takes four requests of tags that are mostly not there
// at a source, and a target has few of the images of a first run; a list takes one request for all images of a
// repository, as long as it has no more pages than images. It is safe for concurrent use.
type Lists struct {
	prefix string // of the tags that are kept
	// images is how many images of a repository are copied, where that are several; not changed while images are.
	images map[string]int

	lists keyed.Memo[string, list]
}

// list is what is known of a repository: its tags, unless they are nil, or that the registry has no such repository.
type list struct {
	tags map[string]bool
	none bool
}

// New returns the lists of source repositories, with how many images are copied of those that have several.
func New(images map[string]int) *Lists { return &Lists{images: images, prefix: tagPrefix} }

// AtTarget returns the lists of repositories that images are copied to, with how many are copied to those that get
// several.
func AtTarget(images map[string]int) *Lists { return &Lists{images: images} }

// Lacks tells whether the target is known not to have a tag: it has no such repository, or lists others. Some registries
// do not list the tags of attachments.
func (t *Lists) Lacks(ctx context.Context, repository string, at store.Reader, tag string) bool {
	is := list{}
	if t.images[repository] > 0 {
		is = t.get(ctx, repository, at)
	} else { // it is asked for once
		is, _ = t.read(ctx, repository, at)
	}
	return is.none || is.tags != nil && !is.tags[tag] && !strings.HasPrefix(tag, tagPrefix)
}

// Reader returns a reader of a repository that asks for no tag which is known not to be there.
func (t *Lists) Reader(repository string, from store.Reader) store.Reader {
	if from.Can().Tags {
		return &listedReader{Reader: from, lists: t, repository: repository}
	}
	return from
}

// maxKept bounds the tags of one repository that are kept.
const maxKept = 20_000

// get returns what is known of a repository: no tags, where the list takes more requests than it saves, or is refused.
func (t *Lists) get(ctx context.Context, name string, from store.Reader) list {
	is, _ := t.lists.Get(ctx, name, func(ctx context.Context) (list, error) { return t.read(ctx, name, from) })
	return is
}

// read is like get, of a list that is not kept.
func (t *Lists) read(ctx context.Context, name string, from store.Reader) (list, error) {
	tags, all, err := from.Tags(ctx, max(t.images[name], 1))
	if ctx.Err() != nil {
		return list{}, context.Cause(ctx)
	}
	if err != nil || !all {
		return list{none: errors.Is(err, store.ErrNoRepository)}, nil
	}
	out := map[string]bool{}
	for _, tag := range tags {
		if strings.HasPrefix(tag, t.prefix) {
			out[tag] = true
		}
	}
	if len(out) > maxKept {
		return list{}, nil
	}
	return list{tags: out}, nil
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
	// A registry may hide a list, and show what is named by its digest.
	known := r.lists.get(ctx, r.repository, r.Reader).tags
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
