package appregistry

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
)

// maxLook is how many files are read to distinguish package manifests from a catalog.
const maxLook = 1000

// Is reports whether a directory holds package manifests and no file-based catalog: a file with a usual name for
// package manifests is in the root or in one of its directories, and no other file there belongs to a catalog. It
// returns false when in doubt.
//
// For a catalog it costs little more than listing these directories.
func Is(fsys fs.FS) bool {
	l := &looker{fsys: fsys}
	entries, err := bundlefs.Entries(fsys, ".")
	if err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == declcfg.IgnoreFile }) {
		return false
	}
	l.list(".", entries)
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if below, err := bundlefs.Entries(fsys, e.Name()); err == nil {
			l.list(e.Name(), below)
		}
	}
	found := false
	for _, name := range l.manifests {
		h, ok := l.look(name)
		if ok && h.Schema != nil {
			return false
		}
		found = found || ok && h.isManifest()
	}
	if !found {
		return false
	}
	for _, name := range l.others {
		if h, ok := l.look(name); ok && h.Schema != nil {
			return false
		}
	}
	return true
}

// looker reads the files of a directory until it knows what they are.
type looker struct {
	fsys              fs.FS
	manifests, others []string
	looked            int
}

// list separates the files named like package manifests from others that a catalog may be in.
func (l *looker) list(dir string, entries []fs.DirEntry) {
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch ext := strings.ToLower(path.Ext(name)); {
		case e.IsDir() || strings.HasPrefix(e.Name(), "."):
		case isManifestName(name):
			l.manifests = append(l.manifests, name)
		case ext == ".yaml" || ext == ".yml" || ext == ".json":
			l.others = append(l.others, name)
		}
	}
}

// look reads the head of a file's first document; ok is false if it cannot be decoded or [maxLook] files have been
// read.
func (l *looker) look(name string) (head, bool) {
	if l.looked++; l.looked > maxLook {
		return head{}, false
	}
	text, err := bundlefs.ReadFile(l.fsys, name)
	if err != nil {
		return head{}, false
	}
	d, err := firstDocument(text, canon.Limits{MaxDocument: bundlefs.MaxFile})
	if err != nil {
		return head{}, false
	}
	return d.head()
}
