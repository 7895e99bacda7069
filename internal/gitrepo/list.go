package gitrepo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
)

const (
	maxNames = 128 << 20// bytes that the names of files may take
	maxList  = 16 << 20 // bytes of a list
	maxDepth = 128      // of directories
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

// names limits the names of files that are read, while a context lasts.
type names struct {
	ctx  context.Context
	left int // bytes of memory
}

func (n *names) take(name string) error {
	n.left -= len(name) + 256
	switch {
	case n.ctx.Err() != nil:
		return context.Cause(n.ctx)
	case n.left < 0 || strings.Count(name, "/") > maxDepth:
		return fmt.Errorf("%s: %w: more names of files than %d MiB hold, or directories nested deeper than %d", fault.Quote(name), fault.ErrLimit, maxNames>>20, maxDepth)
	case name == "." || !fs.ValidPath(strings.ToValidUTF8(name, "_")) || strings.Contains(name, "\x00") || strings.Contains("/"+strings.ToLower(name)+"/", "/.git/"):
		return fmt.Errorf("%w: the name %s is not that of a file below the root of the repository", fault.ErrInvalid, fault.Quote(name))
	}
	return nil
}

// compare compares what files are.
func compare[T comparable](was, is map[string]T) []Change {
	kinds := map[string]Kind{}
	for name := range was {
		kinds[name] = Deleted
	}
	for name, after := range is {
		if before, ok := was[name]; !ok {
			kinds[name] = Added
		} else if before != after {
			kinds[name] = Modified
		} else {
			delete(kinds, name)
		}
	}
	return sorted(kinds)
}

func sorted(kinds map[string]Kind) (changes []Change) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		changes = append(changes, Change{name, kinds[name]})
	}
	return changes
}

// Diff compares the regular files of two directories. The result is sorted. What is named .git is left out.
func Diff(ctx context.Context, base, head fs.FS) ([]Change, error) {
	var sums [2]map[string][sha256.Size]byte
	for i, fsys := range []fs.FS{base, head} {
		sums[i] = map[string][sha256.Size]byte{}
		all := &names{ctx, maxNames}
		err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || name == ".":
				return err
			case d.Name() == ".git" && d.IsDir():
				return fs.SkipDir
			case d.Name() == ".git":
				return nil
			}
			if err := all.take(name); err != nil || !d.Type().IsRegular() {
				return err
			}
			f, err := fsys.Open(name)
			if err != nil {
				return err
			}
			sum := sha256.New()
			_, err = ctxio.Copy(sum, ctxio.Reader{Ctx: ctx, R: f})
			sums[i][name] = [sha256.Size]byte(sum.Sum(nil))
			return errors.Join(err, f.Close())
		})
		if err != nil {
			return nil, err
		}
	}
	return compare(sums[0], sums[1]), nil
}

// ReadChanges reads what "git diff --name-only" or "git diff --name-status" prints, with or without -z. The result is
// sorted. The old name of a renamed file is deleted.
func ReadChanges(r io.Reader) ([]Change, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxList+1))
	if err == nil && len(text) > maxList {
		err = fmt.Errorf("%w: more than %d MiB", fault.ErrLimit, maxList>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of changed files: %w", err)
	}
	const copied Kind = -1 // which does not change
	statuses := map[string][]Kind{"A": {Added}, "D": {Deleted}, "M": {Modified}, "T": {Modified}, "U": {Modified}, "R": {Deleted, Added}, "C": {copied, Added}}
	status := func(field string) []Kind { return statuses[strings.TrimRight(field, "0123456789")] }
	separators, quoted := "\n\r\t", bytes.IndexByte(text, 0) < 0 // names with these are quoted
	if !quoted {
		separators = "\x00"
	}
	fields := strings.FieldsFunc(string(text), func(r rune) bool { return strings.ContainsRune(separators, r) })
	withStatus := quoted && bytes.IndexByte(text, '\t') >= 0 || !quoted && len(fields) > 1 && status(fields[0]) != nil
	kinds, all := map[string]Kind{}, &names{context.Background(), maxNames}
	for len(fields) > 0 {
		record := []Kind{Unknown}
		if withStatus {
			record, fields = status(fields[0]), fields[1:]
		}
		if len(record) == 0 || len(record) > len(fields) {
			return nil, fmt.Errorf("the list of changed files: %w: after %d files comes neither a name nor a status with its names, as git diff --name-status prints them", fault.ErrInvalid, len(kinds))
		}
		for _, kind := range record {
			name := fields[0]
			if quoted && strings.HasPrefix(name, `"`) {
				name, err = strconv.Unquote(name) // the escapes of git are some of those of Go
			}
			if err = errors.Join(err, all.take(name)); err != nil {
				return nil, fmt.Errorf("the list of changed files: %s: %w", fault.Quote(fields[0]), err)
			}
			fields = fields[1:]
			if was, ok := kinds[name]; ok && was != kind && kind != copied {
				kind = Modified // deleted and added, as by two renames
			}
			if kind != copied {
				kinds[name] = kind
			}
		}
	}
	return sorted(kinds), nil
}
