package staying

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/atmirror"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
	"github.com/operator-bindery/bindery/render"
)

// published is a catalog at the registry of a target.
type published struct {
	at     imageset.Ref
	digest digest.Digest
	// below is where its images are, flattened; nil if it is not known to which path it was mirrored.
	below *string
}

// naming is how a catalog names an image.
type naming struct {
	by     *published
	bundle string
	tag    string
	digest digest.Digest
	// direct tells that the catalog names the image at the registry itself.
	direct bool
}

// flatten makes paths comparable that were written with different values of --max-nested-paths: it joins all parts.
func flatten(path string) string { return strings.ReplaceAll(path, "/", "-") }

// isAt tells whether the image is below a flattened path.
func (x naming) isAt(below string) bool {
	switch {
	case x.direct:
		return below == ""
	case x.by.below != nil:
		return below == *x.by.below
	}
	return below == "" || strings.HasPrefix(flatten(x.by.at.Path), below+"-")
}

// findPublished looks for the catalogs of a registry that no record names, in every repository that it lists.
func (n *Needs) findPublished(ctx context.Context) ([]*published, error) {
	names, err := n.o.Remote.Repositories(ctx, n.o.Target.Host)
	if errors.Is(err, registries.ErrNoCatalog) {
		n.o.Warn(fmt.Sprintf("%s does not list its repositories: catalogs that this workspace did not mirror are not "+
			"known, and what they need is not looked for", n.o.Target.Host))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &search{Needs: n, isCatalog: map[digest.Digest]bool{}}
	err = guard.Each(ctx, requestsAtOnce, names, func(ctx context.Context, _ int, name string) error {
		ref := imageset.Ref{Transport: imageset.Docker, Host: n.o.Target.Host, Path: name}
		err := s.searchRepository(ctx, ref)
		if atmirror.IsRefused(err) && !n.isBelow(name) {
			n.o.Warn(fmt.Sprintf("%s cannot be looked into, and may have catalogs: %v", ref.Name(), err))
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s, which may have a catalog that needs the images: %w", ref.Name(), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.found, func(a, b *published) int { return strings.Compare(a.at.String(), b.at.String()) })
	return s.found, nil
}

// isBelow tells whether a repository is below the path of the target.
func (n *Needs) isBelow(path string) bool {
	return n.o.Target.Path == "" || strings.HasPrefix(flatten(path), flatten(n.o.Target.Path)+"-")
}

// search is one look for catalogs.
type search struct {
	*Needs
	mu        sync.Mutex
	found     []*published
	isCatalog map[digest.Digest]bool // by the configuration of an image
}

// searchRepository looks at the tags of a repository. Those are passed over that belong to images; what a catalog names
// as an image may be a catalog, too. The tag of a digest may have the list of what is attached to the catalog with that
// digest: both are looked at.
func (s *search) searchRepository(ctx context.Context, ref imageset.Ref) error {
	at, err := s.o.Remote.Repository(ref.Repository())
	if err != nil {
		return nil // clients refuse such a name
	}
	tags, _, err := at.Tags(ctx, 0)
	if atmirror.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, tag := range tags {
		ref.Tag = tag
		if referrers.IsTag(tag) || s.isRecorded(ref) {
			continue
		}
		top, err := s.addIfCatalog(ctx, at, ref, tag)
		if name := atmirror.PullName(ref); err == nil && name != tag && name != top.String() {
			_, err = s.addIfCatalog(ctx, at, ref, name)
		}
		if err != nil {
			return fmt.Errorf("tag %s: %w", tag, err)
		}
	}
	return nil
}

// addIfCatalog adds a tag or digest if an image of it has the labels of a catalog or of an index database. An image
// that no client can use does not count as a catalog.
func (s *search) addIfCatalog(ctx context.Context, at store.Reader, ref imageset.Ref,
	name string) (digest.Digest, error) {
	text, _, err := at.Manifest(ctx, name)
	if err != nil {
		return "", ignoreUnusable(err)
	}
	top := digest.FromBytes(text)
	is, err := s.isCatalogImage(ctx, at, text)
	if is {
		s.mu.Lock()
		s.found = append(s.found, &published{at: ref, digest: top})
		s.mu.Unlock()
	}
	return top, err
}

// isCatalogImage tells whether a manifest, or an entry of an index, is a catalog or an index database. Not all entries
// with a configuration are images.
func (s *search) isCatalogImage(ctx context.Context, at store.Reader, text []byte) (is bool, err error) {
	parts, err := store.PartsOf(text)
	if err != nil {
		return false, nil // clients refuse such an image
	}
	read := func(ctx context.Context, n *store.Node) error {
		if is {
			return nil
		}
		text, _, err := at.Manifest(ctx, n.Digest.String())
		if err == nil {
			n.Parts, err = store.PartsOf(text)
		}
		return ignoreUnusable(err)
	}
	visit := func(ctx context.Context, n *store.Node) (err error) {
		if !is && n.Parts != nil && n.Parts.Config != nil {
			is, err = s.hasCatalog(ctx, at, *n.Parts.Config)
		}
		return err
	}
	err = store.Walk(ctx, store.Node{Descriptor: v1.Descriptor{Digest: digest.FromBytes(text)}, Parts: parts},
		store.WalkOptions{Read: read, Visit: visit})
	return is, ignoreUnusable(err)
}

// hasCatalog tells whether the image with a configuration is a catalog.
func (s *search) hasCatalog(ctx context.Context, at store.Reader, c v1.Descriptor) (is bool, err error) {
	if c.MediaType != v1.MediaTypeImageConfig && c.MediaType != manifest.DockerV2Schema2ConfigMediaType {
		return false, nil
	}
	s.mu.Lock()
	is, known := s.isCatalog[c.Digest]
	s.mu.Unlock()
	if known {
		return is, nil
	}
	labels, err := readLabels(ctx, at, c)
	if err != nil {
		return false, ignoreUnusable(err)
	}
	is = labels[build.ConfigsLabel] != "" || labels[build.DatabaseLabel] != ""
	s.mu.Lock()
	s.isCatalog[c.Digest] = is
	s.mu.Unlock()
	return is, nil
}

// ignoreUnusable returns the error of something that may be a catalog; nil if it cannot be one that a cluster reads.
func ignoreUnusable(err error) error {
	if atmirror.IsAbsent(err) || errors.Is(err, fault.ErrInvalid) || errors.Is(err, fault.ErrLimit) {
		return nil
	}
	return err
}

// readLabels reads the labels of a configuration.
func readLabels(ctx context.Context, at store.Reader, d v1.Descriptor) (_ map[string]string, err error) {
	r, err := at.Blob(ctx, d, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	text, err := io.ReadAll(io.LimitReader(r, limit.MaxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(text) > limit.MaxManifest {
		return nil, fmt.Errorf("%w: more than %d bytes", fault.ErrLimit, limit.MaxManifest)
	}
	var image v1.Image
	if err := json.Unmarshal(text, &image); err != nil {
		return nil, fmt.Errorf("%w: configuration: %v", fault.ErrInvalid, err)
	}
	return image.Config.Labels, nil
}

// readPublished adds what a catalog names, without the bundles that are to be deleted from it.
func (n *Needs) readPublished(ctx context.Context, c *published) error {
	o := n.o.Render
	o.Skeleton, o.Opened = true, nil
	o.Allow = []render.Kind{render.CatalogImage, render.DatabaseImage}
	blobs, err := o.Render(ctx, c.at.Repository()+"@"+c.digest.String())
	if err != nil {
		return err
	}
	for blob, err := range blobs {
		if err != nil {
			return err
		}
		b, ok := blob.(*declcfg.Bundle)
		if !ok || n.isDeleted(c, b) {
			continue
		}
		for image := range atmirror.ImagesOf(b) {
			ref, err := imageset.ParseRef(image)
			if err != nil {
				continue // an image with such a name cannot have been mirrored
			}
			x := naming{by: c, bundle: b.Name, tag: ref.Tag, digest: ref.Digest}
			n.names[flatten(ref.Path)] = append(n.names[flatten(ref.Path)], x)
			if ref.AtHost(n.o.Target.Host) {
				x.direct = true
				n.names[flatten(ref.Path)] = append(n.names[flatten(ref.Path)], x)
			}
		}
	}
	return nil
}

// publishedBy returns the catalogs that are recorded or listed and that are at the target.
func (n *Needs) publishedBy(ctx context.Context, records []*workdir.Record) (out []*published, err error) {
	below := map[imageset.Ref]string{}
	for _, c := range n.o.Gone {
		if ref, err := imageset.ParseRef(c.Reference); err == nil {
			if at, ok := atmirror.AtHost(ref, n.o.Target.Host); ok {
				below[at] = n.o.Target.Path
			}
		}
	}
	for _, rec := range records {
		for _, c := range rec.Catalogs {
			_, below[c.Destination], _ = strings.Cut(rec.Target, "/")
		}
	}
	for ref, path := range below {
		at, err := n.o.Remote.Repository(ref.Repository())
		if err != nil {
			return nil, err
		}
		_, top, err := atmirror.Head(ctx, at, ref)
		if atmirror.IsAbsent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("catalog %s at the target, which may need the images: %w", ref.Name(), err)
		}
		path = flatten(path)
		out = append(out, &published{at: ref, digest: top.Digest, below: &path})
	}
	slices.SortFunc(out, func(a, b *published) int { return strings.Compare(a.at.String(), b.at.String()) })
	return out, nil
}
