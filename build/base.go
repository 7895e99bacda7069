package build

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/layers"
)

// Base is a base image.
type Base struct {
	// Name is its name for messages.
	Name string
	// Open opens an image of it, which choose chooses if it is an index. It is called for each platform.
	Open func(ctx context.Context, choose images.Chooser) (*images.Image, error)
}

// NamedBase is the base image with a name that [images.Client.Open] accepts. The client must be open as long as the
// image that is built of it.
func NamedBase(client *images.Client, name string) (*Base, error) {
	if _, err := client.Transports().Source(name); err != nil {
		return nil, redact.Error(fmt.Errorf("image %.300q: %w", name, err))
	}
	return &Base{name, func(ctx context.Context, choose images.Chooser) (*images.Image, error) {
		return client.Choose(ctx, name, choose)
	}}, nil
}

// base is the base image of one platform. Its layers are opened only when a destination needs their bytes.
type base struct {
	src    *images.Image
	config v1.Image
	layers []Layer
	infos  map[digest.Digest]v1.Descriptor
	// name is the reference of the image in a registry, else empty; top is the digest of its index or manifest.
	name string
	top  digest.Digest
}

// openBase opens a base image for a platform. If the base has images of both compressions, the compression in the
// options is preferred.
func openBase(ctx context.Context, o *Options, from *Base, p v1.Platform) (_ *base, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("base image %s: %w", redact.Text(from.Name), err)
		}
	}()
	choose := types.SystemContext{OSChoice: p.OS, ArchitectureChoice: p.Architecture, VariantChoice: p.Variant}
	src, err := from.Open(ctx, func(entries []v1.Descriptor) (v1.Descriptor, error) {
		return chooseBase(entries, &choose, o.Compression == layers.Zstd)
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, src.Close())
		}
	}()
	b := &base{src: src, infos: map[digest.Digest]v1.Descriptor{}, name: src.Named(), top: src.Top}
	if b.config, err = parseConfig(src.ConfigText, src.ConfigDescriptor.Digest); err != nil {
		return nil, err
	}
	if !platform.MatchesAnyVariant(b.config.Platform, p) {
		return nil, fmt.Errorf("the image is for %s/%s, not for %s/%s", b.config.OS, b.config.Architecture, p.OS,
			p.Architecture)
	}
	return b, b.addLayers(src.Layers, o.Format)
}

// chooseBase chooses the image for the platform.
func chooseBase(entries []v1.Descriptor, choose *types.SystemContext, zstd bool) (v1.Descriptor, error) {
	if !zstd {
		entries = withoutZstd(entries)
	}
	list := manifest.OCI1IndexFromComponents(entries, nil)
	instance, err := list.ChooseInstance(choose)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("no image for %s/%s in the index, which has %s", choose.OSChoice,
			choose.ArchitectureChoice, platformsOf(entries))
	}
	return entries[slices.IndexFunc(entries, func(d v1.Descriptor) bool { return d.Digest == instance })], nil
}

// platformsOf lists the platforms of an index for a message.
func platformsOf(entries []v1.Descriptor) string {
	var names []string
	for _, d := range entries {
		if p := d.Platform; p != nil && len(names) < 20 {
			names = append(names, fmt.Sprintf("%.40q", p.OS+"/"+p.Architecture))
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

func parseConfig(text []byte, want digest.Digest) (config v1.Image, err error) {
	if got := want.Algorithm().FromBytes(text); got != want {
		return config, fmt.Errorf("configuration: digest mismatch: %s instead of %s", got, want)
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return config, fmt.Errorf("configuration: %w", err)
	}
	return config, nil
}

func (b *base) addLayers(infos []v1.Descriptor, f Format) error {
	if ids := b.config.RootFS.DiffIDs; len(ids) != len(infos) {
		return fmt.Errorf("configuration: %d diff_ids for %d layers", len(ids), len(infos))
	}
	for i, l := range infos {
		if len(l.URLs) > 0 {
			return fmt.Errorf("layer %s is a foreign layer", l.Digest)
		}
		if err := l.Digest.Validate(); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
		kind, err := convertLayerType(f, l.MediaType)
		if err != nil {
			return err
		}
		b.layers = append(b.layers, Layer{
			Kind: LayerBase, MediaType: kind, Digest: l.Digest, DiffID: b.config.RootFS.DiffIDs[i], Size: l.Size,
		})
		b.infos[l.Digest] = v1.Descriptor{MediaType: l.MediaType, Digest: l.Digest, Size: l.Size}
	}
	return nil
}

// blob opens a layer of the base.
func (b *base) blob(ctx context.Context, d digest.Digest) (io.ReadCloser, int64, error) {
	r, err := b.src.Blob(ctx, b.infos[d])
	return r, b.infos[d].Size, err
}

// history returns the base's history, with entries added for layers without one: readers expect one per layer.
func (b *base) history() []v1.History {
	history := b.config.History
	mentioned := 0
	for _, h := range history {
		if !h.EmptyLayer {
			mentioned++
		}
	}
	if mentioned == len(b.layers) {
		return history
	}
	made := make([]v1.History, len(b.layers))
	for i := range made {
		made[i] = v1.History{Comment: "base image"}
	}
	return made
}

// trim leaves out the upper layers of a base that have nothing but its catalog and caches of it: the new image hides
// these, and would carry them for nothing. It stops at the first layer that has something else, so that what it reads
// is little more than what it leaves out.
func (b *base) trim(ctx context.Context, known map[digest.Digest]bool) error {
	hidden, err := b.hidden()
	at, ok := hidden[ConfigsLabel]
	if err != nil || !ok {
		return err
	}
	dirs := []string{at, cataloglayer.CacheDir, opmCacheDir}
	for n := len(b.layers) - 1; n >= 0; n-- {
		l := b.layers[n]
		only, read := known[l.Digest]
		if !read {
			if only, err = b.onlyIn(ctx, l, dirs); err != nil {
				return fmt.Errorf("base image: layer %s: %w", l.Digest, err)
			}
			known[l.Digest] = only
		}
		if !only {
			break
		}
		b.removeTopLayer()
	}
	return nil
}

// removeTopLayer leaves out the uppermost layer, with its line in the history and what follows that.
func (b *base) removeTopLayer() {
	if h := b.history(); len(h) > 0 {
		n := len(h) - 1
		for n > 0 && h[n].EmptyLayer {
			n--
		}
		b.config.History = h[:n]
	}
	b.layers = b.layers[:len(b.layers)-1]
	b.config.RootFS.DiffIDs = b.config.RootFS.DiffIDs[:len(b.layers)]
}

// onlyIn tells whether a layer has nothing but what is in some directories, and directories above them. Whiteouts count
// as files.
func (b *base) onlyIn(ctx context.Context, l Layer, dirs []string) (_ bool, err error) {
	limits := limit.Limits{}.WithDefaults()
	body, _, err := b.blob(ctx, l.Digest)
	if err != nil {
		return false, err
	}
	defer body.Close()
	plain, err := archive.Decompress(body, l.MediaType, l.Size)
	if err != nil {
		return false, err
	}
	defer plain.Close()
	r := tar.NewReader(archive.Bound(plain, limits, l.Size, new(int64)))
	for entries := 0; ; entries++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, archive.Error(err)
		}
		if entries > limits.Entries {
			return false, limit.Errorf(limit.Entries, int64(limits.Entries), "more than %d entries", limits.Entries)
		}
		name, err := archive.EntryName(h)
		if err != nil {
			return false, err
		}
		if !belongsTo(name, h.Typeflag == tar.TypeDir, dirs) {
			return false, nil
		}
	}
}

// belongsTo tells whether an entry of a layer is one of some directories, in one, or a directory above one.
func belongsTo(name string, isDir bool, dirs []string) bool {
	name = path.Clean(name)
	for _, dir := range dirs {
		if name == dir || strings.HasPrefix(name, dir+"/") ||
			isDir && (name == "." || strings.HasPrefix(dir, name+"/")) {
			return true
		}
	}
	return false
}

// indexLabels are the labels that mark an index image and contain the path of its catalog or database.
var indexLabels = [...]string{ConfigsLabel, DatabaseLabel}

// hidden returns the paths of the catalogs and databases of a base by their labels, relative to its root.
func (b *base) hidden() (map[string]string, error) {
	out := map[string]string{}
	for _, label := range indexLabels {
		at, ok := b.config.Config.Labels[label]
		if !ok {
			continue
		}
		name, err := archive.CleanPath(at)
		if err != nil || name == "" || holdsServer(name) {
			return nil, fmt.Errorf("the base image's label %s has the invalid path %.200q", label, at)
		}
		out[label] = name
	}
	return out, nil
}

// holdsServer reports whether hiding a path would hide the server's files.
func holdsServer(name string) bool {
	for _, p := range [...]string{cataloglayer.ServerPath, cataloglayer.ProbePath, cataloglayer.NsswitchPath, "tmp"} {
		if p == name || strings.HasPrefix(p, name+"/") {
			return true
		}
	}
	return false
}

// reset hides the catalogs and databases of bases. Otherwise the base's catalog would mix with the new one, and a
// server that checks its cache would not start with the base's. A file that the image replaces need not be hidden. The
// second result lists the hidden paths; the part has no entries if there are none.
//
// A directory is hidden by an opaque marker inside it, not by a whiteout next to it: catalogd drops every entry outside
// the catalog's directory before it applies whiteouts, so a whiteout next to it has no effect there.
func reset(bases []*base, own string) (part, []string, error) {
	directory := map[string]bool{} // by what is hidden: whether it is a directory
	var all []string
	for _, b := range bases {
		if b == nil {
			continue
		}
		hidden, err := b.hidden()
		if err != nil {
			return part{}, nil, err
		}
		if at, ok := hidden[DatabaseLabel]; ok {
			all = append(all, "/"+at)
			if _, known := directory[at]; !known {
				directory[at] = false
			}
		}
		if at, ok := hidden[ConfigsLabel]; ok {
			all = append(all, "/"+at)
			directory[at], directory[cataloglayer.CacheDir], directory[opmCacheDir] = true, true, true
			if strings.HasPrefix(at, cataloglayer.ConfigsDir+"/") {
				directory[cataloglayer.ConfigsDir] = true // the new catalog is all that is in it
			}
		}
	}
	slices.Sort(all)
	p := part{kind: LayerReset, layer: layers.Layer{Name: "reset"}}
	for _, name := range slices.Sorted(maps.Keys(directory)) {
		// A hidden directory hides its content.
		if name == own || isWithin(name, directory) {
			continue
		}
		switch {
		case !directory[name]:
			p.layer.Entries = append(p.layer.Entries, layers.Whiteout(name))
		case name == opmCacheDir:
			// This directory is world-writable in images without a catalog in it, and must stay so.
			p.layer.Entries = append(p.layer.Entries, layers.Dir(name, 0o777|fs.ModeSticky), layers.Opaque(name))
		default:
			p.layer.Entries = append(p.layer.Entries, layers.Dir(name, 0o755), layers.Opaque(name))
		}
	}
	if slices.ContainsFunc(p.layer.Entries, func(e layers.Entry) bool { return strings.HasPrefix(e.Name, "tmp/") }) {
		// As an implicit parent directory it would lose its world-writable mode.
		p.layer.Entries = append(p.layer.Entries, layers.Dir("tmp", 0o777|fs.ModeSticky))
	}
	return p, slices.Compact(all), nil
}

// isWithin reports whether a name is in one of the directories.
func isWithin(name string, directory map[string]bool) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if directory[dir] {
			return true
		}
	}
	return false
}
