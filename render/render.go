package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/sqlite"
)

// Options configure rendering. The zero value is useful.
type Options struct {
	// Level is the migration level of bundles.
	Level edit.Level
	// KeepGoing leaves out invalid packages. Those of a database are findings of the kind [sqlite.Quarantined] in
	// [Account.Findings], those of a directory are in [Account.LeftOut].
	KeepGoing bool
	// Repair repairs the packages of catalogs and databases as [declcfg.Catalog.Repair] does and validates them: an
	// invalid package is then an error, unless KeepGoing leaves it out. The changes are in [Account.Repairs], those of
	// a database in [Account.Findings]. Package manifests are not repaired.
	Repair bool
	// Compat and DatabaseLimits are for databases, see [sqlite.Options]. With [sqlite.CompatOPM] bundles may declare
	// properties that no catalog can hold, as for opm.
	Compat         sqlite.Compat
	DatabaseLimits sqlite.Limits
	// Reuse means that the caller does not keep blobs, see [sqlite.Options].
	Reuse bool
	// Limits are for catalog directories.
	Limits declcfg.Limits
	// Packages, unless nil, are the only packages that are read from file-based catalogs; other sources return all
	// packages. Errors in blobs of other packages are not noticed. It has no effect with KeepGoing.
	Packages []string
	// Read, unless nil, is called with the number of bytes that were read of a file-based catalog. Calls are concurrent.
	Read func(n int)
	// Progress, unless nil, is called before a database is read, with zeros, and for each of its packages. Calls for
	// several databases may overlap.
	Progress func(n, all int, pkg string)
	// Skeleton omits the manifests of bundles in file-based catalogs, see [declcfg.LoadOptions].
	Skeleton bool
	// Schemaless accepts blobs without a schema in file-based catalogs, see [declcfg.LoadOptions].
	Schemaless bool
	// Jobs is how many files or bundles are parsed concurrently; 0 means one per processor.
	Jobs int
	// TempDir is the directory for private copies; empty means the system's.
	TempDir string
	// Warn is called for accepted but probably unintended input. It may be called concurrently.
	Warn func(declcfg.Position, string)
	// Account, unless nil, receives the results besides the blobs. Facts adds the facts of databases to it, which takes
	// a second pass.
	Account *Account
	Facts   bool
	// Images opens images. If it is nil, a client without a cache is created for the call, with this machine's
	// configuration. ImageLimits bound what is read from images.
	Images      *images.Client
	ImageLimits images.Limits
	// Fetches is how many images and bundles are fetched and rendered concurrently; 0 means eight, or Jobs if that is
	// set.
	Fetches int
	// Opened, unless nil, is called for every image that was opened; calls do not overlap.
	Opened func(OpenedImage)
	// ResolveDigests names the images of rendered bundles by digest, REPOSITORY@DIGEST, as their tags resolve.
	ResolveDigests bool
	// ImageTemplate generates the image references of bundles that are not from a registry; nil leaves them empty.
	ImageTemplate *ImageTemplate
	// Allow are the kinds that may be rendered; nil means all.
	Allow []Kind

	account *Account // of one call, never nil after prepare
}

// Kind is the kind of content that a reference names.
type Kind string

// The kinds of references.
const (
	CatalogDirectory Kind = "catalog directory"
	BundleDirectory  Kind = "bundle directory"
	// ManifestsDirectory is a directory with package manifests, the format before bundle images, see package
	// appregistry.
	ManifestsDirectory Kind = "package manifests directory"
	Database           Kind = "database"
	// Image is any image. Its content is known when it has been opened, see [KindOfImage].
	Image         Kind = "image"
	CatalogImage  Kind = "catalog image"
	DatabaseImage Kind = "database image"
	BundleImage   Kind = "bundle image"
)

// allowed reports whether a kind may be rendered. An image may be opened to determine its kind.
func (o *Options) allowed(k Kind) error {
	if o.Allow == nil || k == Image || slices.Contains(o.Allow, k) {
		return nil
	}
	return fmt.Errorf("cannot render %s: %w", k, ErrNotAllowed)
}

// noDatabaseHint is what files are for.
const noDatabaseHint = "a file must be an SQLite database; a file-based catalog is given by its directory, an archive of an " +
	"image as oci-archive:FILE or docker-archive:FILE, and a template is for \"template render\""

// Classify determines what a reference names. A file or directory takes precedence over an image of that name, unless
// the reference begins with a transport such as "docker://". A directory with the subdirectories "manifests" and
// "metadata" is a bundle, an OCI layout is refused, a directory with a package.yaml and no file-based catalog has
// package manifests, and any other directory is a catalog.
func Classify(ref string) (Kind, error) { return classify(ref, transports()) }

func classify(ref string, transports transport.Table) (Kind, error) {
	if transports.Has(ref) {
		return Image, nil
	}
	stat, err := os.Stat(ref)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENAMETOOLONG):
		return Image, nil
	case err != nil:
		return "", err
	case stat.IsDir():
		if isLayout(ref) {
			return "", fmt.Errorf("%q is an OCI image layout, not a catalog: write oci:%s:TAG for an image in it", ref,
				filepath.Clean(ref))
		}
		if isDir(filepath.Join(ref, "manifests")) && isDir(filepath.Join(ref, "metadata")) {
			return BundleDirectory, nil
		}
		if hasManifests(ref) {
			return ManifestsDirectory, nil
		}
		return CatalogDirectory, nil
	}
	if err := regularfile.CheckSeekable(ref, stat); err != nil {
		return "", fault.Advise(fmt.Errorf("ref %q has %w: %v", ref, ErrFileType, err), noDatabaseHint)
	}
	f, err := os.Open(ref)
	if err != nil {
		return "", err
	}
	defer f.Close()
	is, err := sqlite.IsDatabase(f)
	if err != nil {
		return "", err
	}
	if !is {
		hint, head := noDatabaseHint, make([]byte, 8)
		n, _ := f.ReadAt(head, 0) // a shorter file is not compressed
		if codec := archive.Codec(head[:n]); codec != "" {
			hint = "the file is compressed: decompress it with \"" + codec + " -dc\""
		}
		return "", fault.Advise(fmt.Errorf("ref %q has %w: unknown", ref, ErrFileType), hint)
	}
	return Database, nil
}

// isLayout recognises an OCI layout. Reading it as a catalog would give confusing errors about missing schemas.
func isLayout(dir string) bool {
	for _, name := range []string{"oci-layout", "index.json"} {
		if stat, err := os.Stat(filepath.Join(dir, name)); err != nil || !stat.Mode().IsRegular() {
			return false
		}
	}
	return isDir(filepath.Join(dir, "blobs"))
}

func isDir(path string) bool {
	stat, err := os.Stat(path)
	return err == nil && stat.IsDir()
}

// Render renders one reference. The blobs come in opm's writing order. Those of a database have been validated
// together; those of a directory have not. Each iteration reads the reference again. Read errors may come only during
// the iteration and end it; a database is validated completely before its first blob.
func (o Options) Render(ctx context.Context, ref string) (iter.Seq2[declcfg.Blob, error], error) {
	kind, err := check(ref, &o)
	if err != nil {
		return nil, &ReferenceError{ref, err}
	}
	return func(yield func(declcfg.Blob, error) bool) {
		prepared, done, err := o.prepare()
		if err != nil {
			yield(nil, &ReferenceError{ref, err})
			return
		}
		for b, err := range reference(ctx, ref, kind, prepared) {
			if err == nil {
				err = finish(b, o.Level)
			}
			if err != nil {
				yield(nil, &ReferenceError{ref, closing(err, done)})
				return
			}
			if !yield(b, nil) {
				_ = done() // the content has been read successfully
				return
			}
		}
		if err := done(); err != nil {
			yield(nil, &ReferenceError{ref, err})
		}
	}, nil
}

// reference renders a reference of a kind determined by [check].
func reference(ctx context.Context, ref string, kind Kind, o *Options) iter.Seq2[declcfg.Blob, error] {
	switch kind {
	case CatalogDirectory:
		return directory(ctx, ref, o)
	case ManifestsDirectory:
		return manifests(ctx, ref, o)
	case Database:
		return database(ctx, ref, o)
	case BundleDirectory:
		return func(yield func(declcfg.Blob, error) bool) {
			b, err := bundleDirectory(ctx, ref, o)
			if err != nil {
				yield(nil, err)
				return
			}
			yield(b, nil)
		}
	}
	return func(yield func(declcfg.Blob, error) bool) {
		c, err := image(ctx, ref, o)
		if err != nil {
			yield(nil, err)
			return
		}
		if c.bundle != nil {
			yield(c.bundle, nil)
			return
		}
		for b, err := range c.blobs {
			if !yield(b, err) || err != nil {
				_ = c.done() // the content has been read, or a more important error is reported
				return
			}
		}
		if err := c.done(); err != nil {
			yield(nil, err)
		}
	}
}

// transports are those that names of images can have.
func (o *Options) transports() transport.Table {
	if o.Images == nil {
		return transports()
	}
	return o.Images.Transports()
}

// check determines the kind of a reference and refuses it if it cannot be rendered, before anything is read.
func check(ref string, o *Options) (Kind, error) {
	if _, err := edit.ParseLevel(string(o.Level)); err != nil {
		return "", err
	}
	kind, err := classify(ref, o.transports())
	if err != nil {
		return "", err
	}
	if kind == Image {
		return kind, checkName(ref, o.transports())
	}
	return kind, o.allowed(kind)
}

func directory(ctx context.Context, dir string, o *Options) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		fsys, err := declcfg.OpenDir(dir)
		if err != nil {
			yield(nil, err)
			return
		}
		catalog(ctx, fsys, dir, o)(yield)
	}
}

// catalog renders the catalog in a file system; dir is its path on disk, if it has one.
func catalog(ctx context.Context, fsys fs.FS, dir string, o *Options) iter.Seq2[declcfg.Blob, error] {
	load := declcfg.LoadOptions{Dir: dir, Jobs: o.Jobs, Limits: o.Limits, Warn: o.Warn, Skeleton: o.Skeleton,
		Unknown: true, Schemaless: o.Schemaless, Read: o.Read}
	if !o.KeepGoing && !o.Repair {
		var wanted func(pkg string) bool
		if o.Packages != nil {
			wanted = func(pkg string) bool { return slices.Contains(o.Packages, pkg) }
		}
		return declcfg.Stream(ctx, fsys, load, wanted)
	}
	return func(yield func(declcfg.Blob, error) bool) {
		c, err := declcfg.Load(ctx, fsys, load)
		if err != nil {
			yield(nil, err)
			return
		}
		if o.Repair {
			c.Sort() // so that repairs are listed by package
			for _, r := range c.Repair() {
				o.account.repaired(r)
			}
		}
		switch {
		case o.KeepGoing:
			c = healthy(c, o.account)
		case o.Repair:
			if err := c.Validate(); err != nil {
				yield(nil, err)
				return
			}
		}
		c.Blobs()(yield)
	}
}

// healthy returns the valid packages of a catalog.
func healthy(c *declcfg.Catalog, account *Account) *declcfg.Catalog {
	out := &declcfg.Catalog{}
	parts := c.ByPackage()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if err := parts[name].Validate(); err == nil {
			out.Append(parts[name])
		} else {
			account.leaveOut(name, err)
		}
	}
	return out
}

func database(ctx context.Context, path string, o *Options) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		progress := func(int, int, string) {}
		if o.Progress != nil {
			progress = o.Progress
		}
		progress(0, 0, "")
		db, err := sqlite.Open(ctx, path, sqlite.Options{
			Compat: o.Compat, KeepGoing: o.KeepGoing, Repair: o.Repair,
			CSVOnly: o.Level.Includes(edit.LevelCSVMetadata),
			Reuse:   o.Reuse, Limits: o.DatabaseLimits, TempDir: o.TempDir, Jobs: o.Jobs,
		})
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = db.Close() }() // a remaining temporary copy does not invalidate the catalog
		if err := o.account.recordDatabase(ctx, db); err != nil {
			yield(nil, err)
			return
		}
		all, err := db.Packages(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		done := 0
		for b, err := range db.Blobs(ctx) {
			if pkg, ok := b.(*declcfg.Package); ok {
				done++
				progress(done, all, pkg.Name)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
		if err := o.account.database(ctx, db, o.Facts); err != nil {
			yield(nil, err)
		}
	}
}
