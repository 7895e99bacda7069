package program

import (
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/store"
)

// Progress returns the progress of a long task: a bar on a terminal, elsewhere lines of the log. opm shows none.
func (p *Program) Progress() *cmdline.Progress {
	line := func(text string) { p.Log.Info(text) }
	if p.Opm || p.noProgress {
		line = nil
	}
	if !p.bars {
		return cmdline.NewProgress(nil, line)
	}
	return cmdline.NewProgress(p.screen, nil)
}

// Task returns the progress of a task that transfers blobs. While it is shown, that of the blobs is not: both count the
// same bytes.
func (p *Program) Task() *cmdline.Progress {
	task := p.Progress()
	p.Moved().within(task)
	return task
}

// within hides the transfer while a task is shown.
func (t *transfer) within(task *cmdline.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tasks = append(t.tasks, task)
}

// Loading returns a function that shows the progress of reading the files of catalog directories, from the number of
// bytes that were read. References of other kinds are ignored. The bar goes when all is read.
func (p *Program) Loading(refs ...string) func(n int) {
	var all, done atomic.Int64
	var count sync.Once
	progress := p.Progress()
	p.AtEnd = append(p.AtEnd, func(bool) error { progress.Close(); return nil })
	return func(n int) {
		count.Do(func() {
			for _, ref := range refs {
				all.Add(sizeOf(ref))
			}
		})
		now, of := done.Add(int64(n)), all.Load()
		if now-int64(n) >= of {
			return // no directory, such as an image, or read a second time
		}
		if progress.Set(cmdline.State{What: "loading", Bytes: now, AllBytes: of}); now >= of {
			progress.Close()
		}
	}
}

// LoadingDatabases returns a function that shows the progress of reading databases.
func (p *Program) LoadingDatabases() func(n, all int, pkg string) {
	progress := p.Progress()
	p.AtEnd = append(p.AtEnd, func(bool) error { progress.Close(); return nil })
	return func(n, all int, pkg string) {
		progress.Set(cmdline.State{What: "loading the database", Done: n, All: all, Units: "packages", Now: pkg})
		if all > 0 && n == all {
			progress.Close()
		}
	}
}

// sizeOf returns the size of the files of a directory; 0 for anything else.
func sizeOf(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipAll // the size is an estimate
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size
}

// transfer shows the progress of blobs that are read and written, unless the task is shown that they are for. It is
// safe for concurrent use.
type transfer struct {
	*cmdline.Progress

	mu    sync.Mutex
	tasks []*cmdline.Progress // that the blobs are for
	blobs map[string]int64    // the bytes that were transferred of each
	state cmdline.State
	open  int // blobs under way
}

// Moved returns the one progress of all blobs of the command, which is closed when the command ends.
func (p *Program) Moved() *transfer {
	if p.transfer == nil {
		p.transfer = &transfer{Progress: p.Progress(), blobs: map[string]int64{},
			state: cmdline.State{Units: "blobs"}}
		p.AtEnd = append(p.AtEnd, func(bool) error { p.transfer.Close(); return nil })
	}
	return p.transfer
}

// Event counts an event of reading or writing. The bar goes when no blob is under way.
func (t *transfer) Event(what string, e store.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := e.Destination + " " + string(e.Blob)
	before, known := t.blobs[id]
	switch {
	case e.Kind == store.EventBlobStart && !known:
		t.blobs[id] = 0
		t.open++
		t.state.All++
		t.state.AllBytes += e.Size
	case known && before >= 0 && e.Kind == store.EventBlobProgress:
		now := max(before, min(e.Done, e.Size))
		t.state.Bytes += now - before
		t.blobs[id] = now
	case known && before >= 0 && e.Kind == store.EventBlobDone:
		t.state.Bytes += e.Size - before
		t.blobs[id] = -1
		t.state.Done++
		t.open--
	default:
		return
	}
	if t.state.What != "" && t.state.What != what {
		what = "copying"
	}
	t.state.What = what
	if t.open == 0 || slices.ContainsFunc(t.tasks, (*cmdline.Progress).Open) {
		t.Close()
		return
	}
	t.Set(t.state)
}
