package build

import (
	"maps"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Kept is what an image takes over of the one that it is made from.
type Kept struct {
	Labels map[string]string
	// Annotations are those of the manifest. The docker format has none.
	Annotations map[string]string
}

// kept is what the image of a platform takes over.
func (o *Options) kept(p v1.Platform) Kept {
	if o.Kept == nil {
		return Kept{}
	}
	return o.Kept(p)
}

// annotations are all of a manifest or an index. What was asked for wins over what is taken over.
func (o *Options) annotations(kept map[string]string) map[string]string {
	if o.Format == FormatDocker || len(kept) == 0 {
		return o.Annotations
	}
	all := maps.Clone(kept)
	maps.Copy(all, o.Annotations)
	return all
}
