package build

import (
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/convert"
)

// ToDocker gives an assembled image Docker's types, for a registry that refuses those of OCI. Its digest changes, and
// its annotations are left out. The error is of the class [fault.ErrInvalid] for layers with zstd, which Docker's format
// does not know. The image is unchanged after an error.
func (i *Image) ToDocker() error {
	if convert.Of(i.MediaType) == convert.Docker {
		return nil
	}
	manifests, made := map[digest.Digest][]byte{}, map[digest.Digest]v1.Descriptor{}
	for d, text := range i.manifests {
		text, kind, err := convert.Manifest(text, convert.Docker)
		if err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
		is := v1.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))}
		manifests[is.Digest], made[d] = text, is
	}
	platforms := slices.Clone(i.Platforms)
	var entries []v1.Descriptor
	for n, p := range platforms {
		d, ok := made[p.Digest]
		if !ok {
			continue
		}
		platforms[n].Digest = d.Digest
		d.Platform = &platforms[n].Platform
		entries = append(entries, d)
	}
	var top []byte
	var kind string
	var err error
	if i.MediaType == v1.MediaTypeImageIndex {
		top, kind, err = convert.Index(entries, nil, convert.Docker)
	} else {
		top, kind, err = convert.Manifest(i.manifest, convert.Docker)
		if len(platforms) == 1 {
			platforms[0].Digest = digest.FromBytes(top)
		}
	}
	if err != nil {
		return err
	}
	ls := slices.Clone(i.Layers)
	for n, l := range ls {
		if ls[n].MediaType, err = convert.LayerType(l.MediaType, convert.Docker); err != nil {
			return err
		}
	}
	i.manifest, i.manifests, i.MediaType, i.Digest = top, manifests, kind, digest.FromBytes(top)
	i.Platforms, i.Layers = platforms, ls
	return nil
}
