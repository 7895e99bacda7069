package catalogdir

import (
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/declcfg"
)

// placeholder replaces a part of a path in a pattern. File names never contain it.
const placeholder = "\x00"

// part is the part of a blob that a file name contains.
type part uint8

const (
	wholeName part = iota // the blob's name
	shortName             // the name without a leading package name: v1.0.0 of foo.v1.0.0
	version               // the bundle's version
)

// pattern is the naming scheme of files with one blob each.
type pattern struct {
	text string // slash-separated path with placeholders
	part part
}

// patterns returns the patterns that match the path of a document's file, the most specific first.
func patterns(doc *document) (all []pattern) {
	for _, of := range [...]part{wholeName, shortName, version} {
		token := of.partOf(doc.name, doc.pkg, doc.version)
		if text, ok := replaceWord(doc.file.name, token, of == version); ok {
			all = append(all, pattern{text, of})
		}
	}
	return all
}

// partOf returns the part of a blob; empty if it has none.
func (p part) partOf(name, pkg string, v *declcfg.VersionRelease) string {
	switch p {
	case wholeName:
		return name
	case shortName:
		if rest, ok := strings.CutPrefix(name, pkg); ok && pkg != "" {
			return strings.TrimLeft(rest, ".-_")
		}
	case version:
		if v != nil {
			return v.String()
		}
	}
	return ""
}

// fill returns the path of a blob.
func (p pattern) fill(b declcfg.Blob) (string, bool) {
	var v *declcfg.VersionRelease
	if bundle, ok := b.(*declcfg.Bundle); ok {
		if found, err := bundle.VersionRelease(); err == nil {
			v = &found
		}
	}
	token := p.part.partOf(b.BlobName(), b.BlobPackage(), v)
	if !isElement(token) {
		return "", false
	}
	return strings.ReplaceAll(p.text, placeholder, token), true
}

// packagePattern replaces the name of a file's first package in its path by placeholders; ok is false if the path does
// not contain it.
func packagePattern(f *file) (string, bool) { return replaceWord(f.name, f.docs[0].pkg, false) }

// replaceWord replaces a word in a path by the placeholder where no letter or digit is next to it; a "v" may precede a
// version.
func replaceWord(text, word string, isVersion bool) (string, bool) {
	if word == "" {
		return "", false
	}
	var out strings.Builder
	found := false
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			out.WriteString(text[from:])
			return out.String(), found
		}
		i += from
		end := i + len(word)
		before := text[:i]
		if isVersion && (strings.HasSuffix(before, "v") || strings.HasSuffix(before, "V")) {
			before = before[:len(before)-1]
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(text[end:])
		if isWordRune(last) || isWordRune(next) {
			out.WriteString(text[from : i+1])
			from = i + 1
			continue
		}
		out.WriteString(text[from:i])
		out.WriteString(placeholder)
		from, found = end, true
	}
}

// isWordRune reports whether a rune belongs to a word. The error rune at the ends of a text does not.
func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// isElement reports whether a name is a valid file or directory name for a catalog on every system.
func isElement(name string) bool {
	return name != "" && name != "." && len(name) <= 255 && utf8.ValidString(name) && filepath.IsLocal(name) &&
		!strings.HasPrefix(name, "..") && !strings.ContainsAny(name, `/\`) && strings.IndexFunc(name,
		unicode.IsControl) < 0
}
