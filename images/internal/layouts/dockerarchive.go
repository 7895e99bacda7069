package layouts

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// archivedImage is one image in the manifest.json of an archive of "docker save".
type archivedImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// openDockerArchive finds the image in an archive of "docker save". Such archives have no manifest with digests, so one
// is made of the files. Its digest is a function of the image, but not the digest that a registry has for it.
func (o *oneImage) openDockerArchive(ctx context.Context, name string, limits limit.Limits) error {
	content, err := readFile(o.files, "manifest.json")
	if err != nil {
		return err
	}
	var list []archivedImage
	if err := json.Unmarshal(content, &list); err != nil {
		return fmt.Errorf("%w: manifest.json: %v", fault.ErrInvalid, err)
	}
	image, err := chooseArchived(list, name)
	if err != nil {
		return err
	}
	if len(image.Layers) > limit.MaxLayers {
		return fmt.Errorf("%w: %d layers (limit %d)", fault.ErrLimit, len(image.Layers), limit.MaxLayers)
	}
	config, err := readFile(o.files, cleanEntry(image.Config))
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	var c v1.Image
	if err := json.Unmarshal(config, &c); err != nil {
		return fmt.Errorf("%w: configuration: %v", fault.ErrInvalid, err)
	}
	if got, want := len(c.RootFS.DiffIDs), len(image.Layers); got != want {
		return fmt.Errorf("%w: configuration: %d diff_ids for %d layers", fault.ErrIntegrity, got, want)
	}
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: manifest.DockerV2Schema2MediaType}
	m.Config = v1.Descriptor{MediaType: manifest.DockerV2Schema2ConfigMediaType, Digest: digest.FromBytes(config),
		Size: int64(len(config))}
	names := map[digest.Digest]string{m.Config.Digest: cleanEntry(image.Config)}
	for i, l := range image.Layers {
		d, err := o.archivedLayer(ctx, cleanEntry(l), c.RootFS.DiffIDs[i], limits)
		if err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
		names[d.Digest] = cleanEntry(l)
		m.Layers = append(m.Layers, d)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	o.Single = store.NewSingle(text, m.MediaType)
	o.name = func(d digest.Digest) string { return names[d] }
	return nil
}

// cleanEntry returns the name of an entry as the index of the archive has it.
func cleanEntry(name string) string { return strings.TrimPrefix(name, "./") }

// archivedLayer returns the descriptor of a layer. The digest of an uncompressed layer is its diffID, which is compared
// when the layer is read. The digest of a compressed layer is computed.
func (o *oneImage) archivedLayer(ctx context.Context, name string, diffID digest.Digest,
	limits limit.Limits) (v1.Descriptor, error) {
	r, size, err := o.files.open(name)
	if err != nil {
		return v1.Descriptor{}, err
	}
	defer r.Close()
	d := v1.Descriptor{MediaType: manifest.DockerV2SchemaLayerMediaTypeUncompressed, Digest: diffID, Size: size}
	in := bufio.NewReader(ctxio.Reader{Ctx: ctx, R: r})
	head, err := in.Peek(8)
	if err != nil && err != io.EOF {
		return d, err
	}
	switch archive.Codec(head) {
	case "gzip":
		d.MediaType = manifest.DockerV2Schema2LayerMediaType
	case "zstd":
		d.MediaType = v1.MediaTypeImageLayerZstd
	default:
		return d, nil
	}
	if size > limits.Compressed {
		return d, limit.Errorf(limit.Compressed, limits.Compressed, "%.200q has %d bytes", name, size)
	}
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return d, err
	}
	d.Digest = digest.NewDigest(digest.SHA256, h)
	return d, nil
}

// chooseArchived finds an image by one of its references, or by "@" and its number. Without a name there must be only
// one.
func chooseArchived(list []archivedImage, name string) (archivedImage, error) {
	if len(list) > limit.MaxIndexEntries {
		return archivedImage{}, fmt.Errorf("%w: manifest.json: %d images (limit %d)", fault.ErrLimit, len(list),
			limit.MaxIndexEntries)
	}
	var tags []string
	for _, image := range list {
		for _, t := range image.RepoTags {
			tags = append(tags, fmt.Sprintf("%.100q", t))
		}
	}
	has := fmt.Sprintf("it holds %d images: %s", len(list), strings.Join(tags[:min(len(tags), maxTagsShown)], ", "))
	switch at, numbered := strings.CutPrefix(name, "@"); {
	case numbered:
		i, err := strconv.Atoi(at)
		if err != nil || i < 0 || i >= len(list) {
			return archivedImage{}, fmt.Errorf("%w: the archive has no image %.40q: %s", fault.ErrInvalid, name, has)
		}
		return list[i], nil
	case name == "" && len(list) == 1:
		return list[0], nil
	case name == "":
		return archivedImage{}, fmt.Errorf(
			"%w: the archive has no single image, and none is chosen by its reference: %s", fault.ErrInvalid, has)
	}
	want, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return archivedImage{}, err
	}
	full := reference.TagNameOnly(want).String()
	for _, image := range list {
		if slices.ContainsFunc(image.RepoTags, func(t string) bool {
			given, err := reference.ParseNormalizedNamed(t)
			return err == nil && given.String() == full
		}) {
			return image, nil
		}
	}
	return archivedImage{}, fmt.Errorf("%w: the archive has no image %.200q: %s", fault.ErrInvalid, name, has)
}
