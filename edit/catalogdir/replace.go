package catalogdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/operator-bindery/bindery/declcfg"
)

// Result lists the files that a replacement touches: slash-separated names relative to the directory, sorted.
type Result struct {
	Changed, Created, Removed []string
}

// Files returns the names of all touched files, sorted.
func (r Result) Files() []string {
	all := make([]string, 0, len(r.Changed)+len(r.Created)+len(r.Removed))
	all = append(append(append(all, r.Changed...), r.Created...), r.Removed...)
	sortNames(all)
	return all
}

// Unchanged reports whether no file is touched.
func (r Result) Unchanged() bool { return len(r.Changed)+len(r.Created)+len(r.Removed) == 0 }

// Replace makes the directory hold, of the named packages, exactly their blobs in now; other packages in now are
// ignored. The empty name stands for blobs without a package. Files of other packages are not touched, and no file is
// if nothing changes.
//
// Blobs in now that exist in the directory may be skeletons: their dropped values stay. New blobs must be complete.
//
// After an error the directory is unchanged. The error is [ErrChanged] if another program changed a file since Load,
// and [ErrPlace] if a file cannot be changed in place.
func (d *Dir) Replace(ctx context.Context, packages []string, now *declcfg.Catalog) (Result, error) {
	if d.options.ReadOnly {
		return Result{}, errors.New("the directory was opened for reading only")
	}
	es, result, err := d.plan(ctx, packages, now)
	if err != nil || result.Unchanged() {
		return Result{}, err
	}
	if err := d.carryOut(ctx, es); err != nil {
		return Result{}, fmt.Errorf("edit %s: %w", d.name, err)
	}
	d.index = nil
	return result, nil
}

// Plan returns what [Dir.Replace] would do, and writes nothing.
func (d *Dir) Plan(ctx context.Context, packages []string, now *declcfg.Catalog) (Result, error) {
	_, result, err := d.plan(ctx, packages, now)
	return result, err
}

// plan computes the changes to files.
func (d *Dir) plan(ctx context.Context, packages []string, now *declcfg.Catalog) ([]*fileEdit, Result, error) {
	var result Result
	if err := d.ready(ctx); err != nil {
		return nil, result, err
	}
	set := make(map[string]bool, len(packages))
	for _, name := range packages {
		set[name] = true
	}
	es := &edits{byName: map[string]*fileEdit{}}
	added, err := d.match(ctx, set, now, es)
	if err != nil {
		return nil, result, err
	}
	p := d.newPlacer(es)
	var errs []error
	refused := map[string]bool{}
	for _, w := range added {
		if pkg := w.blob.BlobPackage(); !refused[pkg] { // one error per package
			if err := p.placeBlob(w.blob); err != nil {
				refused[pkg] = true
				errs = append(errs, err)
			}
		}
	}
	all := es.sorted()
	for _, e := range all {
		errs = append(errs, d.checkPlace(e))
		switch {
		case e.file == nil:
			result.Created = append(result.Created, e.name)
		case e.empty():
			result.Removed = append(result.Removed, e.name)
		default:
			result.Changed = append(result.Changed, e.name)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, Result{}, err
	}
	return all, result, nil
}

// checkPlace refuses files that cannot be changed in place.
func (d *Dir) checkPlace(e *fileEdit) error {
	dir := path.Dir(e.name)
	for up := dir; ; up = path.Dir(up) {
		if _, err := d.root.Lstat(path.Join(up, "..data")); err == nil {
			return fmt.Errorf("%s %w: it is in a volume of Kubernetes, which changes as a whole (..data); "+
				"edit a copy of the directory", e.name, ErrPlace)
		}
		if up == "." {
			break
		}
	}
	if e.file != nil {
		switch mode := e.file.info.Mode(); {
		case mode&fs.ModeSymlink != 0:
			target, _ := d.root.Readlink(e.name) // only for the message
			return fmt.Errorf("%s %w: it is a link to %q; put a file in its place", e.name, ErrPlace, target)
		case mode.Perm()&0o222 == 0:
			return fmt.Errorf("%s %w: it is read-only", e.name, ErrPlace)
		}
	}
	info, err := d.root.Lstat(dir)
	for errors.Is(err, fs.ErrNotExist) {
		dir = path.Dir(dir)
		info, err = d.root.Lstat(dir)
	}
	if err == nil && info.Mode().Perm()&0o222 == 0 {
		err = fmt.Errorf("%s %w: its directory %s is read-only", e.name, ErrPlace, dir)
	}
	return err
}
