package mirror

import (
	"context"
	"io/fs"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
)

// tagLists are the tags of source repositories. What is attached to an image takes four requests of tags that are
// mostly not there; a list takes one for all images of a repository, as long as it has no more pages than images. It is safe for concurrent use.
type tagLists struct {
	// images is how many images of a repository are copied; not changed while images are.
	images map[string]int

	mu    sync.Mutex
	lists map[string]func() map[string]bool
}

// newTagLists counts the images of the repositories.
func newTagLists(list []*item) *tagLists {
	t := &tagLists{images: map[string]int{}, lists: map[string]func() map[string]bool{}}
	for _, i := range list {
		t.images[i.source.Repository()]++
	}
	return t
}

// reader returns a reader of an image's attachments that asks for no tag that is known not to be there.
func (t *tagLists) reader(i *item, from store.Reader) store.Reader {
	if name := i.source.Repository(); from.Can().Tags && t != nil {
		return &listedReader{Reader: from, lists: t, repository: name}
	}
	return from
}

// of returns the tags of a repository that attachments may have; nil if they are not known, where the list takes more
// requests than it saves, or is refused.
func (t *tagLists) of(ctx context.Context, name string, from store.Reader) map[string]bool {
	t.mu.Lock()
	list := t.lists[name]
	if list == nil {
		list = sync.OnceValue(func() map[string]bool {
			tags, all, err := from.Tags(ctx, t.images[name])
			if err != nil || !all {
				return nil
			}
			out := map[string]bool{}
			for _, tag := range tags {
				if strings.HasPrefix(tag, attachmentTags) {
					out[tag] = true
				}
			}
			return out
		})
		t.lists[name] = list
	}
	t.mu.Unlock()
	return list()
}

// attachmentTags is what the tags of attachments begin with.
const attachmentTags = "sha256-"

// listedReader reads a repository whose tags are listed once.
type listedReader struct {
	store.Reader
	lists      *tagLists
	repository string
}

// absent tells whether a tag is known not to be there.
func (r *listedReader) absent(ctx context.Context, tag string) bool {
	known := r.lists.of(ctx, r.repository, r.Reader)
	return known != nil && !known[tag]
}

func (r *listedReader) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	if strings.HasPrefix(name, attachmentTags) && r.absent(ctx, name) {
		return nil, "", fs.ErrNotExist
	}
	return r.Reader.Manifest(ctx, name)
}

func (r *listedReader) Referrers(ctx context.Context, subject digest.Digest,
	_ func(tag string) bool) ([]v1.Descriptor, error) {
	return r.Reader.Referrers(ctx, subject, func(tag string) bool { return !r.absent(ctx, tag) })
}
