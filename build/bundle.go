package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/layers"
)

// BundleInput is the bundle that goes into an image.
type BundleInput struct {
	// FS is the bundle's root. It must not change until the image is built.
	FS fs.FS
	// ManifestsDir and MetadataDir are directories in FS with the same paths in the image. TestsDir is the directory
	// with the bundle's tests; it may be empty.
	ManifestsDir, MetadataDir, TestsDir string
	// Annotations become labels of the image. Options.Labels override them, except for those with the kind and the
	// directories of the bundle.
	Annotations map[string]string
}

// manifestsLabel marks bundle images and names the manifests directory; testsLabel names the directory with the tests.
const (
	manifestsLabel = "operators.operatorframework.io.bundle.manifests.v1"
	testsLabel     = "operators.operatorframework.io.test.config.v1"
)

// ReadBundle returns the input for a bundle whose metadata/annotations.yaml says where its parts are. It does not
// validate the bundle.
func ReadBundle(fsys fs.FS) (BundleInput, error) {
	const annotationsFile, metadata = "annotations.yaml", "metadata"
	in := BundleInput{FS: fsys, MetadataDir: metadata, ManifestsDir: "manifests"}
	text, err := bundlefs.ReadFile(fsys, path.Join(metadata, annotationsFile))
	if err != nil {
		return in, err
	}
	if in.Annotations, err = bundlefs.Annotations(text); err != nil {
		return in, fmt.Errorf("%s: %w", path.Join(metadata, annotationsFile), err)
	}
	if dir := in.Annotations[manifestsLabel]; dir != "" {
		in.ManifestsDir = path.Clean(dir)
	}
	if dir := in.Annotations[testsLabel]; dir != "" {
		if info, err := fs.Stat(fsys, path.Clean(dir)); err == nil && info.IsDir() {
			in.TestsDir = path.Clean(dir)
		}
	}
	return in, nil
}

// bundlePurpose returns the purpose of bundle images, which set no command; that of a base is kept.
func bundlePurpose(annotations map[string]string) purpose {
	labels := map[string]string{ConfigsLabel: "", DatabaseLabel: ""}
	for _, name := range []string{"manifests", "metadata", "mediatype", "package"} {
		name = "operators.operatorframework.io.bundle." + name + ".v1"
		if is := annotations[name]; is != "" {
			labels[name] = is
		}
	}
	return purpose{"bindery build bundle", func(c *v1.ImageConfig, _ *Options, _ *base) {
		c.Labels = withLabels(c.Labels, annotations)
	}, labels}
}

// Bundle builds the image of an operator bundle: one layer with its manifests and one with its metadata, so that each
// can change without the other. It does not validate the bundle. The image is for o.Platform, linux/amd64 by default;
// its content is the same for all. The caller must close the image, and keep o.Dir until it has been copied.
func Bundle(ctx context.Context, in BundleInput, o Options) (_ *Image, err error) {
	o.purpose, o.Servers, o.caches.Native = bundlePurpose(in.Annotations), nil, nil
	if err := o.normalize(); err != nil {
		return nil, err
	}
	if in.FS == nil {
		return nil, errors.New("a bundle image needs a directory")
	}
	parts := []part{{kind: LayerManifests, dir: in.ManifestsDir}, {kind: LayerMetadata, dir: in.MetadataDir}}
	if in.TestsDir != "" {
		parts = append(parts, part{kind: LayerTests, dir: in.TestsDir})
	}
	if err := checkDisjoint(parts); err != nil {
		return nil, err
	}
	for i := range parts {
		p := &parts[i]
		p.layer.Name = string(p.kind)
		if p.layer.Entries, err = bundleEntries(in.FS, p.dir); err != nil {
			return nil, err
		}
	}
	bases, err := openBases(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeBases(bases))
		}
	}()
	if b := bases[0]; b != nil {
		if r, ok := bundleReset(b, parts); ok {
			parts = append([]part{r}, parts...)
		}
		if err := o.checkLayers(len(b.layers) + len(parts)); err != nil {
			return nil, err
		}
	}
	return writeImage(ctx, &o, bases, parts)
}

// bundleEntries returns the files of a directory of a bundle, including subdirectories. Modes are 0644 and 0755
// whatever they are on disk: nothing in a bundle is executed, and every user must be able to read it.
func bundleEntries(fsys fs.FS, dir string) ([]layers.Entry, error) {
	if !fs.ValidPath(dir) || dir == "." {
		return nil, fmt.Errorf("%.200q is not a directory of the bundle", dir)
	}
	entries := []layers.Entry{layers.Dir(dir, 0o755)}
	var total int64
	err := fs.WalkDir(fsys, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		if strings.HasPrefix(path.Base(name), "..") { // internal entries of a mounted ConfigMap
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if len(entries) > bundlefs.MaxFiles {
			return fmt.Errorf("%s: %w: more than %d files", dir, bundlefs.ErrLimit, bundlefs.MaxFiles)
		}
		if d.IsDir() {
			entries = append(entries, layers.Dir(name, 0o755))
			return nil
		}
		e, err := layers.File(name, fsys, name)
		if err != nil {
			return err
		}
		e.Mode = 0o644
		if total += e.Size; e.Size > bundlefs.MaxFile || total > bundlefs.MaxTotal {
			return fmt.Errorf("%s: %w: more than %d bytes, or more than %d in all", name, bundlefs.ErrLimit,
				bundlefs.MaxFile, bundlefs.MaxTotal)
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

// checkDisjoint refuses nested directories of a bundle: a file would be in two layers.
func checkDisjoint(parts []part) error {
	for i, a := range parts {
		for _, b := range parts[i+1:] {
			if a.dir == b.dir || strings.HasPrefix(a.dir, b.dir+"/") || strings.HasPrefix(b.dir, a.dir+"/") {
				return fmt.Errorf("%s are in %q and %s in %q: one of them lies in the other", a.kind, a.dir, b.kind,
					b.dir)
			}
		}
	}
	return nil
}

// bundleReset hides the bundle of the base, whose manifests would mix with the new ones.
func bundleReset(b *base, parts []part) (part, bool) {
	if _, ok := b.config.Config.Labels[manifestsLabel]; !ok {
		return part{}, false
	}
	r := part{kind: LayerReset, dir: parts[0].dir, layer: layers.Layer{Name: "reset"}}
	for _, p := range parts {
		r.layer.Entries = append(r.layer.Entries, layers.Whiteout(p.dir))
	}
	return r, true
}
