package declcfg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// readable is what can be read of a catalog of which a part cannot.
type readable struct {
	Catalog
	problems problemList // of what cannot be read
	// affected are the packages of which something cannot be read. That something is missing in them is no problem.
	affected map[string]bool
}

// document is a document of a file: a blob, or why it could not be read as one.
type document struct {
	blob Blob
	bad  *unreadableDocument
}

type unreadableDocument struct {
	problems *ValidationError
	packages []string // the packages that the document seems to belong to
}

// loadReadable is [Load], but goes on after a document that cannot be read: with the next one, or with the next file if
// the rest cannot be split into documents. The error is that of a file that cannot be read at all, or of a limit.
func loadReadable(ctx context.Context, fsys fs.FS, o LoadOptions) (*readable, error) {
	r := &readable{affected: map[string]bool{}, problems: problemList{omitted: o.Omitted}}
	files := map[string][]string{} // the packages of a file
	var unknown []string           // files with documents whose package is unknown
	err := walk(ctx, fsys, o, math.MaxInt, readDocument, func(d document) error {
		if d.bad == nil {
			file := d.blob.Position().File
			if pkg := d.blob.BlobPackage(); pkg != "" && !slices.Contains(files[file], pkg) && len(files[file]) < 1000 {
				files[file] = append(files[file], pkg)
			}
			r.Add(d.blob)
			return nil
		}
		problems := d.bad.problems
		about := &problems.Problems[0]
		about.detail = "the upgrade graph of its package was not checked"
		for _, pkg := range d.bad.packages {
			r.affected[pkg] = true
		}
		switch len(d.bad.packages) {
		case 0:
			unknown = append(unknown, about.Position.File)
		case 1:
			about.detail = fmt.Sprintf("the upgrade graph of package %s was not checked", fault.Quote(d.bad.packages[0]))
		}
		r.problems.join(problems)
		return nil
	})
	if err != nil {
		return nil, err
	}
	// A part of an unknown package belongs to those that it stands beside: in the file, else in the directory.
	dirs := map[string][]string{}
	for file, packages := range files {
		dirs[path.Dir(file)] = append(dirs[path.Dir(file)], packages...)
	}
	for _, file := range slices.Compact(unknown) {
		beside := files[file]
		if dir := path.Dir(file); len(beside) == 0 && dir != "." {
			beside, dirs[dir] = dirs[dir], nil
		}
		for _, pkg := range beside {
			r.affected[pkg] = true
		}
	}
	// The rest of a package is judged, even if the package itself is what cannot be read.
	for _, pkg := range slices.Sorted(maps.Keys(r.affected)) {
		if !slices.ContainsFunc(r.Packages, func(p Package) bool { return p.Name == pkg }) {
			r.Packages = append(r.Packages, Package{Name: pkg})
		}
	}
	// Problems that may be caused by unread documents are not reported.
	r.problems.ignored = func(p *Problem) bool {
		return r.affected[p.Package] && slices.Contains(incomplete, p.Rule)
	}
	return r, nil
}

// readDocument reads the next document, or says why it cannot be read. Only limits, and files that fail, are errors.
func readDocument(d *docReader) (document, error) {
	if d.broken {
		return document{}, io.EOF
	}
	b, err := d.blob()
	if err == nil || errors.Is(err, io.EOF) {
		return document{blob: b}, err
	}
	var problems *ValidationError
	if !errors.As(d.problem(err), &problems) || errors.Is(problems, ErrLimit) {
		return document{}, err
	}
	bad := &unreadableDocument{problems: problems}
	for _, p := range problems.Problems {
		if p.Package != "" && !slices.Contains(bad.packages, p.Package) {
			bad.packages = append(bad.packages, p.Package)
		}
	}
	if len(bad.packages) == 0 && !d.broken {
		bad.packages = packagesIn(d.doc.Data)
	}
	return document{bad: bad}, nil
}

var (
	packageLine = lazyregexp.New(`(?m)^\s*["']?package["']?\s*:\s*["']?([^"'\s,#}]+)`)
	nameLine    = lazyregexp.New(`(?m)^\s*["']?name["']?\s*:\s*["']?([^"'\s,#}]+)`)
	packageBlob = lazyregexp.New(`olm\.package["']?\s*[,}\n]`)
)

// packagesIn guesses the packages that a document belongs to which is neither YAML nor JSON.
func packagesIn(text []byte) (packages []string) {
	lines := packageLine
	if packageBlob().Match(text) && !packageLine().Match(text) {
		lines = nameLine
	}
	for _, m := range lines().FindAllSubmatch(text, 10) {
		if name := string(m[1]); !slices.Contains(packages, name) {
			packages = append(packages, name)
		}
	}
	return packages
}

// incomplete are the rules about something that is missing or out of place, which can be in what was not read.
var incomplete = []string{RulePackageName, RuleUnknownPackage, RuleBundleChannel, RuleEntryBundle, RuleDefaultChannel, RuleEmpty,
	RuleGraph, RuleReplaces, RuleDeprecation}
