package catalogdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// placer chooses the files of new blobs.
type placer struct {
	dir   *Dir
	edits *edits
	byPkg map[string][]*document // in the order of the files
	fsys  fs.FS
}

func (d *Dir) newPlacer(es *edits) *placer {
	p := &placer{dir: d, edits: es, byPkg: map[string][]*document{}, fsys: d.root.FS()}
	for _, f := range d.index.files {
		for _, doc := range f.docs {
			p.byPkg[doc.pkg] = append(p.byPkg[doc.pkg], doc)
		}
	}
	return p
}

// placeBlob records in the edits where a new blob goes.
func (p *placer) placeBlob(b declcfg.Blob) error {
	k := keyOf(b)
	docs := p.byPkg[k.pkg]
	if len(docs) == 0 {
		return p.newPackage(b)
	}
	var likes []*document
	for _, doc := range docs {
		if doc.schema == k.schema {
			likes = append(likes, doc)
		}
	}
	if len(likes) == 0 {
		home := docs[0]
		if i := slices.IndexFunc(docs, func(d *document) bool { return d.schema == declcfg.SchemaPackage }); i >= 0 {
			home = docs[i]
		}
		p.append(home.file, b)
		return nil
	}
	near := neighbour(likes, b)
	if len(near.file.docs) == 1 {
		if name, ok := p.ownFile(likes, near, b); ok {
			e := p.edits.get(name)
			e.like, e.json = near, near.json
			e.add(-1, b)
			return nil
		}
	}
	p.append(near.file, b)
	return nil
}

func (p *placer) append(f *file, b declcfg.Blob) {
	p.edits.editOf(f).add(f.insertionPoint(keyOf(b)), b)
}

// neighbour returns the document that precedes a new blob: by version for bundles, by name for others. If all follow
// it, the first of them is returned.
func neighbour(likes []*document, b declcfg.Blob) *document {
	order := func(doc *document) int { return strings.Compare(doc.name, b.BlobName()) }
	if bundle, ok := b.(*declcfg.Bundle); ok {
		if v, err := bundle.VersionRelease(); err == nil {
			order = func(doc *document) int {
				if doc.version == nil {
					return -1 // lower than any version
				}
				return doc.version.Compare(v)
			}
		}
	}
	byOrder := func(a, b *document) int {
		if a.version != nil && b.version != nil {
			return a.version.Compare(*b.version)
		}
		return strings.Compare(a.name, b.name)
	}
	var below, above *document
	for _, doc := range likes {
		if order(doc) <= 0 {
			if below == nil || doc.version != nil && below.version == nil || byOrder(doc, below) >= 0 {
				below = doc
			}
		} else if above == nil || byOrder(doc, above) < 0 {
			above = doc
		}
	}
	if below == nil {
		return above
	}
	return below
}

// ownFile returns the name of a separate file for a new blob, if its neighbour has a separate file and the naming
// pattern is clear.
func (p *placer) ownFile(likes []*document, near *document, b declcfg.Blob) (string, bool) {
	if b.BlobName() == "" {
		return "", false
	}
	// The pattern of most similar documents wins; on a tie, the pattern of the neighbour.
	votes := map[pattern]int{}
	candidates := patterns(near)
	alone := 0
	for _, doc := range likes {
		if len(doc.file.docs) == 1 {
			alone++
			for _, pt := range patterns(doc) {
				votes[pt]++
				candidates = append(candidates, pt)
			}
		}
	}
	var best pattern
	for _, pt := range candidates {
		if votes[pt] > votes[best] {
			best = pt
		}
	}
	if votes[best] > 0 {
		if name, ok := best.fill(b); ok && p.free(name) {
			return name, true
		}
	}
	if alone < 2 || !isElement(b.BlobName()) {
		return "", false
	}
	name := path.Join(path.Dir(near.file.name), b.BlobName()+path.Ext(near.file.name))
	return name, p.free(name)
}

// newPackage records where a blob of a new package goes.
func (p *placer) newPackage(b declcfg.Blob) error {
	pkg := b.BlobPackage()
	var with []*file // files with documents
	for _, f := range p.dir.index.files {
		if len(f.docs) > 0 {
			with = append(with, f)
		}
	}
	if len(with) == 1 && !isOwn(with[0]) {
		p.append(with[0], b)
		return nil
	}
	name, like, isJSON := p.packageFile(pkg, with)
	if e := p.edits.byName[name]; e != nil && e.file == nil {
		e.add(-1, b) // another blob of the package
		return nil
	}
	if pkg != "" && !isElement(pkg) {
		return fmt.Errorf("package name %q %w: it is no name of a directory", pkg, ErrPlace)
	}
	if !p.free(name) {
		return fmt.Errorf("%s, the file of the new package %q, %w: it is there already, or an ignore file ignores it",
			name, pkg, ErrPlace)
	}
	e := p.edits.get(name)
	e.like, e.json = like, isJSON
	e.add(-1, b)
	return nil
}

// isOwn reports whether a file is meant for one package: it is in a subdirectory or named after its package. No other
// package is added to it.
func isOwn(f *file) bool {
	for _, doc := range f.docs {
		if doc.pkg != f.docs[0].pkg {
			return false
		}
	}
	_, called := packagePattern(f)
	return called || path.Dir(f.name) != "."
}

// packageFile returns the file name for a new package: by the pattern of most single-file packages, or else
// PACKAGE/catalog.EXT in the format of most files. like is the document whose formatting is copied; it may be nil.
func (p *placer) packageFile(pkg string, with []*file) (name string, like *document, isJSON bool) {
	ofJSON := 0
	for _, f := range with {
		if f.docs[0].json {
			ofJSON++
		}
	}
	isJSON = p.dir.options.Format == declcfg.FormatJSON
	if 2*ofJSON != len(with) {
		isJSON = 2*ofJSON > len(with)
	}
	ext := declcfg.FormatYAML.Extension()
	if isJSON {
		ext = declcfg.FormatJSON.Extension()
	}
	if pkg == "" {
		return "catalog." + ext, nil, isJSON
	}
	best := placeholder + "/catalog." + ext
	votes := map[string]int{}
	first := map[string]*document{}
	for _, f := range with {
		docs := p.byPkg[f.docs[0].pkg]
		if len(docs) != len(f.docs) || docs[len(docs)-1].file != f {
			continue // the package has other files, or the file other packages
		}
		if pt, ok := packagePattern(f); ok {
			if votes[pt]++; first[pt] == nil {
				first[pt] = f.docs[0]
			}
		}
	}
	for _, f := range with {
		if pt, ok := packagePattern(f); ok && votes[pt] > votes[best] {
			best = pt
		}
	}
	if first[best] != nil {
		like, isJSON = first[best], first[best].json
	}
	return strings.ReplaceAll(best, placeholder, pkg), like, isJSON
}

// free reports whether a new file can have a name: it is unused, and readers of the catalog do not ignore it.
func (p *placer) free(name string) bool {
	for element := range strings.SplitSeq(name, "/") {
		if !isElement(element) || declcfg.CheckDirectoryName(element) != nil {
			return false
		}
	}
	if p.edits.byName[name] != nil {
		return false
	}
	if _, err := p.dir.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	ignored, err := declcfg.Ignored(p.fsys, name)
	return err == nil && !ignored
}
