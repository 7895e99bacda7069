package resources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// ownName matches the names that [Options.Make] gives to files.
var ownName = lazyregexp.New(`^(?:(?:idms|itms|icsp)-oc-mirror\.yaml|(?:cs|cc)-[a-z0-9-]+\.yaml|signature-configmap\.(?:json|yaml)|updateService\.yaml|registries\.conf)$`)

// maxFile is how many bytes a file has at most.
const maxFile = limit.MaxMapping

// created is the line by which a file is known to be ours.
func created(by string) string { return "createdBy: " + by }

// Write writes files to a directory, which is made if there is none. All are complete beside their places before the
// first is renamed. Files of an earlier set that are not written again are removed after that unless keep is set, if
// they have the name and the annotation createdBy of this program's; the names of these are returned. After an error
// the earlier files are there.
func Write(ctx context.Context, dir string, files []File, keep bool) (removed []string, err error) {
	for _, f := range files {
		if len(f.Data) > maxFile {
			return nil, fmt.Errorf("%s: %w: %d bytes (limit %d): mirror fewer images at once", f.Name, fault.ErrLimit,
				len(f.Data), maxFile)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	contents := make([]atomicfs.Content, 0, len(files))
	for _, f := range files {
		contents = append(contents, atomicfs.Content{Path: filepath.Join(dir, f.Name), Data: f.Data, Perm: 0o644})
	}
	if err := atomicfs.WriteFiles(ctx, contents); err != nil {
		return nil, err
	}
	if keep {
		return nil, nil
	}
	stale, err := staleFiles(dir, files)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range stale {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, name)
	}
	return removed, errors.Join(errs...)
}

// staleFiles returns the names of the files of this program in a directory that are not among the given ones, sorted.
func staleFiles(dir string, files []File) ([]string, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: dir, Err: syscall.ENOTDIR} // to open a FIFO would block
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var stale []string
	for _, e := range entries {
		name := e.Name()
		if !ownName().MatchString(name) || slices.ContainsFunc(files, func(f File) bool { return f.Name == name }) {
			continue
		}
		text, err := regularfile.Read(filepath.Join(dir, name), maxFile)
		if err != nil {
			continue // a link, or larger than anything that this package writes
		}
		for line := range strings.Lines(string(text)) {
			if strings.TrimLeft(strings.TrimSpace(line), "# ") == created(creator) || strings.Contains(line, `"createdBy":"`+creator+`"`) {
				stale = append(stale, name)
				break
			}
		}
	}
	return stale, nil
}
