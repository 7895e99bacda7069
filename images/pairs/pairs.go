// Package pairs reads lists of images to copy, and copies them.
package pairs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/guard"
)

// Pair is an image to copy and the place it goes to.
type Pair struct {
	Source      string
	Destination transport.Destination
}

// Place returns where the image goes: the repository, or the path.
func (i Pair) Place() string {
	if !i.Destination.InRegistry() {
		return i.Destination.Path
	}
	name, _, _ := strings.Cut(i.Destination.Name, "@")
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		name = name[:at]
	}
	return name
}

// Read reads a list of images to copy. Each line has a source and a destination, with blanks or one "=" between
// them; "#" begins a comment. parse reads a destination. Errors name the file and the line. Two images with one
// destination are an error, and so is a list without an image.
func Read(text, file string, transports transport.Table, parse func(string) (transport.Destination, error)) (
	pairs []Pair, err error) {
	places := map[string]bool{}
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, " #")
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Fields(line)
		if len(parts) == 1 {
			parts = strings.SplitN(line, "=", 2)
		}
		if len(parts) != 2 {
			return nil, fmt.Errorf("%s:%d: expected a source and a destination", file, n+1)
		}
		d, err := parse(parts[1])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
		}
		place := d.String()
		if row := transports.Row(d.Transport); row.Files && !row.Many {
			place = d.Path // it holds one image
		}
		if places[place] {
			return nil, fmt.Errorf("%s:%d: %s is the destination of two images", file, n+1, place)
		}
		places[place] = true
		pairs = append(pairs, Pair{parts[0], d})
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("%s names no image", file)
	}
	return pairs, nil
}

// Copy copies images, jobs at a time, by calling copy, concurrently, with the index of each. Those that go to one
// repository or path are copied one after the other: copies of one image to several tags would send the same, and
// contend for the same lists. The first failure ends all, but with keepGoing, where failed counts the images that are
// not copied and it is an error only if none is.
func Copy(ctx context.Context, pairs []Pair, jobs int, keepGoing bool, copy func(context.Context, int) error) (
	failed int, err error) {
	var places []string
	at := map[string][]int{}
	for i, pair := range pairs {
		place := pair.Place()
		if at[place] == nil {
			places = append(places, place)
		}
		at[place] = append(at[place], i)
	}
	// Not the context of Each: its cause would be the error of another image.
	copying, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var first error
	err = guard.Each(copying, jobs, places, func(_ context.Context, _ int, place string) error {
		for _, i := range at[place] {
			if copying.Err() != nil {
				return nil
			}
			err := copy(copying, i)
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
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return 0, errors.Join(context.Cause(ctx), first)
	case first != nil && (!keepGoing || failed == len(pairs)):
		return 0, first
	}
	return failed, err // of a panic
}
