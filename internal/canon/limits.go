package canon

import (
	"bytes"
	"cmp"
	"fmt"
	"sync/atomic"
)

// Limits bound the cost of one document. A zero field means its default.
type Limits struct {
	// MaxDocument is the size of one document in bytes; 32 MiB by default.
	MaxDocument int
	// MaxIrregular is the size in bytes of a YAML document that only the library can read; 8 MiB by default.
	MaxIrregular int
	// MaxDepth is the maximum nesting of objects and arrays; [MaxDepth] by default.
	MaxDepth int
	// MaxExpansion is the factor by which aliases and merge keys may enlarge a YAML document, plus 1 MiB for all documents
	// of an input (see [Expansion]); 10 by default.
	MaxExpansion int
	// MaxNodes is the number of items and members, estimated from the punctuation, of a YAML document that only the
	// library can read; 200,000 by default. It bounds the memory of the library's trees.
	MaxNodes int
	// MaxMembers is the number of members of an object together with its enclosing objects; 500,000 by default.
	MaxMembers int
}

// MaxDepth is the default of [Limits.MaxDepth].
const MaxDepth = 100

// Expansion is what aliases and merge keys made of the documents of one input beyond the factor of [Limits]. Thousands of
// small documents may not become 1 MiB each. It is safe for concurrent use; the zero value is ready.
type Expansion struct{ used atomic.Int64 }

// expansionFloor is what all documents of an input may have beyond the factor.
const expansionFloor = 1 << 20

// most returns how long the canonical JSON of a document of n bytes may become.
func (e *Expansion) most(n int, l Limits) int {
	return l.MaxExpansion*n + expansionFloor - int(e.used.Load())
}

// add adds a document of n bytes whose canonical JSON has out bytes. It is false if all documents together have become
// too long.
func (e *Expansion) add(n, out int, l Limits) bool {
	beyond := out - l.MaxExpansion*n
	return beyond <= 0 || e.used.Add(int64(beyond)) <= expansionFloor
}

func (l Limits) withDefaults() Limits {
	l.MaxDocument = cmp.Or(l.MaxDocument, 32<<20)
	l.MaxIrregular = cmp.Or(l.MaxIrregular, 8<<20)
	l.MaxDepth = cmp.Or(l.MaxDepth, MaxDepth)
	l.MaxExpansion = cmp.Or(l.MaxExpansion, 10)
	l.MaxNodes = cmp.Or(l.MaxNodes, 200_000)
	l.MaxMembers = cmp.Or(l.MaxMembers, 500_000)
	return l
}

// LimitError reports a document that exceeds a limit.
type LimitError struct {
	What  string // "document size", "irregular document size", "depth", "alias expansion", "nodes" or "members"
	Line  int    // 1-based line in the document; 0 for the document as a whole
	Limit int64  // the limit, in bytes for sizes; 0 if it is not a number
}

func (e *LimitError) Error() string {
	text := e.What + " exceeds the limit"
	if e.Limit > 0 {
		text += fmt.Sprintf(" of %d", e.Limit)
	}
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	return text
}

// SyntaxError reports invalid YAML or JSON. Its text has the wording of the libraries that opm uses.
type SyntaxError struct {
	Format string // "yaml" or "json"
	Line   int    // 1-based line in the document, as the library counts it; 0 if unknown
	Column int    // 1-based column in bytes; 0 if unknown
	Msg    string // without format and position
	Err    error  // the library's error, or nil
}

// Error returns "yaml: line 2: message" or "json: line 2, column 5: message", with lines counted from the start of the
// document.
func (e *SyntaxError) Error() string { return e.text(e.Line) }

// Place returns the line counted from the start of the stream, the column, and the text without them. first is the
// line at which the document starts there (see [Doc]).
func (e *SyntaxError) Place(first int) (line, column int, text string) {
	return first + max(e.Line-1, 0), e.Column, e.text(0)
}

func (e *SyntaxError) text(line int) string {
	switch {
	case line == 0:
		return e.Format + ": " + e.Msg
	case e.Column == 0:
		return fmt.Sprintf("%s: line %d: %s", e.Format, line, e.Msg)
	}
	return fmt.Sprintf("%s: line %d, column %d: %s", e.Format, line, e.Column, e.Msg)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// lineAt returns the 1-based line of an offset in data.
func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), len(data))], []byte{'\n'})
}

// columnAt returns the 1-based column, in bytes, of an offset in data.
func columnAt(data []byte, offset int) int {
	offset = min(max(offset, 0), len(data))
	return offset - bytes.LastIndexByte(data[:offset], '\n')
}
