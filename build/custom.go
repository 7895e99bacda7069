package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/layers"
)

// Custom is an image of one platform with arbitrary layers and configuration. [Assemble] does not interpret them.
type Custom struct {
	Platform v1.Platform
	// Base is the base image; nil means an empty root.
	Base *Base
	// BaseName, unless empty, is the name of the base in the image's annotations, in place of that of Base: a reference
	// with a tag rather than the digest that it stood for.
	BaseName string
	// Layers lie above the base, from the bottom up. A layer that several images share, by its address, is written
	// once.
	Layers []*layers.Layer
	// Config returns the text of the configuration. ids are the diffIDs of all layers, those of the base first. history
	// is the history of the base, with at least one entry per layer.
	Config func(ids []digest.Digest, history []v1.History) ([]byte, error)
}

// Assemble builds an image from all, an index if there is more than one. Only the options for layers, format,
// annotations and reporting are used. The caller must close the image, and keep o.Dir until it has been copied.
func Assemble(ctx context.Context, all []Custom, o Options) (_ *Image, err error) {
	o.Servers, o.caches.Native, o.Base, o.useBaseServer, o.serverOf = nil, nil, nil, false, nil
	if err := o.normalize(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("an image is for one platform at least")
	}
	bases := make([]*base, len(all))
	defer func() {
		if err != nil {
			err = errors.Join(err, closeBases(bases))
		}
	}()
	for i, c := range all {
		n := len(c.Layers)
		if c.Base != nil {
			if bases[i], err = openBase(ctx, &o, c.Base, c.Platform); err != nil {
				return nil, err
			}
			bases[i].name = cmp.Or(c.BaseName, bases[i].name)
			n += len(bases[i].layers)
		}
		if err := o.checkLayers(n); err != nil {
			return nil, err
		}
	}
	if o.Compression == CompressionAuto {
		return bothCompressions(&o, func(one *Options) (*Image, error) { return assembleCustom(ctx, one, all, bases) })
	}
	return assembleCustom(ctx, &o, all, bases)
}

// assembleCustom builds the image in one compression.
func assembleCustom(ctx context.Context, o *Options, all []Custom, bases []*base) (*Image, error) {
	mediaType, err := layerType(o.Format, o.Compression)
	if err != nil {
		return nil, err
	}
	store := layers.NewStore(o.Dir)
	written, err := writeCustom(ctx, o, all, store, mediaType)
	if err != nil {
		return nil, err
	}
	img := newImage()
	for i, c := range all {
		ls := img.addBase(bases[i])
		var history []v1.History
		if b := bases[i]; b != nil {
			history = b.history()
		}
		for _, l := range c.Layers {
			ls = append(ls, written[l])
			img.files[written[l].Digest] = store.Path(written[l].Digest)
		}
		ids := make([]digest.Digest, len(ls))
		for i, l := range ls {
			ids[i] = l.DiffID
		}
		img.addLayers(ls)
		config, err := c.Config(ids, history)
		if err != nil {
			return nil, err
		}
		text, err := imageManifest(o.Format, config, ls, o.annotations(bases[i].annotations()))
		if err != nil {
			return nil, err
		}
		img.addPlatform(c.Platform, text, config, digest.FromBytes(config))
	}
	return img, img.complete(o.Format, o.annotations(nil))
}

// writeCustom writes every layer once.
func writeCustom(ctx context.Context, o *Options, all []Custom, store *layers.Store,
	mediaType string) (map[*layers.Layer]Layer, error) {
	written := map[*layers.Layer]Layer{}
	var order []*layers.Layer
	var todo []layers.Layer
	for _, c := range all {
		for _, l := range c.Layers {
			if _, known := written[l]; !known {
				written[l] = Layer{}
				order, todo = append(order, l), append(todo, *l)
			}
		}
	}
	if o.Planned != nil {
		o.Planned(len(todo))
	}
	_, err := store.WriteAll(ctx, todo, o.layerOptions(), o.Jobs, func(n int, b layers.Blob) {
		l := Layer{Kind: LayerFiles, MediaType: mediaType, Digest: b.Digest, DiffID: b.DiffID, Size: b.Size,
			Uncompressed: b.Uncompressed}
		written[order[n]] = l
		if o.Events != nil {
			o.Events(l)
		}
	})
	return written, err
}

// maxManifest is the maximum length of an image's manifest in bytes.
const maxManifest = 4 << 20

// Directories opens prebuilt images in directories of the transport "dir:", one per platform: a single image unchanged,
// or an index of all in the given order. Only the options Format, which must be that of the images, and Annotations,
// for the index, are used. Manifests and configurations are read now, layers when they are copied: the directories must
// not change until then.
func Directories(_ context.Context, dirs []string, o Options) (*Image, error) {
	if len(dirs) == 0 {
		return nil, errors.New("no image was built")
	}
	o.Format = cmp.Or(o.Format, FormatOCI)
	img := newImage()
	for _, dir := range dirs {
		if err := img.addDirectory(dir, o.Format); err != nil {
			return nil, fmt.Errorf("image in %s: %w", dir, err)
		}
	}
	return img, img.complete(o.Format, o.Annotations)
}

// maxConfig is the maximum length of an image's configuration in bytes.
const maxConfig = 4 << 20

// addDirectory adds the image of one platform.
func (i *Image) addDirectory(dir string, f Format) error {
	text, err := readLimited(filepath.Join(dir, "manifest.json"), maxManifest)
	if err != nil {
		return err
	}
	if kind := manifest.GuessMIMEType(text); kind != imageType(f) {
		return fmt.Errorf("the manifest is %q instead of %q", kind, imageType(f))
	}
	m, err := manifest.FromBlob(text, imageType(f))
	if err != nil {
		return err
	}
	about := m.ConfigInfo()
	if err := about.Digest.Validate(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	settings, err := readLimited(filepath.Join(dir, about.Digest.Encoded()), maxConfig)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	config, err := parseConfig(settings, about.Digest)
	if err != nil {
		return err
	}
	infos := m.LayerInfos()
	if len(config.RootFS.DiffIDs) != len(infos) {
		return fmt.Errorf("configuration: %d diff_ids for %d layers", len(config.RootFS.DiffIDs), len(infos))
	}
	for n, l := range infos {
		if err := l.Digest.Validate(); err != nil {
			return fmt.Errorf("layer %d: %w", n, err)
		}
		if _, known := i.files[l.Digest]; known {
			continue
		}
		i.files[l.Digest] = filepath.Join(dir, l.Digest.Encoded())
		i.Layers = append(i.Layers, Layer{Kind: LayerFiles, MediaType: l.MediaType, Digest: l.Digest,
			DiffID: config.RootFS.DiffIDs[n], Size: l.Size})
	}
	i.addPlatform(config.Platform, text, settings, about.Digest)
	return nil
}

// readLimited reads a file of at most limit bytes.
func readLimited(path string, limit int64) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s: longer than %d bytes", path, limit)
	}
	return text, err
}
