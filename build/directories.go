package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.podman.io/image/v5/manifest"
)

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
