package generate

import (
	"cmp"
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

// annotationTests names the directory with a bundle's tests.
const annotationTests = "operators.operatorframework.io.test.config.v1"

// SourceOptions configure [OpenSource]. Dir is required.
type SourceOptions struct {
	// Dir is the bundle's root, which has a directory "manifests" or "metadata", or the directory of its manifests.
	Dir string
	// Metadata has the wanted annotations. Empty fields are taken from annotations.yaml, else derived.
	Metadata Metadata
	// Plain sets the media type plain+v0.
	Plain bool
	// Overwrite uses Metadata instead of an annotations.yaml that differs, which is otherwise an error.
	Overwrite bool
	// Info, unless nil, is called with what was derived.
	Info func(message string)
}

// Source is a bundle to build. Nothing is written: a generated annotations.yaml is in memory.
type Source struct {
	// FS has the bundle's files at their paths in the image.
	FS fs.FS
	// ManifestsDir, MetadataDir and TestsDir are directories in FS; TestsDir is empty if the bundle has none.
	ManifestsDir, MetadataDir, TestsDir string
	// Annotations are those of annotations.yaml.
	Annotations map[string]string
	// Generated reports that annotations.yaml was generated. Metadata is then its content.
	Generated bool
	Metadata  Metadata
	// Manifests is the original path of the manifests directory.
	Manifests string

	root *os.Root
}

// Close closes the directory.
func (s *Source) Close() error { return s.root.Close() }

// OpenSource finds the parts of a bundle. If there is no annotations.yaml, or other values are given, it generates one
// in memory. Close the source after the image is built.
func OpenSource(o SourceOptions) (_ *Source, err error) {
	if o.Info == nil {
		o.Info = func(string) {}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Source{ManifestsDir: "manifests", MetadataDir: "metadata"}
	at := "" // the directory of the manifests on disk; empty if the bundle's root was named
	if !isDir(filepath.Join(dir, "manifests")) && !isDir(filepath.Join(dir, "metadata")) {
		dir, at = filepath.Dir(dir), filepath.Base(dir)
	}
	if s.root, err = bundlefs.OpenDir(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	existing, err := s.read()
	if err != nil {
		return nil, err
	}
	at = cmp.Or(at, s.ManifestsDir)
	s.Manifests = filepath.Join(dir, filepath.FromSlash(at))
	if info, err := s.root.Stat(filepath.FromSlash(at)); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%q is not a directory", s.Manifests)
	}
	asked := o.Metadata != Metadata{} || o.Overwrite ||
		o.Plain && existing[bundle.AnnotationMediaType] != string(bundle.PlainV0)
	if existing != nil && !asked && at == s.ManifestsDir {
		s.FS, s.Annotations = s.root.FS(), existing
		s.TestsDir = s.tests()
		return s, nil
	}
	return s, s.generate(o, at, existing)
}

// ManifestsDir returns the directory of manifests in the root of a bundle; any other directory is returned as it is.
func ManifestsDir(dir string) string {
	if below := filepath.Join(dir, "manifests"); isDir(below) {
		return below
	}
	return dir
}

// read reads annotations.yaml, nil if there is none, and the manifests directory that it names.
func (s *Source) read() (map[string]string, error) {
	text, err := bundlefs.ReadFile(s.root.FS(), "metadata/"+annotationsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	existing, err := bundlefs.Annotations(text)
	if err != nil {
		return nil, fmt.Errorf("metadata/%s: %w", annotationsFile, err)
	}
	if existing == nil {
		existing = map[string]string{}
	}
	if named := existing[bundle.AnnotationManifests]; named != "" {
		if s.ManifestsDir, err = dirInside(named); err != nil {
			return nil, fmt.Errorf("metadata/%s: %s: %w", annotationsFile, bundle.AnnotationManifests, err)
		}
	}
	return existing, nil
}

// dirInside returns the directory of a bundle that an annotation names.
func dirInside(named string) (string, error) {
	clean := path.Clean(strings.TrimPrefix(named, "/"))
	if clean == "." || !fs.ValidPath(clean) || strings.Contains(named, `\`) {
		return "", fmt.Errorf("%.200q is not a directory of the bundle", named)
	}
	return clean, nil
}

// tests returns the directory with the bundle's tests, if its annotations name one and it exists.
func (s *Source) tests() string {
	dir, err := dirInside(s.Annotations[annotationTests])
	if err != nil {
		return ""
	}
	if info, err := s.root.Stat(filepath.FromSlash(dir)); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// generate generates the annotations and assembles the bundle with them.
func (s *Source) generate(o SourceOptions, at string, existing map[string]string) error {
	manifests, err := fs.Sub(s.root.FS(), at)
	if err != nil {
		return err
	}
	m := o.Metadata.or(existing)
	switch {
	case o.Plain, m.MediaType == "" && existing[bundle.AnnotationMediaType] == string(bundle.PlainV0):
		m.MediaType = bundle.PlainV0
	default:
		m, err = m.complete(s.Manifests, manifests, o.Info)
		if err != nil {
			return err
		}
	}
	if existing != nil && !o.Overwrite {
		if err := m.compare(existing); err != nil {
			return fmt.Errorf("%s: %w: %w", filepath.Join(s.root.Name(), "metadata", annotationsFile), ErrMetadata, err)
		}
	}
	text, err := m.Annotations()
	if err != nil {
		return err
	}
	var metadata fs.FS
	if info, err := s.root.Stat("metadata"); err == nil && info.IsDir() {
		if metadata, err = fs.Sub(s.root.FS(), "metadata"); err != nil {
			return err
		}
	}
	l := bundlefs.Layout{Dirs: map[string]fs.FS{"manifests": manifests, "metadata": metadata}}
	s.Annotations = existing
	if existing == nil || o.Overwrite {
		l.Files = map[string][]byte{"metadata/" + annotationsFile: text}
		s.Annotations, s.Generated = m.Map(), true
	}
	if s.TestsDir = s.tests(); s.TestsDir != "" {
		top, _, _ := strings.Cut(s.TestsDir, "/")
		if _, taken := l.Dirs[top]; !taken {
			if l.Dirs[top], err = fs.Sub(s.root.FS(), top); err != nil {
				return err
			}
		}
	}
	s.FS, s.Metadata, s.ManifestsDir = l, m, "manifests"
	return nil
}

// or returns the metadata with empty fields taken from existing annotations.
func (m Metadata) or(existing map[string]string) Metadata {
	m.Package = cmp.Or(m.Package, existing[bundle.AnnotationPackage])
	m.Channels = cmp.Or(m.Channels, existing[bundle.AnnotationChannels])
	if was := existing[bundle.AnnotationDefaultChannel]; m.DefaultChannel == "" && slices.Contains(
		strings.Split(m.Channels, ","), was) {
		m.DefaultChannel = was
	}
	return m
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
