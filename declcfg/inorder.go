package declcfg

import (
	"cmp"
	"context"
	"errors"
	"runtime"
)

// ahead is how many units of work per job may be read or waiting to be handed over. It bounds the memory of a [Walk]; small
// files between large ones need room, or the jobs wait for each other.
const ahead = 16

// Of one file, pieceBlobs are handed over together, or fewer that have pieceBytes, and pieces of these wait at most. So a file
// need not be in memory as a whole to be walked through, while files of usual packages are parsed without waiting for those
// before them.
const (
	pieceBlobs = 256
	pieceBytes = 256 << 10
	pieces     = 6
)

// aheadBytes is how much of the documents of all files together may wait to be handed over in a [Walk].
const aheadBytes = 6 << 20

// inOrder reads units of work, such as files, in parallel, and hands over what they give in order. most is how many bytes of
// documents, about, may wait for that. The problems of all units are collected; any other error ends the work.
func inOrder[T any](ctx context.Context, o LoadOptions, units, most int,
	read func(ctx context.Context, d *docReader, unit int, hand func(T) error) error, emit func(T) error) error {
	jobs := cmp.Or(max(o.Jobs, 0), runtime.GOMAXPROCS(0))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	// piece is a part of a unit; the last one has what reading it ended with.
	type piece struct {
		blobs []T
		bytes int
		last  bool
		err   error
	}
	room := newMemoryBudget(ctx, most)
	defer room.stop()
	// A unit is begun only when less than jobs of them are being read, and less than ahead are read or waiting to be handed
	// over. So that many channels are enough, in turn.
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
					room.take(i, p.bytes)
					select {
					case results(i) <- p:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				var p piece
				err := read(ctx, d, i, func(b T) error {
					p.blobs, p.bytes = append(p.blobs, b), p.bytes+len(d.scratch)
					if len(p.blobs) < pieceBlobs && p.bytes < pieceBytes {
						return nil
					}
					full := p
					p = piece{}
					return hand(full)
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
		room.first(i)
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
			room.give(p.bytes)
			var problems *ValidationError
			if errors.As(p.err, &problems) {
				invalid.join(problems)
				continue
			}
			if p.err != nil {
				return p.err
			}
			if len(invalid.kept) > 0 {
				continue // what follows is read for its problems only
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
