package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// Options configure [Generate]. Dir is required; empty fields of Metadata are derived.
type Options struct {
	// Dir is the directory with the manifests.
	Dir string
	// OutputDir receives a copy of the manifests, and the metadata. If it is empty, the metadata is written to a
	// directory "metadata" next to Dir.
	OutputDir string
	// WorkDir is the directory of bundle.Dockerfile, and the paths in it are relative to WorkDir. Empty means the
	// working directory.
	WorkDir  string
	Metadata Metadata
	// BaseImage is that of the Dockerfile; "scratch" if empty.
	BaseImage string
	// Overwrite replaces existing files with other content. Without it they are an error, [ErrExists].
	Overwrite bool
	// Info, unless nil, is called with each step as opm's message.
	Info func(message string)
	// Warn, unless nil, is called for each manifest that cannot be read, if the media type is plain without it.
	Warn func(message string)
}

// Result describes what was generated.
type Result struct {
	Metadata Metadata
	// ManifestsDir and MetadataDir are the absolute paths of the bundle's directories.
	ManifestsDir, MetadataDir string
	// Written are the paths of the written files, without files that already had the same content.
	Written []string
}

// Generate writes metadata/annotations.yaml and bundle.Dockerfile for a directory of manifests. After an error nothing
// has changed. Files have the mode 0644.
func Generate(ctx context.Context, o Options) (Result, error) {
	info := o.Info
	if info == nil {
		info = func(string) {}
	}
	if _, err := os.Stat(o.Dir); err != nil { // so that the error has the path as given
		return Result{}, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return Result{}, err
	}
	work, err := filepath.Abs(o.WorkDir)
	if err != nil {
		return Result{}, err
	}
	root, err := bundlefs.OpenDir(dir)
	if err != nil {
		return Result{}, err
	}
	defer root.Close()
	m, err := o.Metadata.complete(dir, root.FS(), info)
	if err != nil {
		return Result{}, err
	}
	if o.Warn != nil && o.Metadata.MediaType == "" && m.MediaType == bundle.Plain {
		if err := warnOfUnread(root.FS(), o.Warn); err != nil {
			return Result{}, err
		}
	}
	r := Result{Metadata: m, ManifestsDir: dir, MetadataDir: filepath.Join(filepath.Dir(dir), "metadata")}
	var files []file

	info("Building annotations.yaml")
	annotations, err := m.Annotations()
	if err != nil {
		return Result{}, err
	}
	if o.OutputDir != "" {
		out, err := filepath.Abs(o.OutputDir)
		if err != nil {
			return Result{}, err
		}
		info("Generating output manifests directory")
		r.ManifestsDir, r.MetadataDir = filepath.Join(out, "manifests"), filepath.Join(out, "metadata")
		if strings.HasPrefix(r.ManifestsDir, dir+string(filepath.Separator)) {
			return Result{}, fmt.Errorf("the output directory %q lies in the directory of the manifests", o.OutputDir)
		}
		if r.ManifestsDir != dir {
			if files, err = copies(ctx, root.FS(), r.ManifestsDir); err != nil {
				return Result{}, err
			}
		}
	}
	info("Writing annotations.yaml in " + r.MetadataDir)
	files = append(files, file{filepath.Join(r.MetadataDir, annotationsFile), annotations})

	info("Building Dockerfile")
	dockerfile, err := o.dockerfile(m, work, r)
	if err != nil {
		return Result{}, err
	}
	info("Writing bundle.Dockerfile in " + work)
	files = append(files, file{filepath.Join(work, dockerfileName), dockerfile})

	r.Written, err = writeAll(ctx, files, o.Overwrite)
	return r, err
}

// complete derives the missing fields.
func (m Metadata) complete(dir string, manifests fs.FS, info func(string)) (Metadata, error) {
	var err error
	if m.MediaType == "" {
		if m.MediaType, err = detectMediaType(manifests); err != nil {
			if errors.Is(err, errNoManifests) {
				//lint:ignore ST1005 opm's text
				err = fmt.Errorf("The directory %s %w", dir, err)
			}
			return m, err
		}
	}
	return m.infer(dir, info)
}

// infer derives the package, the channels and the default channel, if package or channels are missing, from the
// directory of the package, the parent of dir. info is called with the result.
func (m Metadata) infer(dir string, info func(string)) (Metadata, error) {
	var missing []string
	if m.Channels == "" {
		missing = append(missing, "channels")
	}
	if m.Package == "" {
		missing = append(missing, "package name")
	}
	if len(missing) == 0 {
		return m, nil
	}
	info(fmt.Sprintf("Bundle %s information not provided, inferring from parent package directory",
		strings.Join(missing, " and ")))
	p, err := inferFrom(filepath.Dir(dir), filepath.Base(dir))
	if err != nil {
		return m,
			notInferred{fmt.Errorf(
				"please manually input channels and packageName, error interpreting bundle from directory %s, %w", dir,
				err)}
	}
	if m.Channels == "" {
		if m.Channels = strings.Join(p.Channels, ","); m.Channels == "" {
			return m, notInferred{errors.New("error interpreting channels, please manually input channels instead")}
		}
		info("Inferred channels: " + m.Channels)
	}
	if m.Package == "" {
		m.Package = p.Name
		info("Inferred package name: " + m.Package)
	}
	if m.DefaultChannel == "" {
		if slices.Contains(strings.Split(m.Channels, ","), p.DefaultChannel) {
			m.DefaultChannel = p.DefaultChannel
		}
		info("Inferred default channel: " + m.DefaultChannel)
	}
	return m, nil
}

// notInferred is an [ErrNotInferred] with opm's text.
type notInferred struct{ error }

func (e notInferred) Is(target error) bool { return target == ErrNotInferred }
func (e notInferred) Unwrap() error        { return e.error }

func inferFrom(parent, name string) (inferredPackage, error) {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return inferredPackage{}, err
	}
	defer root.Close()
	return inferPackage(root.FS(), name)
}

// dockerfile returns the text of the Dockerfile with the directories relative to the build context.
func (o Options) dockerfile(m Metadata, work string, r Result) ([]byte, error) {
	base := o.BaseImage
	base = cmp.Or(base, "scratch")
	manifests, err := filepath.Rel(work, r.ManifestsDir)
	if err != nil {
		return nil, err
	}
	metadata, err := filepath.Rel(work, r.MetadataDir)
	if err != nil {
		return nil, err
	}
	return m.Dockerfile(base, filepath.ToSlash(manifests), filepath.ToSlash(metadata))
}

// copies reads the files of a directory tree, to be copied.
func copies(ctx context.Context, fsys fs.FS, to string) ([]file, error) {
	var files []file
	total := 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || name == "." {
			return err
		}
		if strings.HasPrefix(path.Base(name), "..") { // internal entries of a mounted ConfigMap
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if strings.Count(name, "/") >= bundlefs.MaxDepth {
				return fmt.Errorf("%q: %w: more than %d directories deep", name, bundlefs.ErrLimit, bundlefs.MaxDepth)
			}
			return nil
		}
		data, err := bundlefs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if total += len(data); total > bundlefs.MaxTotal || len(files) >= bundlefs.MaxFiles {
			return fmt.Errorf("%w: more than %d files or %d bytes", bundlefs.ErrLimit, bundlefs.MaxFiles,
				bundlefs.MaxTotal)
		}
		files = append(files, file{filepath.Join(to, filepath.FromSlash(name)), data})
		return nil
	})
	return files, err
}
