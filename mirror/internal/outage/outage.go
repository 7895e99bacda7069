// Package outage decides which errors of a mirror end the run: those that all further images would have, too.
package outage

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// errGone is the class of errors about a registry that is gone.
var errGone = errors.New("the run cannot go on")

// Fatal tells whether an error is one that all further images would have, too: this machine has no more space, or the
// target has not. Then no bundle is taken out of a catalog for it. The same holds for a file that is larger than a segment
// of an archive may be.
func Fatal(err error) bool {
	return errors.Is(err, errGone) || errors.Is(err, medium.ErrTooLarge) || DiskFull(err) ||
		!ofSource(err) && registryFull(err)
}

// DiskFull tells whether this machine has no more space.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// registryFull tells whether a registry answers that it has no more space.
func registryFull(err error) bool {
	var s *registries.StatusError
	return errors.As(err, &s) && s.NoSpace
}

// ofSource tells whether an error is one of the place that images come from.
func ofSource(err error) bool {
	var source *store.SourceError
	return errors.As(err, &source)
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

// Counter counts, by registry, the images in a row that failed because it is unavailable. It is safe for concurrent
// use. The zero value is ready.
type Counter struct {
	mu     sync.Mutex
	failed map[string]int
}

// Outcome is what became of an image. Read tells that its source was read, if Err is nil.
type Outcome struct {
	Source, Target string // registries
	Read           bool
	Err            error
}

// Count counts the outcome of an image. It returns an error that ends the run if a registry is gone.
func (c *Counter) Count(o Outcome) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = map[string]int{}
	}
	switch {
	case o.Err == nil:
		if o.Read {
			delete(c.failed, o.Source)
		}
		delete(c.failed, "to "+o.Target)
		return nil
	case !unavailable(o.Err):
		return nil
	}
	key := "to " + o.Target
	if ofSource(o.Err) {
		key = o.Source
	}
	if c.failed[key]++; c.failed[key] < tooMany {
		return nil
	}
	return fmt.Errorf("%w: %d images in a row failed: %w", errGone, tooMany, o.Err)
}
