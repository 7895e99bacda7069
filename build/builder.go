package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/version"
)

// Builder builds images with the same options. It is safe for concurrent use and need not be closed: each image owns
// its resources.
type Builder struct {
	o         Options
	platforms []v1.Platform
	base      string
	server    string
	caches    []ServeCache
	cacheDir  string
	tempDir   string
	previous  string
	client    *images.Client
	embedded  Embedded
}

// New returns a builder. Without options it builds images for linux and the architecture of this machine, in the OCI
// format and with gzip, of an empty root, with the embedded server and its native serve cache, and without a cache of
// layers. In a program without embedded servers, which only the project's make embeds, Catalog and Database fail with a
// *[ServerError] unless [WithServer] is given. Bundle needs no server.
func New(opts ...Option) (*Builder, error) {
	b := &Builder{platforms: defaultPlatforms(), caches: []ServeCache{ServeCacheNative}}
	for _, opt := range opts {
		if err := opt(b); err != nil {
			return nil, err
		}
	}
	if err := b.o.SetServeCaches(b.caches...); err != nil {
		return nil, err
	}
	o := b.o
	o.Dir = "." // each image has its own
	if err := o.normalize(); err != nil {
		return nil, err
	}
	return b, nil
}

// Catalog validates the catalog in a directory and builds its image: one layer for each package with the package's
// catalog and serve cache, above the server. A catalog without packages is a *[declcfg.EmptyError], an invalid one a
// *[declcfg.ValidationError]. The directory must not change until the caller closes the image, which removes its files.
func (b *Builder) Catalog(ctx context.Context, fsys fs.FS) (*Image, error) {
	return b.image(ctx, func(o Options) (*Image, error) {
		read := ReadOptions{Jobs: o.Jobs, Cache: o.Cache, Program: version.Program()}
		if o.Warn != nil {
			read.Warn = func(at declcfg.Position, text string) { o.Warn(at.String() + ": " + text) }
		}
		files, err := ReadCatalog(ctx, fsys, read)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(files,
			func(f File) bool { return slices.ContainsFunc(f.Packages, func(p string) bool { return p != "" }) }) {
			return nil, &declcfg.EmptyError{Catalog: "."}
		}
		if err := o.SetServer(b.server, b.platforms, &b.embedded); err != nil {
			return nil, err
		}
		return Catalog(ctx, CatalogInput{FS: fsys, Files: files}, o)
	})
}

// Database builds the image of the index database in a file. It does not read the database. The caller must close the
// image, as with Catalog.
func (b *Builder) Database(ctx context.Context, file string) (*Image, error) {
	return b.image(ctx, func(o Options) (*Image, error) {
		if err := o.SetServer(b.server, b.platforms, &b.embedded); err != nil {
			return nil, err
		}
		dir, name := filepath.Split(file)
		return Index(ctx, IndexInput{FS: os.DirFS(filepath.Clean(dir)), Name: name}, o)
	})
}

// Bundle builds the image of the operator bundle in a directory with metadata/annotations.yaml, which becomes its
// labels: one layer with its manifests, one with its metadata, and one with its tests if it has any. It does not
// validate the bundle. The image is for the first platform. The caller must close it, as with Catalog.
func (b *Builder) Bundle(ctx context.Context, fsys fs.FS) (*Image, error) {
	const annotationsFile, metadata = "annotations.yaml", "metadata"
	text, err := bundlefs.ReadFile(fsys, path.Join(metadata, annotationsFile))
	if err != nil {
		return nil, err
	}
	in := BundleInput{FS: fsys, MetadataDir: metadata, ManifestsDir: "manifests"}
	if in.Annotations, err = bundlefs.Annotations(text); err != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(metadata, annotationsFile), err)
	}
	if dir := in.Annotations[manifestsLabel]; dir != "" {
		in.ManifestsDir = path.Clean(dir)
	}
	if dir := in.Annotations[testsLabel]; dir != "" {
		if info, err := fs.Stat(fsys, path.Clean(dir)); err == nil && info.IsDir() {
			in.TestsDir = path.Clean(dir)
		}
	}
	return b.image(ctx, func(o Options) (*Image, error) {
		o.Platform, o.Cache = b.platforms[0], nil
		return Bundle(ctx, in, o)
	})
}

// testsLabel names the directory with the tests of a bundle.
const testsLabel = "operators.operatorframework.io.test.config.v1"

// image builds one image in a separate workspace, with the options that need one.
func (b *Builder) image(ctx context.Context, assemble func(Options) (*Image, error)) (_ *Image, err error) {
	var w work
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	space, err := images.NewWorkspace(ctx, b.tempDir)
	if err != nil {
		return nil, err
	}
	w = append(w, space)
	o := b.o
	o.Dir = space.Dir()
	if warn := b.o.Warn; warn != nil {
		var mu sync.Mutex
		o.Warn = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			warn(text)
		}
	}
	if b.cacheDir != "" {
		blobs, err := blobcache.Open(filepath.Join(b.cacheDir, "blobs"), blobcache.Options{})
		if err != nil {
			return nil, err
		}
		w = append(w, blobs)
		if o.Cache, err = NewCache(blobs, nil); err != nil {
			return nil, err
		}
		w = append(w, o.Cache)
	}
	client := b.client
	if client == nil && (b.base != "" || b.previous != "") {
		if client, err = images.NewClient(images.ClientOptions{Registry: registries.Config{}.Env(os.Getenv), Retries: 3,
			Platform: b.platforms[0], AnyPlatform: true}); err != nil {
			return nil, err
		}
		w = append(w, client)
	}
	if b.base != "" {
		if o.Base, err = NamedBase(client, b.base); err != nil {
			return nil, fmt.Errorf("base image %q: %w", redact.Text(b.base), err)
		}
	}
	if b.previous != "" {
		if o.Previous, err = ReadPrevious(ctx, client, b.previous); err != nil {
			return nil, err
		}
	}
	img, err := assemble(o)
	if err != nil {
		return nil, err
	}
	img.work = w
	return img, nil
}

// work has the resources of an image until it is closed.
type work []io.Closer

// Close closes everything in reverse order.
func (w work) Close() error {
	var errs []error
	for _, c := range slices.Backward(w) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
