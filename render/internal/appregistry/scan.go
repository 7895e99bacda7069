package appregistry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
)

const kindCSV = "ClusterServiceVersion"

// maxPerDirectory is the maximum number of bundles in one directory: the whole directory is read for each of them.
const maxPerDirectory = 1000

// csvFile is a file with a ClusterServiceVersion. With the other files in its directory it is a bundle.
type csvFile struct {
	declcfg.Position
	name string
	wish Wish
}

// manifestFile is a package manifest and its file.
type manifestFile struct {
	declcfg.Position
	Manifest
}

// scanner walks a tree and finds bundles and packages.
type scanner struct {
	ctx     context.Context
	fsys    fs.FS
	limits  Limits
	warn    func(declcfg.Position, string)
	entries int
	skips   int
	perDir  map[string]int // number of bundles by directory

	csvs      []csvFile
	manifests []manifestFile
	problems  []Problem
	passed    []Problem // why files that may have a bundle or a package were passed over
}

// errStop ends the scan after a limit was exceeded. It is never returned to callers.
var errStop = errors.New("stop")

func (s *scanner) wrong(at declcfg.Position, format string, args ...any) {
	s.problems = append(s.problems, Problem{Place: at, Text: fmt.Sprintf(format, args...), Err: ErrInvalid})
}

func (s *scanner) limit(at declcfg.Position, format string, args ...any) error {
	s.problems = append(s.problems, Problem{Place: at, Text: fmt.Sprintf(format, args...), Err: ErrLimit})
	return errStop
}

// scan walks the whole tree in lexical order. Names with a leading dot are skipped, as in opm.
func (s *scanner) scan() error {
	err := fs.WalkDir(s.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if ctxErr := context.Cause(s.ctx); ctxErr != nil {
			return ctxErr
		}
		if err != nil {
			return err
		}
		at := declcfg.Position{File: name}
		if s.entries++; s.entries > s.limits.Entries {
			return s.limit(declcfg.Position{}, "more than %d files and directories", s.limits.Entries)
		}
		if name != "." && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		mode := d.Type()
		if mode&fs.ModeSymlink != 0 {
			info, err := fs.Stat(s.fsys, name)
			if err != nil {
				s.warn(at, "a link that leads to nothing in the directory is passed over: "+err.Error())
				return nil
			}
			if mode = info.Mode().Type(); mode.IsDir() {
				s.warn(at, "a link to a directory is not followed")
				return nil
			}
		}
		switch {
		case mode.IsDir():
			if strings.Count(name, "/") >= s.limits.Depth {
				return s.limit(at, "more than %d directories in one another", s.limits.Depth)
			}
			return nil
		case !mode.IsRegular():
			s.warn(at, "neither a regular file nor a directory: it is passed over")
			return nil
		}
		return s.file(name)
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// file reads one file and records the bundle or package in it.
func (s *scanner) file(name string) error {
	at := declcfg.Position{File: name}
	expected := expectedKind(name)
	text, err := s.read(name)
	if errors.Is(err, bundlefs.ErrLimit) {
		if expected != "" {
			return s.limit(at, "more than %d bytes", s.limits.Bundle.File)
		}
		return nil // if it belongs to a bundle, reading the bundle reports the problem
	}
	if err != nil {
		return err
	}
	// Most files are neither a ClusterServiceVersion nor a package manifest. Searching for the words that opm's decoder
	// requires is cheaper than decoding.
	if expected == "" && !bytes.Contains(text, []byte(kindCSV)) && !bytes.Contains(text, []byte("packageName")) {
		return nil
	}
	d, err := firstDocument(text, canon.Limits{MaxDocument: int(s.limits.Bundle.File), MaxDepth: s.limits.Bundle.Depth})
	if at.Line = d.line; err != nil {
		var syntax *canon.SyntaxError
		var limit *canon.LimitError
		message := err.Error()
		if errors.As(err, &syntax) {
			at.Line, at.Column, message = syntax.Place(d.line)
		}
		switch {
		case errors.As(err, &limit):
			return s.limit(at, "%s", message)
		case expected != "":
			s.wrong(at, "cannot be read as a %s: %s", expected, message)
		case slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(name))):
			s.passed = append(s.passed, Problem{Place: at, Text: message + "; the file is passed over", Err: ErrInvalid})
		}
		return nil
	}
	h, ok := d.head()
	switch {
	case ok && textOf(h.Kind) == kindCSV:
		return s.csv(at, d)
	case ok && (h.isManifest() || isManifestName(name) && h.Kind == nil):
		return s.manifest(at, d)
	case expected != "":
		s.wrong(at, "should be a %s, by its name, and is none", expected)
	}
	return nil
}

// expectedKind returns the kind that the name of a file implies; empty if none.
func expectedKind(name string) string {
	if isManifestName(name) {
		return "package manifest"
	}
	for _, end := range []string{".clusterserviceversion.yaml", ".clusterserviceversion.yml",
		".clusterserviceversion.json"} {
		if strings.HasSuffix(strings.ToLower(name), end) {
			return kindCSV
		}
	}
	return ""
}

// read reads a regular file of limited size.
func (s *scanner) read(name string) ([]byte, error) {
	info, err := fs.Stat(s.fsys, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > s.limits.Bundle.File || info.Size() > bundlefs.MaxFile {
		return nil, bundlefs.ErrLimit
	}
	return bundlefs.ReadFile(s.fsys, name)
}

// csv records a bundle. Apart from its name the ClusterServiceVersion is checked when the bundle is read.
func (s *scanner) csv(at declcfg.Position, d document) error {
	read := declcfg.ReadCSV(d.json)
	c := csvFile{Position: at, name: read.Name(), wish: wishOf(read)}
	if c.name == "" {
		s.wrong(at, "the ClusterServiceVersion has no name")
		return nil
	}
	s.csvs = append(s.csvs, c)
	if len(s.csvs) > s.limits.Bundles {
		return s.limit(at, "more than %d bundles", s.limits.Bundles)
	}
	if s.perDir[path.Dir(at.File)]++; s.perDir[path.Dir(at.File)] > maxPerDirectory {
		return s.limit(at, "more than %d bundles in one directory", maxPerDirectory)
	}
	if s.skips += len(c.wish.Skips); s.skips > maxEdges {
		return s.limit(at, "more than %d skips in all bundles", maxEdges)
	}
	return nil
}

// manifest records a package.
func (s *scanner) manifest(at declcfg.Position, d document) error {
	m, err := parseManifest(d)
	if err != nil {
		s.wrong(at, "%v", err)
		return nil
	}
	s.manifests = append(s.manifests, manifestFile{at, m})
	if len(s.manifests) > s.limits.Packages {
		return s.limit(at, "more than %d packages", s.limits.Packages)
	}
	return nil
}
