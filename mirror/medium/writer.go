package medium

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/semaphore"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/keyed"
)

// defaultSegmentBytes is the size of segments where the image set has no archiveSize: 500 GiB, as in oc-mirror.
const defaultSegmentBytes = 500 << 30

// minSegment is the least size of segments: with less there would be more of them than numbers.
const minSegment = 1 << 20

// Options are those of [Create].
type Options struct {
	// Form is the form of the archive; [OCI] by default.
	Form Form
	// SegmentBytes is how large a segment may be, with everything; [defaultSegmentBytes] by default. A file that is
	// larger gets a segment of its own, with a warning.
	SegmentBytes int64
	// Strict makes a file that is larger than a segment an error of the class [fault.ErrLimit].
	Strict bool
	// Have tells whether the destination has a blob or manifest, which is then left out and listed as left out. It is
	// called concurrently; nil means that the destination has nothing. It may be [History.Has] or that of an inventory.
	Have func(digest.Digest) bool
	// Where tells which repositories of the destination have a blob that is left out, by their paths, so that
	// registries can mount it from there. It is called concurrently; nil if that is not known. It may be
	// [History.Where].
	Where func(digest.Digest) []string
	// Since is the time from which the answers of Have are, for the list of what is left out; nil if it is not known.
	Since *time.Time
	// Keep keeps an archive that is in the directory, unless the new one has all that it has: the segments of the new
	// one follow its segments, and a reader reads both. Without it the new archive replaces it.
	Keep bool
	// Beside leaves out what the archive that is kept has.
	Beside bool
	// Key identifies what the run is of, such as a hash of its configuration and the source digests of its catalogs.
	// An unfinished archive of another key or form is removed, with a warning.
	Key string
	// Event receives what happens, concurrently; nil for none.
	Event func(store.Event)
}

// Writer writes an archive. It is safe for concurrent use until Finish.
type Writer struct {
	dir  string
	o    Options
	root *os.Root
	lock *os.File // the journal
	// small bounds the blobs that are in memory.
	small *semaphore.Weighted

	// turn is held while a member gets its place. It guards what follows.
	turn     chan struct{}
	segments []*segment // the last one is that to which members are added
	names    map[string]bool
	members  int
	holes    map[key]*region // places of blobs that failed
	ended    bool            // no member may follow

	closed bool
	// kept is the archive that is in the directory, with [Options.Keep]; nil if there is none. base is the number of
	// its last segment if it stays; it is known when the archive is finished.
	kept *Reader
	base int

	mu      sync.Mutex
	blobs   map[key]place
	writing keyed.Locks[key]
	leftOut map[key]*absent
	repos   map[string]*writerRepository

	resumed int64
}

// place is where a blob is: the number of its segment, the offset and length of the content.
type place struct {
	segment  int
	at, size int64
	// by is the first repository that wrote it in this run.
	by *writerRepository
}

// absent is a blob or manifest that is left out. A manifest's parts are known, since it is not in the archive to be
// read again.
type absent struct {
	by        *writerRepository
	size      int64
	mediaType string
	parts     *parts
}

// Create opens an archive for writing in a directory, which is made. What an interrupted run of the same key and form
// left there is checked, blob by blob, and continued: what is whole is there for [Writer.Has] and is not fetched again.
// Tags, referrers and other files are not kept: the caller writes them again. An older archive in the directory stays
// until [Writer.Finish]. The caller must close the writer. The error is of the class [fault.Conflict] if another
// process writes to the directory; on file systems without locks that is not noticed.
func Create(ctx context.Context, dir string, o Options) (_ *Writer, err error) {
	o.Form = cmp.Or(o.Form, OCI)
	o.SegmentBytes = cmp.Or(o.SegmentBytes, defaultSegmentBytes)
	if err := o.Form.check(); err != nil {
		return nil, err
	}
	if o.SegmentBytes < minSegment {
		return nil, fmt.Errorf("%w: segments of %d bytes (at least %d)", fault.ErrInvalid, o.SegmentBytes, minSegment)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, o: o, turn: make(chan struct{}, 1), small: semaphore.NewWeighted(smallBytes),
		names: map[string]bool{}, holes: map[key]*region{}, blobs: map[key]place{},
		leftOut: map[key]*absent{}, repos: map[string]*writerRepository{}}
	if w.root, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if err := w.lockAndRecover(ctx); err != nil {
		return nil, fmt.Errorf("archive in %s: %w", dir, err)
	}
	if o.Keep {
		w.kept, err = Open(ctx, dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoSegments) {
			err = nil
		}
		if err != nil {
			return nil, &KeptError{Dir: dir, Err: err}
		}
	}
	return w, nil
}

// KeptError is the error of an archive that is to be kept and cannot be read.
type KeptError struct {
	Dir string
	Err error
}

func (e *KeptError) Error() string {
	return "the archive that is there cannot be kept: " + e.Err.Error()
}
func (e *KeptError) Unwrap() error { return e.Err }

// KeptTag returns what a tag stands for in the archive that is kept; empty if there is none.
func (w *Writer) KeptTag(path, tag string) digest.Digest {
	if w.kept == nil {
		return ""
	}
	return w.kept.Tag(path, tag)
}

// Resumed returns how many bytes of blobs an interrupted run had left.
func (w *Writer) Resumed() int64 { return w.resumed }

// Has tells whether the archive has a blob or manifest.
func (w *Writer) Has(d digest.Digest) bool {
	k, err := keyOf(d)
	if err != nil {
		return false
	}
	_, has := w.findBlob(k)
	return has
}

// findBlob returns where a blob or manifest is in the archive.
func (w *Writer) findBlob(k key) (place, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, has := w.blobs[k]
	return p, has
}

// Close closes the files. What is unfinished stays, hidden, for the next run of the same key.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	errs := []error{w.abandon()}
	if w.kept != nil {
		errs = append(errs, w.kept.Close())
	}
	if w.lock != nil {
		errs = append(errs, w.lock.Close())
	}
	return errors.Join(append(errs, w.root.Close())...)
}

// Discard closes the writer and removes what is unfinished.
func (w *Writer) Discard() error {
	if w.closed {
		return nil
	}
	err := errors.Join(w.abandon(), w.removePartials())
	_ = w.root.Remove(journalFile) // where open files cannot be removed, a journal of nothing stays
	return errors.Join(err, w.Close())
}

func (w *Writer) abandon() error {
	var errs []error
	for _, s := range w.segments {
		errs = append(errs, s.abandon())
	}
	return errors.Join(errs...)
}

// removePartials removes the unfinished segments.
func (w *Writer) removePartials() error {
	names, err := partials(w.root)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := w.root.Remove(n); err != nil {
			return err
		}
	}
	return nil
}

// acquire waits for the turn to write.
func (w *Writer) acquire(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		if w.ended || w.closed {
			<-w.turn
			return os.ErrClosed
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *Writer) release() { <-w.turn }

func (w *Writer) event(e store.Event) {
	if w.o.Event != nil {
		e.Destination = w.dir
		w.o.Event(e)
	}
}

func (w *Writer) warn(err error) { w.event(store.Event{Kind: store.EventWarning, Err: err}) }

// tooLarge returns an error for a member that is larger than a segment, if that is one.
func (w *Writer) tooLarge(name string, size int64) error {
	if need := 3*block + padded(size) + trailer; w.o.Strict && need > w.o.SegmentBytes {
		return fmt.Errorf("%w: %s: %w: %d bytes do not fit into a segment of %d bytes: archiveSize must be %d (GiB) at "+
			"least, or --archive-size %d", ErrTooLarge, name, fault.ErrLimit, size, w.o.SegmentBytes, (need+1<<30-1)>>30, need)
	}
	return nil
}

// room begins a new segment if a member of a size would make the current one too large. The caller holds w.turn.
func (w *Writer) room(name string, size int64, head []byte) error {
	if err := w.tooLarge(name, size); err != nil {
		return err
	}
	need := int64(len(head)) + padded(size) + trailer
	if need > w.o.SegmentBytes {
		w.warn(fmt.Errorf("%s: %d bytes do not fit into a segment of %d bytes and get one of their own: "+
			"archiveSize: %d would do", name, size, w.o.SegmentBytes, (need+1<<30-1)>>30))
	}
	if cur := w.current(); cur != nil && (cur.members == 0 || cur.bytes()+need <= w.o.SegmentBytes) {
		return nil
	}
	return w.roll()
}

// current returns the segment to which members are added; nil if there is none. The caller holds w.turn.
func (w *Writer) current() *segment {
	if n := len(w.segments); n > 0 && !w.segments[n-1].ended {
		return w.segments[n-1]
	}
	return nil
}

// full returns an error if an archive has more of something than readers take.
func full(n, most int, what string) error {
	if n > most {
		return fmt.Errorf("%w: %w: more than %d %s, which no reader takes: mirror fewer images at once", ErrTooLarge,
			fault.ErrLimit, most, what)
	}
	return nil
}

// roll ends the current segment and begins the next. The caller holds w.turn.
func (w *Writer) roll() error {
	if err := w.endSegment(); err != nil {
		return err
	}
	n := len(w.segments) + 1
	if n > maxSegments {
		return fmt.Errorf("%w: more than %d segments: make them larger", fault.ErrLimit, maxSegments)
	}
	f, err := w.root.OpenFile(partial(n), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return w.written(err)
	}
	w.segments = append(w.segments, newSegment(f, n))
	return nil
}

// endSegment writes the end of the current segment, if there is one, and closes those that are complete. The caller
// has the turn.
func (w *Writer) endSegment() error {
	if err := w.trimSegment(); err != nil {
		return err
	}
	if cur := w.current(); cur != nil {
		if err := cur.end(); err != nil {
			return w.written(err)
		}
	}
	for _, s := range w.segments {
		if s.settled() {
			if err := s.close(); err != nil {
				return w.written(err)
			}
		}
	}
	return atomicfs.SyncDir(w.dir)
}

// trimSegment removes the holes at the end of the current segment. The caller holds w.turn.
func (w *Writer) trimSegment() error {
	cur := w.current()
	if cur == nil {
		return nil
	}
	dropped, err := cur.dropHoles()
	for k, r := range w.holes {
		if slices.Contains(dropped, r) {
			delete(w.holes, k)
		}
	}
	return w.written(err)
}

// written explains an error of writing.
func (w *Writer) written(err error) error {
	if err != nil && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		return fmt.Errorf("no space is left in %s: what is written of the archive stays, and the next run goes on "+
			"behind it: %w", w.dir, err)
	}
	return err
}
