package build

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
)

// ReadPrevious reads the layer annotations of an image, for all platforms and in all compressions: the layers of each
// can be mounted. It returns nil if the image does not exist.
func ReadPrevious(ctx context.Context, client *images.Client, name string) (_ *Previous, err error) {
	src, err := client.Open(ctx, name)
	if err != nil {
		// The first build has no previous image, which is not an error.
		if d, derr := client.UnverifiedDigest(ctx, name); derr == nil && d == "" {
			return nil, nil
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	found, err := src.Survey(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]*images.Image, len(found.Images))
	for i, img := range found.Images {
		all[i] = img.Image
	}
	return previousOf(all...), nil
}

// previousOf reads the layer annotations of an image for one or more platforms and compressions. Only manifests and
// configurations are read. Invalid annotations are ignored; an image without annotations, of the docker format or of
// another program, has no groups and no layers.
//
// Anyone who can write the image can write its annotations: groups only determine which packages share a layer, but the
// keys of layers are claims of the writer.
func previousOf(of ...*images.Image) *Previous {
	p := &Previous{layers: map[digest.Digest]layers.Blob{}}
	for _, img := range of {
		var groups [][]string
		for i, d := range img.Layers {
			kind := LayerKind(d.Annotations[AnnotationKind])
			if kind == "" {
				continue
			}
			if kind == LayerPackages {
				if g := annotatedPackages(d); len(g) > 0 {
					groups = append(groups, g)
				}
			}
			p.addLayer(d, img.Config.RootFS.DiffIDs[i])
		}
		if p.Groups == nil {
			p.Groups = groups
		}
		if p.repository == "" && img.InRegistry() {
			p.repository, _, _ = strings.Cut(img.Reference(), "@")
		}
	}
	return p
}

// annotatedPackages returns the packages of a layer, sorted, without invalid names. A package layer without names has
// the blobs without a package.
func annotatedPackages(d v1.Descriptor) []string {
	text, ok := d.Annotations[AnnotationPackages]
	if !ok {
		return []string{""}
	}
	var g []string
	for pkg := range strings.SplitSeq(text, ",") {
		if cataloglayer.CheckName(pkg) == nil {
			g = append(g, pkg)
		}
	}
	slices.Sort(g)
	return slices.Compact(g)
}

// addLayer records a layer with a key in its annotations.
func (p *Previous) addLayer(d v1.Descriptor, diffID digest.Digest) {
	key, err := digest.Parse(d.Annotations[AnnotationKey])
	if err != nil {
		return
	}
	compression, ok := compressionOf(d.MediaType)
	if _, twice := p.layers[key]; twice || !ok {
		return
	}
	p.layers[key] = layers.Blob{Digest: d.Digest, DiffID: diffID, Size: d.Size, Compression: compression}
}
