package images

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
)

// visitor receives what is in a source.
type visitor struct {
	// image receives each image to run, with the text of its manifest and its entry in the index.
	image func(ctx context.Context, one *Image, text []byte, entry v1.Descriptor) error
	// index receives the outermost index, and other, unless nil, the entries that are no images to run.
	index func(v1.Index)
	other func(v1.Descriptor)
}

// walk visits the images of an index and of the indexes in it, in their order, or a single image. Of what the policy does
// not accept as a whole, each image that is visited is judged with the index that names it.
func (s *Source) walk(ctx context.Context, v visitor) error {
	verdicts := map[*store.Node]verdict{}
	return store.Walk(ctx, store.Node{Descriptor: s.Top, Text: s.text}, store.WalkOptions{
		Repeats: true, // one image may be for several platforms
		Read:    s.readEntry,
		Visit: func(ctx context.Context, n *store.Node) (err error) {
			entry := n.Descriptor
			entry.MediaType = n.Kind
			verdicts[n] = s.top
			if n.Above == nil {
				entry.Digest = s.Digest // as others know it
			} else if verdicts[n], err = s.admission.admit(ctx, verdicts[n.Above], n.Text, n.Kind); err != nil {
				return err
			}
			if !manifest.MIMETypeIsMultiImage(n.Kind) {
				one := s.image()
				one.Digest, one.MediaType = entry.Digest, n.Kind
				return v.image(ctx, one, n.Text, entry)
			}
			if n.Above == nil {
				var index v1.Index
				if err := json.Unmarshal(n.Text, &index); err != nil {
					return fmt.Errorf("%w: index: %v", fault.ErrInvalid, err)
				}
				v.index(index)
			}
			n.Entries = nil
			for _, d := range n.Parts.Manifests {
				if store.IsImage(d, len(n.Parts.Manifests)) {
					n.Entries = append(n.Entries, d)
				} else if v.other != nil {
					v.other(d)
				}
			}
			return nil
		},
	})
}
