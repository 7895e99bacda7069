package declcfg

import (
	"cmp"
	"context"
	"errors"
	"runtime"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/guard"
)

// ahead is how many units of work per job may be read and not yet handed over. It bounds the memory of a [Walk]; it
// must be large enough for small files between large ones, or jobs wait for each other.
const ahead = 16

// pieceBlobs blobs of a file are handed over together, or fewer with pieceBytes, and the number of waiting pieces is
// limited. So a file need not be in memory completely, while files of usual packages are parsed without waiting for
// those before them.
const (
	pieceBlobs = 256
	pieceBytes = 256 << 10
	pieces     = 6
)

// aheadBytes is how many bytes of all documents together may wait to be handed over in a [Walk].
const aheadBytes = 6 << 20

// inOrder reads units of work, such as files, concurrently, and hands over the results in order. most is approximately
// how many bytes of documents may wait for that. The problems of all units are collected; any other error ends the
// work.
func inOrder[T any](ctx context.Context, o LoadOptions, units, most int,
	read func(ctx context.Context, d *docReader, unit int, hand func(T) error) error, emit func(T) error) error {
	jobs := cmp.Or(max(o.Jobs, 0), runtime.GOMAXPROCS(0))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o.expansion = &canon.Expansion{}
	w := &ordered[T]{ctx: ctx, units: units, room: newMemoryBudget(ctx, most), window: make(chan struct{}, ahead*jobs),
		turns: make([]chan piece[T], min(units, ahead*jobs))}
	defer w.room.stop()
	for i := range w.turns {
		w.turns[i] = make(chan piece[T], pieces)
	}
	next := make(chan int)
	go w.begin(next)
	for range jobs {
		go func() {
			d := newDocReader(o)
			defer d.close()
			for i := range next {
				if w.read(d, i, read) != nil {
					return
				}
			}
		}()
	}
	return w.emitAll(problemList{omitted: o.Omitted}, emit)
}

// piece is a part of a unit's result; the last one has the error of reading it.
type piece[T any] struct {
	blobs []T
	bytes int
	last  bool
	err   error
}

// ordered is the state that the goroutines of [inOrder] share: one begins units in order, several read them, and the
// caller's hands over their pieces in order.
type ordered[T any] struct {
	ctx   context.Context
	units int
	room  *memoryBudget // for the bytes of pieces that wait
	// window has one element for each unit that is begun and not yet handed over. A unit is begun only when fewer than
	// jobs of them are being read, and fewer than ahead for each job are waiting. So that many channels, used in turn,
	// suffice.
	window chan struct{}
	turns  []chan piece[T]
}

// results is where the pieces of a unit wait.
func (w *ordered[T]) results(unit int) chan piece[T] { return w.turns[unit%len(w.turns)] }

// begin sends the units to next, each when it may be begun.
func (w *ordered[T]) begin(next chan<- int) {
	defer close(next)
	for i := range w.units {
		select {
		case w.window <- struct{}{}:
		case <-w.ctx.Done():
			return
		}
		select {
		case next <- i:
		case <-w.ctx.Done():
			return
		}
	}
}

// read reads a unit in pieces. The error is that of the context: one of reading is in the last piece.
func (w *ordered[T]) read(d *docReader, unit int,
	read func(ctx context.Context, d *docReader, unit int, hand func(T) error) error) error {
	hand := func(p piece[T]) error {
		w.room.reserve(unit, p.bytes)
		select {
		case w.results(unit) <- p:
			return nil
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
	var p piece[T]
	err := guard.Call(func() error {
		return read(w.ctx, d, unit, func(b T) error {
			p.blobs, p.bytes = append(p.blobs, b), p.bytes+len(d.scratch)
			if len(p.blobs) < pieceBlobs && p.bytes < pieceBytes {
				return nil
			}
			full := p
			p = piece[T]{}
			return hand(full)
		})
	})
	p.last, p.err = true, err
	return hand(p)
}

// emitAll hands over the results of all units in order. After the first problem the rest is read for its problems only.
func (w *ordered[T]) emitAll(invalid problemList, emit func(T) error) error {
	for i := range w.units {
		w.room.setCurrent(i)
		for last := false; !last; {
			var p piece[T]
			select {
			case p = <-w.results(i):
			case <-w.ctx.Done():
				return w.ctx.Err()
			}
			if last = p.last; last {
				<-w.window
			}
			w.room.release(p.bytes)
			var problems *ValidationError
			if errors.As(p.err, &problems) {
				invalid.join(problems)
				continue
			}
			if p.err != nil {
				return p.err
			}
			if len(invalid.kept) > 0 {
				continue
			}
			for k, b := range p.blobs {
				if err := emit(b); err != nil {
					return err
				}
				var none T
				p.blobs[k] = none
			}
		}
	}
	return invalid.err()
}
