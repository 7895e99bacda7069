package catalogdir

import (
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// edits are the pending changes of files by name.
type edits struct {
	byName map[string]*fileEdit
}

// fileEdit is the pending change of one file.
type fileEdit struct {
	name string
	file *file // nil for a new file
	// like is a document of another file, whose formatting the first blob of a new file copies; nil for the default
	// formatting.
	like *document
	json bool // whether a new file is JSON
	// order has all documents of the file in the order of the canonical form, in which the file is written; nil if it
	// keeps its form.
	order []*document

	changed map[int]declcfg.Blob   // by index of the document
	dropped map[int]bool           // by index of the document
	added   map[int][]declcfg.Blob // after the document of that index; -1 for a new file
}

func (es *edits) get(name string) *fileEdit {
	e := es.byName[name]
	if e == nil {
		e = &fileEdit{name: name, changed: map[int]declcfg.Blob{}, dropped: map[int]bool{},
			added: map[int][]declcfg.Blob{}}
		es.byName[name] = e
	}
	return e
}

// editOf returns the edit of an existing file.
func (es *edits) editOf(f *file) *fileEdit {
	e := es.get(f.name)
	e.file = f
	return e
}

func (e *fileEdit) change(doc *document, to declcfg.Blob) { e.changed[doc.n] = to }

func (e *fileEdit) drop(doc *document) { e.dropped[doc.n] = true }

func (e *fileEdit) add(behind int, b declcfg.Blob) { e.added[behind] = append(e.added[behind], b) }

// empty reports whether no document remains in the file.
func (e *fileEdit) empty() bool {
	return e.file != nil && len(e.dropped) == len(e.file.docs) && len(e.added) == 0
}

func (es *edits) sorted() []*fileEdit {
	return slices.SortedFunc(maps.Values(es.byName), func(a, b *fileEdit) int { return compareNames(a.name, b.name) })
}

// insertionPoint returns the index of the document after which a new blob is inserted: the last one of its schema and
// package in the file; or else the last one of the package whose schema precedes it in the writing order; or the last
// of the package; or the last of the file.
func (f *file) insertionPoint(k key) int {
	best := -1
	for _, doc := range f.docs {
		if doc.pkg == k.pkg && (declcfg.Rank(doc.schema) < declcfg.Rank(k.schema) || doc.schema == k.schema) &&
			(best < 0 || declcfg.Rank(doc.schema) >= declcfg.Rank(f.docs[best].schema)) {
			best = doc.n
		}
	}
	if best >= 0 {
		return best
	}
	for _, doc := range slices.Backward(f.docs) {
		if doc.pkg == k.pkg {
			return doc.n
		}
	}
	return len(f.docs) - 1
}
