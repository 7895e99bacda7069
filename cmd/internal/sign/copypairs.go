package sign

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
)

// maxPairs is the largest list of images to copy, in bytes: the mapping of a mirror is one.
const maxPairs = limit.MaxMapping

// copyOutcome is what became of one image.
type copyOutcome struct {
	images.CopyResult
	// Error says why the image was not copied; empty if it was.
	Error string `json:"error,omitempty"`
}

// copyPairs copies images, jobs at a time. Those that go to one repository or path are copied one after the other:
// copies of one image to several tags would send the same, and contend for the same lists. The first failure ends all,
// but with --keep-going, where failed counts the images that are not copied.
func copyPairs(ctx context.Context, p *option.Session, keepGoing bool, pairs []imagePair, jobs int,
	one func(context.Context, imagePair) (images.CopyResult, error)) (all []copyOutcome, failed int, err error) {
	var places []string
	at := map[string][]int{}
	for i, pair := range pairs {
		place := pair.place()
		if at[place] == nil {
			places = append(places, place)
		}
		at[place] = append(at[place], i)
	}
	// Not the errgroup's context: its cause would be the error of another image.
	copying, cancel := context.WithCancel(ctx)
	defer cancel()
	all = make([]copyOutcome, len(pairs))
	var mu sync.Mutex
	var first error
	var g errgroup.Group
	g.SetLimit(jobs)
	for _, place := range places {
		g.Go(func() error {
			for _, i := range at[place] {
				if copying.Err() != nil {
					return nil
				}
				done, err := one(copying, pairs[i])
				all[i].CopyResult = done
				if err == nil {
					continue
				}
				mu.Lock()
				failed++
				if first == nil {
					first = err
				}
				mu.Unlock()
				if ctx.Err() != nil || !keepGoing {
					cancel()
					return nil
				}
				err = redact.Error(err)
				all[i].Source, all[i].Destination = redact.Text(pairs[i].source), pairs[i].destination.String()
				all[i].Error = err.Error()
				p.Log.Error(printable.Text(fmt.Sprintf("%s: not copied: %v", all[i].Destination, err)))
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return no errors
	switch {
	case ctx.Err() != nil:
		return nil, 0, errors.Join(context.Cause(ctx), first)
	case first != nil && (!keepGoing || failed == len(pairs)):
		return nil, 0, first
	}
	return all, failed, nil
}
