package staying

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/atmirror"
	"github.com/operator-bindery/bindery/mirror/releases/payload"
)

// keepReleases keeps what the releases at the target name that are not to be deleted, if images of releases are, and
// the graph image while there is such a release. If one cannot be read, the error keeps anything from being deleted.
//
// The repositories are recognized by how their paths end: a list does not say whether components of paths were joined.
func (n *Needs) keepReleases(ctx context.Context) error {
	type repositories struct{ content, graph string }
	of := map[string]repositories{} // by that of the release images
	for path := range n.listed {
		switch whole := flatten("/" + path); {
		case strings.HasSuffix(whole, "-openshift-release"):
			images := path + "-images"
			of[images] = repositories{path, of[images].graph}
		case strings.HasSuffix(whole, "-openshift-graph-image"):
			images := strings.TrimSuffix(path, "graph-image") + "release-images"
			of[images] = repositories{of[images].content, path}
		}
	}
	for _, images := range slices.Sorted(maps.Keys(of)) {
		at := of[images]
		err := n.eachRelease(ctx, images, func(tag string, names *payload.Payload) {
			for _, c := range names.Components {
				n.keepDigest(at.content, c.Image, "the release "+tag+" names it")
			}
			for _, ref := range names.KubeVirt {
				n.keepDigest(at.content, ref, "the release "+tag+" names it")
			}
			for image := range n.listed[at.graph] {
				n.keep(n.at(at.graph, imageset.Ref{Tag: image}), "the release "+tag+" is there, whose clusters are updated with it")
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachRelease calls use with the releases in a repository that are not to be deleted, by their tags.
func (n *Needs) eachRelease(ctx context.Context, path string, use func(tag string, names *payload.Payload)) error {
	at, err := n.o.Remote.Repository(n.o.Target.Host + "/" + path)
	if err != nil {
		return err
	}
	tags, _, err := at.Tags(ctx, 0)
	if atmirror.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, tag := range tags {
		if reflist.Belongs(tag) {
			continue
		}
		top, err := at.Head(ctx, tag)
		if atmirror.IsAbsent(err) {
			continue
		}
		if means, ok := n.listed[path][tag]; ok && (slices.Contains(means, "") || slices.Contains(means, top.Digest)) {
			continue
		}
		var names *payload.Payload
		if err == nil {
			names, err = payload.Read(ctx, at, top)
		}
		if errors.Is(err, payload.ErrNoRelease) {
			continue
		}
		if err != nil {
			return fmt.Errorf("release %s cannot be read, and may need the images: nothing is deleted: %w",
				n.at(path, imageset.Ref{Tag: tag}).Name(), err)
		}
		use(tag, names)
	}
	return nil
}

// keepDigest adds an image that must stay in a repository, by its digest.
func (n *Needs) keepDigest(path string, image imageset.Ref, why string) {
	if path != "" && image.Digest != "" {
		n.keep(n.at(path, imageset.Ref{Digest: image.Digest}), why)
	}
}

// at names an image in a repository at the target's registry.
func (n *Needs) at(path string, image imageset.Ref) imageset.Ref {
	image.Transport, image.Host, image.Path = imageset.Docker, n.o.Target.Host, path
	return image
}
