package declcfg

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"sort"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/guard"
)

// Sort sorts the blobs of the catalog in writing order: each kind by package, then by name. Blobs of unknown schemas
// are sorted by package and schema, and otherwise keep their order.
func (c *Catalog) Sort() {
	byNames(c.Packages, func(i int) (string, string) { return c.Packages[i].Name, "" })
	byNames(c.Channels, func(i int) (string, string) { return c.Channels[i].Package, c.Channels[i].Name })
	byNames(c.Bundles, func(i int) (string, string) { return c.Bundles[i].Package, c.Bundles[i].Name })
	byNames(c.Others, func(i int) (string, string) { return c.Others[i].Package, c.Others[i].Schema })
	byNames(c.Deprecations, func(i int) (string, string) { return c.Deprecations[i].Package, "" })
}

// byNames sorts a slice stably by two names of each element. Package sort has one implementation for all types, of which
// slices would add one each to the small server.
func byNames(all any, names func(i int) (string, string)) {
	sort.SliceStable(all, func(i, j int) bool {
		a, a2 := names(i)
		b, b2 := names(j)
		return a < b || a == b && a2 < b2
	})
}

// Blobs yields every blob of the catalog in writing order: packages sorted by name, in each the package, its channels
// by name, its bundles by name, its other blobs by schema, its deprecations; last the blobs of no package. The blobs
// point into the catalog. The error is always nil.
//
// As in opm, blobs that are invalid because they lack a package's name (an olm.package without name, an olm.channel or
// olm.bundle without package) are omitted; [Catalog.Validate] reports them.
func (c *Catalog) Blobs() iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		byPackage := map[string][]Blob{}
		for b := range c.All() {
			pkg := b.BlobPackage()
			if rank, _ := orderOf(b); hasPlace(rank, pkg) {
				byPackage[pkg] = append(byPackage[pkg], b)
			}
		}
		names := slices.Sorted(maps.Keys(byPackage))
		if len(names) > 0 && names[0] == "" {
			names = append(names[1:], "")
		}
		for _, name := range names {
			blobs := byPackage[name]
			sort.SliceStable(blobs, func(i, j int) bool {
				rank, key := orderOf(blobs[i])
				rank2, key2 := orderOf(blobs[j])
				return rank < rank2 || rank == rank2 && key < key2
			})
			for _, b := range blobs {
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}

// Write writes the whole catalog to w.
func (c *Catalog) Write(w io.Writer, f Format) error { return f.Write(w, c.Blobs()) }

// Write writes blobs to w in the order of the sequence, and stops at the first error.
func (f Format) Write(w io.Writer, blobs iter.Seq2[Blob, error]) error {
	enc := f.NewEncoder(w)
	for b, err := range blobs {
		if err != nil {
			return err
		}
		if err := enc.Encode(b); err != nil {
			return err
		}
	}
	return nil
}

// Collect gathers blobs into a catalog.
func Collect(blobs iter.Seq2[Blob, error]) (*Catalog, error) {
	c := &Catalog{}
	for b, err := range blobs {
		if err != nil {
			return nil, err
		}
		c.Add(b)
	}
	return c, nil
}

// WriteFS writes blobs as a catalog directory: <dir>/<package>/catalog.<ext> for the blobs of each package, and
// <dir>/catalog.<ext> for those of none. The blobs of a package must be consecutive. dir must be absent or an empty
// directory. Everything is written to a temporary sibling of dir, synced and renamed, so that dir is either complete or
// unchanged; the sibling is removed on every error and when ctx is cancelled.
func WriteFS(ctx context.Context, dir string, f Format, blobs iter.Seq2[Blob, error]) error {
	staged, err := StageFS(ctx, dir, f, blobs, false)
	if err != nil {
		return err
	}
	return staged.Commit()
}

// StagedFS is a complete catalog directory that has not been renamed to its target yet. It must be committed or
// discarded.
type StagedFS struct {
	out     *atomicfs.Dir
	replace bool
}

// StageFS is like [WriteFS] without the final rename: the caller checks the result and commits it. With replace the
// target may be a non-empty directory; Commit removes its content.
func StageFS(ctx context.Context, dir string, f Format, blobs iter.Seq2[Blob, error],
	replace bool) (_ *StagedFS, err error) {
	if !replace {
		if err := atomicfs.CheckEmpty(dir); err != nil {
			return nil, err
		}
	}
	out, err := atomicfs.NewDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Abort())
		}
	}()
	defer guard.Recover(&err)
	w := fsWriter{root: out.Path(), format: f}
	for b, err := range blobs {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = w.write(b)
		}
		if err != nil {
			return nil, errors.Join(err, w.abandonFile())
		}
	}
	if err := w.closeFile(); err != nil {
		return nil, err
	}
	return &StagedFS{out, replace}, nil
}

// Dir returns the temporary directory: a sibling of the target, or a directory in it if it is there and empty.
func (s *StagedFS) Dir() string { return s.out.Path() }

// Commit renames the directory to its target. After an error the target is unchanged and the directory is removed.
func (s *StagedFS) Commit() error {
	commit := s.out.Commit
	if s.replace {
		commit = s.out.Replace
	}
	return errors.Join(commit(), s.out.Abort())
}

// Discard removes the directory. After Commit it does nothing.
func (s *StagedFS) Discard() error { return s.out.Abort() }
