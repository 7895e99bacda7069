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

	// piece is a part of a unit's result; the last one has the error of reading it.
	type piece struct {
		blobs []T
		bytes int
		last  bool
		err   error
	}
	o.expansion = &canon.Expansion{}
	room := newMemoryBudget(ctx, most)
	defer room.stop()
	// A unit is begun only when fewer than jobs of them are being read, and fewer than ahead are waiting to be handed
	// over. So that many channels, used in turn, suffice.
	window := make(chan struct{}, ahead*jobs)
	turns := make([]chan piece, min(units, ahead*jobs))
	for i := range turns {
		turns[i] = make(chan piece, pieces)
	}
	results := func(i int) chan piece { return turns[i%len(turns)] }
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range units {
			select {
			case window <- struct{}{}:
			case <-ctx.Done():
				return
			}
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	for range jobs {
		go func() {
			d := newDocReader(o)
			defer d.close()
			for i := range next {
				hand := func(p piece) error {
					room.reserve(i, p.bytes)
					select {
					case results(i) <- p:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				var p piece
				err := guard.Call(func() error {
					return read(ctx, d, i, func(b T) error {
						p.blobs, p.bytes = append(p.blobs, b), p.bytes+len(d.scratch)
						if len(p.blobs) < pieceBlobs && p.bytes < pieceBytes {
							return nil
						}
						full := p
						p = piece{}
						return hand(full)
					})
				})
				p.last, p.err = true, err
				if hand(p) != nil {
					return
				}
			}
		}()
	}

	invalid := problemList{omitted: o.Omitted}
	for i := range units {
		room.setCurrent(i)
		for last := false; !last; {
			var p piece
			select {
			case p = <-results(i):
			case <-ctx.Done():
				return ctx.Err()
			}
			if last = p.last; last {
				<-window
			}
			room.release(p.bytes)
			var problems *ValidationError
			if errors.As(p.err, &problems) {
				invalid.join(problems)
				continue
			}
			if p.err != nil {
				return p.err
			}
			if len(invalid.kept) > 0 {
				continue // the rest is read for its problems only
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
