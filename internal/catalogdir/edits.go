package catalogdir

import (
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// edits are what is to be done to files, by name.
type edits struct {
	byName map[string]*fileEdit
}

// fileEdit is what is to be done to one file.
type fileEdit struct {
	name string
	file *file // nil for a new one
	// like is a document of another file, in whose form the first blob of a new file is written; nil for the default form.
	like *document
	json bool // whether a new file is one of JSON

	changed map[int]declcfg.Blob   // by the number of a document
	dropped map[int]bool           // by the number of a document
	added   map[int][]declcfg.Blob // behind the document of that number; -1 for a new file
}

func (es *edits) get(name string) *fileEdit {
	e := es.byName[name]
	if e == nil {
		e = &fileEdit{name: name, changed: map[int]declcfg.Blob{}, dropped: map[int]bool{}, added: map[int][]declcfg.Blob{}}
		es.byName[name] = e
	}
	return e
}

// of returns the edit of a file that is there.
func (es *edits) of(f *file) *fileEdit {
	e := es.get(f.name)
	e.file = f
	return e
}

func (e *fileEdit) change(doc *document, to declcfg.Blob) { e.changed[doc.n] = to }

func (e *fileEdit) drop(doc *document) { e.dropped[doc.n] = true }

func (e *fileEdit) add(behind int, b declcfg.Blob) { e.added[behind] = append(e.added[behind], b) }

// empty reports whether the file has no document afterwards.
func (e *fileEdit) empty() bool {
	return e.file != nil && len(e.dropped) == len(e.file.docs) && len(e.added) == 0
}

// sorted returns the edits in the order of the names of their files.
func (es *edits) sorted() []*fileEdit {
	return slices.SortedFunc(maps.Values(es.byName), func(a, b *fileEdit) int { return compareNames(a.name, b.name) })
}

// rankOfOthers is the place of blobs of unknown schemas in the writing order.
const rankOfOthers = 3

// rank is the place of a schema in the writing order.
func rank(schema string) int {
	switch schema {
	case declcfg.SchemaPackage:
		return 0
	case declcfg.SchemaChannel:
		return 1
	case declcfg.SchemaBundle:
		return 2
	case declcfg.SchemaDeprecations:
		return 4
	}
	return rankOfOthers
}

// behind returns the number of the document behind which a new blob goes: the last of its schema and package in the file;
// or else the last of the package whose schema comes before it in the writing order; or the last of the package; or the
// last of the file.
func (f *file) behind(k key) int {
	best := -1
	for _, doc := range f.docs {
		if doc.pkg == k.pkg && (rank(doc.schema) < rank(k.schema) || doc.schema == k.schema) &&
			(best < 0 || rank(doc.schema) >= rank(f.docs[best].schema)) {
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
