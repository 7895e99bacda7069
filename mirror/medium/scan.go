package medium

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/fault"
)

// maxMembers is how many members the segments of an archive may have.
const maxMembers = 8_000_000

// scanSegment reads the headers of a segment and calls visit for each regular file, with its clean name and the offset
// of its content, which content reads. Directories, links and devices are passed over (MIRROR 10.5); sparse files,
// names that leave the archive and an archive that is cut off are errors.
func scanSegment(ctx context.Context, f io.ReaderAt, size int64, members *int,
	visit func(name string, at, size int64, content io.Reader) error) error {
	head := make([]byte, 8)
	if n, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		return err
	} else if err := archive.CheckPlain(head[:n]); err != nil {
		return err
	}
	w := &window{f: f, size: size}
	tr := tar.NewReader(w)
	end := int64(0) // of the last member
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.budget = headerBudget
		h, err := tr.Next()
		if err == io.EOF {
			return checkEnd(w, end)
		}
		if errors.Is(err, fault.ErrLimit) {
			return err
		}
		if err != nil {
			return archive.Error(err)
		}
		if *members++; *members > maxMembers {
			return fmt.Errorf("%w: more than %d members", fault.ErrLimit, maxMembers)
		}
		name, err := archive.EntryName(h)
		if err != nil {
			return err
		}
		if archive.IsSparse(h) {
			return fmt.Errorf("%w: %.200q is a sparse file", fault.ErrLimit, name)
		}
		at := w.at
		if end = at; h.Typeflag != tar.TypeReg {
			continue
		}
		if h.Size > size-at {
			return fmt.Errorf("%w: the archive is cut off in %.200q", fault.ErrIntegrity, name)
		}
		end = at + padded(h.Size)
		if err := visit(name, at, h.Size, tr); err != nil {
			return err
		}
	}
}

// maxAfterEnd is how many zeros may follow the end of an archive: programs write blocks of up to 1 MiB.
const maxAfterEnd = 1 << 20

// checkEnd returns an error for an archive without its end, and for one with something behind it.
func checkEnd(w *window, end int64) error {
	if w.at-trailer < end {
		return fmt.Errorf("%w: missing end of archive", fault.ErrIntegrity)
	}
	if w.size-w.at > maxAfterEnd {
		return fmt.Errorf("%w: %d bytes after the end of the archive", fault.ErrInvalid, w.size-w.at)
	}
	w.budget = maxAfterEnd + 1
	rest, err := io.ReadAll(w)
	if err != nil {
		return err
	}
	for _, c := range rest {
		if c != 0 {
			return fmt.Errorf("%w: data after the end of the archive", fault.ErrInvalid)
		}
	}
	return nil
}
