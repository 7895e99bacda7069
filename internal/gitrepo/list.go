package gitrepo

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

const (
	maxFiles = 2_000_000 // that are compared
	maxLines = 1_000_000 // of a list
	maxList  = 128 << 20 // bytes of a list
	maxName  = 4096      // bytes of a name
)

// Kind says how a file changes.
type Kind int

// The kinds.
const (
	Unknown Kind = iota // a list of names alone does not say it
	Added
	Modified
	Deleted
)

func (k Kind) String() string { return [...]string{"unknown", "added", "modified", "deleted"}[k] }

// Change is a file that a pull request changes.
type Change struct {
	Path string // with slashes, from the root of the work tree
	Kind Kind
}

// sorted sorts changes by path, and merges those of one path.
func sorted(changes []Change) []Change {
	slices.SortStableFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	out := changes[:0]
	for _, c := range changes {
		if last := len(out) - 1; last >= 0 && out[last].Path == c.Path {
			if out[last].Kind != c.Kind {
				out[last].Kind = Modified // a deleted file that is added, as by two renames
			}
			continue
		}
		out = append(out, c)
	}
	return out
}

// ReadChanges reads what "git diff --name-only" or "git diff --name-status" prints, with or without -z. The result is
// sorted. The old name of a renamed file is deleted.
func ReadChanges(r io.Reader) ([]Change, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxList+1))
	if err != nil {
		return nil, fmt.Errorf("read the list of changed files: %w", err)
	}
	if len(text) > maxList {
		return nil, fmt.Errorf("the list of changed files: %w: more than %d bytes", fault.ErrLimit, maxList)
	}
	end, unit := "\n", "line"
	if bytes.IndexByte(text, 0) >= 0 {
		end, unit = "\x00", "entry"
	}
	if n := bytes.Count(text, []byte(end)); n > maxLines {
		return nil, fmt.Errorf("the list of changed files: %w: more than %d lines", fault.ErrLimit, maxLines)
	}
	records := strings.Split(strings.TrimSuffix(string(text), end), end)
	if len(text) == 0 {
		return nil, nil
	}
	var changes []Change
	status := end == "\x00" && len(records) > 1 && statusOf(records[0]) != 0
	for i := 0; i < len(records); i++ {
		line, fields := i+1, records[i:i+1]
		if end == "\n" {
			fields = strings.Split(strings.TrimSuffix(records[i], "\r"), "\t")
			status = len(fields) > 1
		} else if status {
			n := 2
			if s := statusOf(records[i]); s == 'R' || s == 'C' {
				n = 3
			}
			fields = records[i:min(i+n, len(records))]
			i += len(fields) - 1
		}
		more, err := change(fields, status, end == "\n")
		if err != nil {
			return nil, fmt.Errorf("the list of changed files, %s %d: %w: %w", unit, line, fault.ErrInvalid, err)
		}
		changes = append(changes, more...)
	}
	return sorted(changes), nil
}

// local reports whether a name is that of a file below the root.
func local(name string) bool { return name != "." && fs.ValidPath(strings.ToValidUTF8(name, "_")) }

// statusOf returns the letter of a field that is a status, such as "R100"; 0 for another field.
func statusOf(field string) byte {
	if field == "" || len(field) > 4 || strings.Trim(field[1:], "0123456789") != "" || !strings.Contains("ACDMRTU", field[:1]) {
		return 0
	}
	return field[0]
}

// change returns the changes of one record.
func change(fields []string, status, quoted bool) ([]Change, error) {
	kinds := []Kind{Unknown}
	if status {
		letter := statusOf(fields[0])
		kinds = map[byte][]Kind{'A': {Added}, 'D': {Deleted}, 'M': {Modified}, 'T': {Modified}, 'U': {Modified},
			'R': {Deleted, Added}, 'C': {Unknown, Added}}[letter]
		if fields = fields[1:]; letter == 0 || len(fields) != len(kinds) {
			return nil, fmt.Errorf("is neither a name nor a status and a name, as git diff --name-status prints them")
		}
		if letter == 'C' { // the file that is copied does not change
			kinds, fields = kinds[1:], fields[1:]
		}
	}
	var changes []Change
	for i, name := range fields {
		if quoted && strings.HasPrefix(name, `"`) {
			var err error // the escapes of git are some of those of Go
			if name, err = strconv.Unquote(name); err != nil {
				return nil, fmt.Errorf("the name %s is not quoted as git does it", fault.Quote(fields[i]))
			}
		}
		switch {
		case name == "":
			return nil, fmt.Errorf("an empty name")
		case len(name) > maxName:
			return nil, fmt.Errorf("%w: a name of more than %d bytes", fault.ErrLimit, maxName)
		case !local(name) || strings.Contains(name, "\x00"):
			return nil, fmt.Errorf("the name %s is not a path below the root of the repository", fault.Quote(name))
		}
		changes = append(changes, Change{name, kinds[i]})
	}
	return changes, nil
}
