package build

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
)

// maxManifest is the longest manifest of an image in bytes.
const maxManifest = 4 << 20

// Directories opens prebuilt images in directories of the transport "dir:", one per platform: a single image unchanged,
// or an index of all in the given order. Only the options Format, which must be that of the images, and Annotations,
// for the index, are used. Manifests and configurations are read now, and the digests of layers are found out when they
// are copied: the directories must stay as they are until then.
func Directories(_ context.Context, dirs []string, o Options) (*Image, error) {
	if len(dirs) == 0 {
		return nil, errors.New("no image was built")
	}
	o.Format = cmp.Or(o.Format, FormatOCI)
	img := &Image{
		manifests: map[digest.Digest][]byte{}, configs: map[digest.Digest][]byte{}, files: map[digest.Digest]string{},
		lazy: map[digest.Digest]*lazyLayer{}, bases: map[digest.Digest]*base{}, remote: map[digest.Digest]*remoteBlob{},
	}
	sizes := map[digest.Digest]int64{}
	for _, dir := range dirs {
		if err := img.addDirectory(dir, o.Format, sizes); err != nil {
			return nil, fmt.Errorf("image in %s: %w", dir, err)
		}
	}
	only := img.Platforms[0]
	img.Digest, img.MediaType, img.manifest = only.Digest, imageType(o.Format), img.manifests[only.Digest]
	if len(img.Platforms) > 1 {
		text, err := index(o.Format, img.Platforms, sizes, o.Annotations)
		if err != nil {
			return nil, err
		}
		img.Digest, img.MediaType, img.manifest = digest.FromBytes(text), indexType(o.Format), text
	}
	img.sum()
	return img, nil
}

// addDirectory adds the image of one platform.
func (i *Image) addDirectory(dir string, f Format, sizes map[digest.Digest]int64) error {
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
	if got := about.Digest.Algorithm().FromBytes(settings); got != about.Digest {
		return fmt.Errorf("configuration: digest mismatch: %s instead of %s", got, about.Digest)
	}
	var config v1.Image
	if err := json.Unmarshal(settings, &config); err != nil {
		return fmt.Errorf("configuration: %w", err)
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
		i.Layers = append(i.Layers, Layer{Kind: LayerFiles, MediaType: l.MediaType, Digest: l.Digest, DiffID: config.RootFS.DiffIDs[n], Size: l.Size})
	}
	pi := PlatformImage{Platform: config.Platform, Digest: digest.FromBytes(text), Config: about.Digest}
	i.Platforms = append(i.Platforms, pi)
	i.manifests[pi.Digest], i.configs[pi.Config], sizes[pi.Digest] = text, settings, int64(len(text))
	return nil
}

// readLimited reads a file that must not be longer than max bytes.
func readLimited(path string, max int64) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(text)) > max {
		err = fmt.Errorf("%s: longer than %d bytes", path, max)
	}
	return text, err
}
