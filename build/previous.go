package build

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
)

// ReadPrevious reads what an image says about its layers, for all platforms and in all compressions: a registry can
// lend the layers of each. It is nil if there is no such image.
func ReadPrevious(ctx context.Context, client *images.Client, name string) (_ *Previous, err error) {
	found, err := client.Survey(ctx, name)
	if err != nil {
		// The first build of all has no previous one, and no reason to fail.
		if d, derr := client.Digest(ctx, name); derr == nil && d == "" {
			return nil, nil
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	all := make([]*images.Image, len(found.Images))
	for i, img := range found.Images {
		all[i] = img.Image
	}
	return PreviousOf(all...), nil
}

// PreviousOf reads what an image says about its layers: the same image for several platforms and in several
// compressions, as many as are of interest. Only manifests and configurations are looked at. What annotations say that
// cannot be is passed over; an image without annotations, one of the docker format or of another program, has no groups
// and no layers.
//
// Anyone who can write the image can write its annotations: the groups only say what shares a layer, but the layers are
// what the writer claims were built of the contents with these keys.
func PreviousOf(of ...*images.Image) *Previous {
	p := &Previous{Layers: map[digest.Digest]layers.Blob{}}
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
		if p.Repository == "" && img.InRegistry() {
			p.Repository, _, _ = strings.Cut(img.Reference(), "@")
		}
	}
	return p
}

// annotatedPackages are the packages of a layer, sorted, those with impossible names left out. A layer of packages that
// names none has the blobs of no package.
func annotatedPackages(d v1.Descriptor) []string {
	text, ok := d.Annotations[AnnotationPackages]
	if !ok {
		return []string{""}
	}
	var g []string
	for pkg := range strings.SplitSeq(text, ",") {
		if checkPackageName(pkg) == nil {
			g = append(g, pkg)
		}
	}
	slices.Sort(g)
	return slices.Compact(g)
}

// addLayer keeps a layer whose annotations have its key.
func (p *Previous) addLayer(d v1.Descriptor, diffID digest.Digest) {
	key, err := digest.Parse(d.Annotations[AnnotationKey])
	if err != nil {
		return
	}
	compression, ok := compressionOf(d.MediaType)
	if _, twice := p.Layers[key]; twice || !ok {
		return
	}
	p.Layers[key] = layers.Blob{Digest: d.Digest, DiffID: diffID, Size: d.Size, Compression: compression}
}
