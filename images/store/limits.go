package store

import (
	"cmp"
	"fmt"
	"sync/atomic"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
)

// Limits bound what is read of that which is attached to an image. A zero field means its default.
type Limits struct {
	// Count is the number of manifests, 10,000 by default.
	Count int
	// Manifests is their size together in bytes, 64 MiB by default.
	Manifests int64
	// Content is the size together in bytes of the blobs that are copied, 4 GiB by default.
	Content int64
	// Depth is how deep referrers have referrers, 3 by default.
	Depth int
}

// WithDefaults returns the limits with the defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	l.Count = cmp.Or(l.Count, reflist.MaxReferrers)
	l.Manifests = cmp.Or(l.Manifests, 64<<20)
	l.Content = cmp.Or(l.Content, 4<<30)
	l.Depth = cmp.Or(l.Depth, 3)
	return l
}

// manifestsAtOnce is how many manifests are fetched concurrently.
const manifestsAtOnce = 8

// budget counts what is read of one image.
type budget struct {
	limits  Limits
	bytes   atomic.Int64
	content atomic.Int64
}

// take counts a manifest.
func (b *budget) take(size int) error {
	if b.bytes.Add(int64(size)) > b.limits.Manifests {
		return fmt.Errorf("%w: manifests of more than %d bytes", fault.ErrLimit, b.limits.Manifests)
	}
	return nil
}
