package build

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/cataloglayer"
	"github.com/operator-bindery/bindery/layers"
)

// part is a layer to build and its description in the result.
type part struct {
	kind     LayerKind
	packages []string
	dir      string
	layer    layers.Layer
	// stacked is a layer of another image, which is not written again. proof is one that replaces the written layer if
	// the content is equal.
	stacked, proof *Layer
	key            digest.Digest
	notices        *cataloglayer.Notices // of the caches; nil without any
}

// openBases opens the base for every platform.
func openBases(ctx context.Context, o *Options) (_ []*base, err error) {
	bases := make([]*base, len(o.platforms()))
	if o.Base == nil {
		return bases, nil
	}
	defer func() {
		if err != nil {
			for _, b := range bases {
				if b != nil {
					err = errors.Join(err, b.src.Close())
				}
			}
		}
	}()
	for i, p := range o.platforms() {
		if bases[i], err = openBase(ctx, o.Base, o.System, p, o.Format, o.Compression == layers.Zstd); err != nil {
			return nil, fmt.Errorf("base image %s: %w", o.Base.StringWithinTransport(), err)
		}
	}
	return bases, nil
}

// asLayer describes a written part.
func (p part) asLayer(b layers.Blob, mediaType string) Layer {
	return Layer{
		Kind: p.kind, Packages: p.packages, Key: p.key, dir: p.dir, MediaType: mediaType,
		Digest: b.Digest, DiffID: b.DiffID, Size: b.Size, Uncompressed: b.Uncompressed, Content: p.contentSize(),
	}
}

// contentSize is the length of the catalogs in a layer of packages.
func (p part) contentSize() int64 {
	if p.kind != LayerPackages {
		return 0
	}
	return p.layer.Size()
}

// settled describes the part after it was written, or its replacement with the same content.
func (p part) settled(b layers.Blob, mediaType string) Layer {
	l := p.asLayer(b, mediaType)
	if p.proof == nil || p.proof.DiffID != l.DiffID {
		return l
	}
	same := *p.proof
	same.Key, same.Content, same.Uncompressed = p.keyAs(same.MediaType), l.Content, l.Uncompressed
	if same.Digest == l.Digest {
		same.remote = nil // the bytes are here already
	}
	return same
}

// keyAs is the key that the part has in a layer of a media type; empty if it has none.
func (p part) keyAs(mediaType string) digest.Digest {
	c, ok := compressionOf(mediaType)
	if !ok || p.key == "" {
		return ""
	}
	key, err := p.layer.Key(layers.Options{Compression: c})
	if err != nil {
		return ""
	}
	return key
}

// inFormat describes a layer of another image with the media type of a format.
func (l Layer) inFormat(f Format) (Layer, error) {
	mediaType, err := convertLayerType(f, l.MediaType)
	l.MediaType = mediaType
	return l, err
}

// assemble makes the image from layers that are written, or lazy: for each platform its base, its server, and what all
// have in common.
func assemble(o *Options, store *layers.Store, lazy map[digest.Digest]*lazyLayer, bases []*base, servers, common []Layer) (*Image, error) {
	img := &Image{
		manifests: map[digest.Digest][]byte{},
		configs:   map[digest.Digest][]byte{},
		files:     map[digest.Digest]string{},
		lazy:      lazy,
		bases:     map[digest.Digest]*base{},
		remote:    map[digest.Digest]*remoteBlob{},
	}
	sizes := map[digest.Digest]int64{}
	for i, p := range o.platforms() {
		var ls []Layer
		if b := bases[i]; b != nil {
			ls = append(ls, b.layers...)
			for _, l := range b.layers {
				img.bases[l.Digest] = b
			}
			img.closers = append(img.closers, io.Closer(b.src))
		}
		if len(servers) > 0 {
			ls = append(ls, servers[i])
		}
		ls = append(ls, common...)
		for _, l := range ls {
			switch {
			case l.remote != nil:
				img.remote[l.Digest] = l.remote
			case l.Kind != LayerBase && lazy[l.Digest] == nil:
				img.files[l.Digest] = store.Path(l.Digest)
			}
		}
		img.addLayers(ls)
		if err := img.addPlatform(o, p, bases[i], ls, sizes); err != nil {
			return nil, err
		}
	}
	only := img.Platforms[0]
	img.Digest, img.MediaType, img.manifest = only.Digest, imageType(o.Format), img.manifests[only.Digest]
	if len(img.Platforms) > 1 {
		text, err := index(o.Format, img.Platforms, sizes, o.indexAnnotations())
		if err != nil {
			return nil, err
		}
		img.Digest, img.MediaType, img.manifest = digest.FromBytes(text), indexType(o.Format), text
	}
	img.sum()
	img.mountable(o)
	return img, nil
}

// addPlatform adds the manifest and the configuration of one platform.
func (i *Image) addPlatform(o *Options, p v1.Platform, b *base, ls []Layer, sizes map[digest.Digest]int64) error {
	config, err := imageConfig(o, p, b, ls)
	if err != nil {
		return err
	}
	text, err := imageManifest(o.Format, config, ls, o.manifestAnnotations(p))
	if err != nil {
		return err
	}
	pi := PlatformImage{Platform: p, Digest: digest.FromBytes(text), Config: digest.FromBytes(config)}
	i.Platforms = append(i.Platforms, pi)
	i.manifests[pi.Digest], i.configs[pi.Config], sizes[pi.Digest] = text, config, int64(len(text))
	return nil
}
