package submission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	faults "github.com/operator-bindery/bindery/internal/fault"
)

// Kind is a part of a repository.
type Kind string

// The parts of a repository.
const (
	None       Kind = ""
	Whole      Kind = "repository" // the root
	OperatorOf Kind = "operator"   // operators/NAME
	BundleOf   Kind = "bundle"     // operators/NAME/VERSION
	CatalogOf  Kind = "catalog"    // catalogs/vX.Y, or one operator of it
)

// Place is a part of a repository.
type Place struct {
	Kind Kind
	// Root is the directory of the repository.
	Root string
	// Operator, Bundle and Catalog are the names of directories, as far as the part has them.
	Operator, Bundle, Catalog string
}

// The directories of a repository.
const (
	operatorsDir = "operators"
	catalogsDir  = "catalogs"
	configFile   = "config.yaml"
)

// ErrNoBundle is wrapped by the error of [Find] for a directory of an operator without a bundle.
var ErrNoBundle = faults.New(faults.Input, "the directory has no bundle")

// Find recognizes a directory as a part of a repository, or as a directory inside of a part. The kind is None if it is
// neither.
func Find(dir string) (Place, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Place{}, err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return Place{}, err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return Place{}, err
	}
	var below []string // the names from the root down
	for root := abs; ; {
		if p, ok := placeBelow(root, below); ok {
			return p, nil
		}
		if len(below) > 1 && below[0] == operatorsDir && isFile(filepath.Join(root, configFile)) {
			return Place{}, fmt.Errorf("%s: %w: the directories manifests and metadata of a bundle are in %s/%s/VERSION", dir, ErrNoBundle,
				operatorsDir, below[1])
		}
		parent := filepath.Dir(root)
		if parent == root || len(below) > maxBelow {
			return Place{}, nil
		}
		below, root = slices.Insert(below, 0, filepath.Base(root)), parent
	}
}

// maxBelow is how deep below a root a directory is still recognized.
const maxBelow = 12

// placeBelow returns the part of a repository at root that has the directory below it.
func placeBelow(root string, below []string) (Place, bool) {
	p := Place{Root: root}
	at := func(names ...string) string { return filepath.Join(append([]string{root}, names...)...) }
	switch {
	case len(below) == 0, len(below) == 1 && below[0] == operatorsDir, len(below) == 1 && below[0] == catalogsDir:
		p.Kind = Whole
		return p, isDir(at(operatorsDir)) && (isFile(at(configFile)) || hasOperator(os.DirFS(root)))
	case below[0] == operatorsDir:
		p.Operator = below[1]
		if len(below) > 2 && isBundle(os.DirFS(root), path.Join(below[:3]...)) {
			p.Kind, p.Bundle = BundleOf, below[2]
			return p, true
		}
		p.Kind = OperatorOf
		return p, isOperator(os.DirFS(root), path.Join(below[:2]...))
	case below[0] == catalogsDir && (isDir(at(operatorsDir)) || isFile(at(configFile))):
		p.Kind, p.Catalog = CatalogOf, below[1]
		if len(below) > 2 {
			p.Operator = below[2]
		}
		return p, true
	}
	return Place{}, false
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// isIn reports whether a directory has a directory or a file of a name.
func isIn(fsys fs.FS, dir, name string, directory bool) bool {
	info, err := fs.Stat(fsys, path.Join(dir, name))
	return err == nil && info.IsDir() == directory
}

// isBundle reports whether a directory is a bundle: it has the directories of manifests and metadata.
func isBundle(fsys fs.FS, dir string) bool {
	return isIn(fsys, dir, "manifests", true) && isIn(fsys, dir, "metadata", true)
}

// isOperator reports whether a directory is an operator: it has a bundle, or the file ci.yaml.
func isOperator(fsys fs.FS, dir string) bool {
	if isIn(fsys, dir, ciFile, false) {
		return true
	}
	names, err := directories(fsys, dir)
	return err == nil && slices.ContainsFunc(names, func(name string) bool { return isBundle(fsys, path.Join(dir, name)) })
}

// hasHalf reports whether a directory has a bundle that lacks one of its directories.
func hasHalf(fsys fs.FS, dir string) bool {
	names, err := directories(fsys, dir)
	return err != nil || slices.ContainsFunc(names, func(name string) bool {
		dir := path.Join(dir, name)
		return isIn(fsys, dir, "manifests", true) || isIn(fsys, dir, "metadata", true)
	})
}

func hasOperator(fsys fs.FS) bool {
	names, err := directories(fsys, operatorsDir)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		return isOperator(fsys, path.Join(operatorsDir, name))
	})
}

// maxDirectories limits the operators, the bundles of one and the catalogs.
const maxDirectories = 20_000

// directories returns the names of the directories in a directory, sorted; none if it does not exist. Links are
// followed as far as the file system follows them.
func directories(fsys fs.FS, dir string) (names []string, err error) {
	entries, err := fs.ReadDir(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() && (e.Type()&fs.ModeSymlink == 0 || !isIn(fsys, dir, e.Name(), true)) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if names = append(names, e.Name()); len(names) > maxDirectories {
			return nil, fmt.Errorf("%s: %w: more than %d directories", dir, bundlefs.ErrLimit, maxDirectories)
		}
	}
	return names, nil
}

// ErrNoProfile is the error for a repository whose config.yaml does not say which pipeline checks it.
var ErrNoProfile = faults.New(faults.Input, "config.yaml does not say which pipeline checks the repository")

// Profile returns the profile of the repository that its config.yaml says. It is empty if there is no config.yaml, or it
// has no organization.
func (p Place) Profile() (rules.Profile, error) {
	r, err := os.OpenRoot(p.Root)
	if err != nil {
		return "", err
	}
	defer r.Close()
	c, bad := readConfig(r.FS())
	switch {
	case bad != nil:
		return "", fmt.Errorf("%w: %s:%d: %w", ErrNoProfile, filepath.Join(p.Root, bad.file), bad.line, bad)
	case c.organization == "":
		return "", nil
	}
	for _, profile := range rules.Pipelines() {
		if profile.Organization() == c.organization {
			return profile, nil
		}
	}
	return "", fmt.Errorf("%w: the organization %q of %s is none that is known", ErrNoProfile, c.organization,
		filepath.Join(p.Root, configFile))
}
