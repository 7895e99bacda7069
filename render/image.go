package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/archive"
)

// The labels that declare the content of an image (operator-registry's image format).
const (
	labelDatabase = "operators.operatorframework.io.index.database.v1"
	labelConfigs  = "operators.operatorframework.io.index.configs.v1"
)

// maxDatabase is the maximum size in bytes of an index database in an image.
const maxDatabase = 1 << 30

// KindOfImage determines from the labels of an image what it contains, and where. As in opm, a database takes
// precedence over a catalog, and a catalog over a bundle.
func KindOfImage(labels map[string]string) (kind Kind, dir string, err error) {
	for _, k := range []struct {
		kind  Kind
		label string
	}{{DatabaseImage, labelDatabase}, {CatalogImage, labelConfigs}} {
		value, ok := labels[k.label]
		if !ok {
			continue
		}
		if dir, err = insideRoot(value); err != nil {
			return "", "", fmt.Errorf("label %s: %w", k.label, err)
		}
		return k.kind, dir, nil
	}
	if _, ok := labels[bundle.AnnotationPackage]; ok {
		return BundleImage, "", nil
	}
	if len(labels) == 0 {
		return "", "", errors.New("image type could not be determined: image has no labels")
	}
	names := slices.Sorted(maps.Keys(labels))
	if len(names) > 10 {
		names = append(names[:10], "...")
	}
	return "", "", fmt.Errorf("image type could not be determined, found labels %.500q", strings.Join(names, ", "))
}

// insideRoot makes an absolute path in an image relative to its root.
func insideRoot(name string) (string, error) {
	clean, err := archive.CleanPath(name)
	if err != nil {
		return "", fmt.Errorf("%.300q is not a path in the image: %w", name, err)
	}
	if !path.IsAbs(name) || clean == "" || !fs.ValidPath(clean) {
		return "", fmt.Errorf("%.300q is not a path in the image", name)
	}
	return clean, nil
}

// openImage opens an image and determines its kind. The caller must close the image.
func openImage(ctx context.Context, ref string, o *Options) (img *images.Image, kind Kind, dir string, err error) {
	if err := checkName(ref, o.transports()); err != nil {
		return nil, "", "", err
	}
	if img, err = o.Images.Image(ctx, ref, v1.Platform{}); err != nil {
		return nil, "", "", err
	}
	if kind, dir, err = KindOfImage(img.Config.Config.Labels); err == nil {
		err = o.allowed(kind)
	}
	if err != nil {
		return nil, "", "", errors.Join(err, img.Close())
	}
	return img, kind, dir, nil
}

// content is the result of reading a reference: one bundle, or the blobs of a catalog, which can be iterated over once.
// done must be called at the end.
type content struct {
	bundle *declcfg.Bundle
	blobs  iter.Seq2[declcfg.Blob, error]
	done   func() error
}

func nothing() error { return nil }

// image fetches the needed parts of an image.
func image(ctx context.Context, ref string, o *Options) (_ content, err error) {
	img, kind, dir, err := openImage(ctx, ref, o)
	if err != nil {
		return content{}, err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	o.opened(OpenedImage{Reference: ref, Kind: kind, Digest: img.Reference()})
	switch kind {
	case DatabaseImage:
		return databaseImage(ctx, img, dir, o)
	case CatalogImage:
		tree, configs, err := extract(ctx, img, o, dir)
		if err != nil {
			return content{}, err
		}
		return content{blobs: catalog(ctx, configs, "", o), done: tree.Close}, nil
	}
	b, err := bundleImage(ctx, img, ref, o)
	return content{bundle: b, done: nothing}, err
}

// extract reads a directory from the image. The tree must be closed.
func extract(ctx context.Context, img *images.Image, o *Options, dir string,
	more ...string) (*images.Tree, fs.FS, error) {
	tree, err := img.Extract(ctx, append([]string{dir}, more...),
		images.ExtractOptions{Limits: o.ImageLimits, Temp: o.TempDir})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to unpack image %q: %w", img.Name, err)
	}
	sub, err := subTree(tree, dir)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("image %q: %w", img.Name, err), tree.Close())
	}
	return tree, sub, nil
}

func subTree(tree fs.FS, dir string) (fs.FS, error) {
	if info, err := fs.Stat(tree, dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no directory /%s in it", dir)
	} else if err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("/%s is not a directory", dir)
	}
	return fs.Sub(tree, dir)
}

// databaseImage reads the catalog from the database in an image.
func databaseImage(ctx context.Context, img *images.Image, name string, o *Options) (content, error) {
	at, done, err := copyDatabase(ctx, img, name, o)
	if err != nil {
		return content{}, err
	}
	return content{blobs: database(ctx, at, o), done: done}, nil
}

// CatalogFiles are the files of a catalog image. Close it after use.
type CatalogFiles struct {
	// Configs is the catalog. Cache is the serve cache; nil if the image has none that this module's server can use.
	Configs, Cache fs.FS
	// Labels are those of the image. Digest is its name with the digest.
	Labels map[string]string
	Digest string

	tree *images.Tree
	done func() error // closes the client
}

// Close releases the files.
func (c *CatalogFiles) Close() error { return errors.Join(c.tree.Close(), c.done()) }

// OpenCatalogImage reads the files of a catalog image, including the serve cache that its command line names. Cache
// directories of other servers, below /tmp, are not read.
func (o Options) OpenCatalogImage(ctx context.Context, ref string) (_ *CatalogFiles, err error) {
	o.Allow = []Kind{CatalogImage}
	prepared, done, err := o.prepare()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = closing(err, done)
		}
	}()
	img, _, dir, err := openImage(ctx, ref, prepared)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	var caches []string
	for _, arg := range img.Config.Config.Cmd {
		if value, ok := strings.CutPrefix(arg, "--cache-dir="); ok {
			if at, err := insideRoot(value); err == nil && at != "tmp" && !strings.HasPrefix(at, "tmp/") {
				caches = append(caches, at)
			}
		}
	}
	files := &CatalogFiles{done: done, Labels: img.Config.Config.Labels, Digest: img.Reference()}
	if files.tree, files.Configs, err = extract(ctx, img, prepared, dir, caches...); err != nil {
		return nil, err
	}
	for _, at := range caches {
		if cache, err := subTree(files.tree, at); err == nil {
			files.Cache = cache
		}
	}
	return files, nil
}
