package mirror

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// errFatal is the class of errors that end a run.
var errFatal = errors.New("the run cannot go on")

// fatal tells whether an error is one that all further images would have, too: this machine has no more space, or the
// target has not. Then no bundle is taken out of a catalog for it. Nor is it for one that is too large for a segment
// of an archive (MIRROR 10.2).
func fatal(err error) bool {
	return errors.Is(err, errFatal) || errors.Is(err, medium.ErrTooLarge) || diskFull(err) || !ofSource(err) && registryFull(err)
}

// registryFull tells whether a registry answers that it has no more space.
func registryFull(err error) bool {
	var s *registries.StatusError
	return errors.As(err, &s) && s.NoSpace
}

// originError is an error of opening an image where it comes from.
type originError struct{ error }

func (e *originError) Unwrap() error { return e.error }

// ofSource tells whether an error is one of the place that images come from.
func ofSource(err error) bool {
	var opening *originError
	var reading *store.SourceError
	return errors.As(err, &opening) || errors.As(err, &reading)
}

// unavailable tells whether an error is that of a registry which does not answer, or fails, whatever the request.
func unavailable(err error) bool {
	var s *registries.StatusError
	if errors.As(err, &s) {
		return s.Status >= http.StatusInternalServerError || s.Status == http.StatusTooManyRequests
	}
	var n net.Error
	return errors.As(err, &n)
}

// tooMany is after how many images in a row a registry counts as one that is gone. An image or two that a registry
// cannot give are the fault of these; with so many all others would be left out of the catalogs as well, after all
// retries.
const tooMany = 32

// troubles counts, by registry, the images in a row that failed because it is unavailable.
type troubles struct {
	mu sync.Mutex
	of map[string]int
}

// note counts the outcome of an image, and returns an error that ends the run if a registry is gone.
func (t *troubles) note(i *item, target string, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]int{}
	}
	switch {
	case err == nil && i.account.Status == Copied:
		delete(t.of, i.source.Host)
		fallthrough
	case err == nil:
		delete(t.of, "to "+target)
		return nil
	case !unavailable(err):
		return nil
	}
	key := "to " + target
	if ofSource(err) {
		key = i.source.Host
	}
	if t.of[key]++; t.of[key] < tooMany {
		return nil
	}
	return fmt.Errorf("%w: %d images in a row failed: %w", errFatal, tooMany, err)
}
