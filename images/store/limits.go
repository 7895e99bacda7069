package store

import (
	"cmp"
	"fmt"
	"sync/atomic"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
)

// Limits bound what is read of the attachments of an image. A zero field means its default.
type Limits struct {
	// Count is the number of manifests, 10,000 by default.
	Count int
	// Manifests is the total size of these in bytes, 64 MiB by default.
	Manifests int64
	// Content is the size together in bytes of the blobs that are copied, 4 GiB by default.
	Content int64
	// Depth is how deep referrers have referrers, 3 by default.
	Depth int
}

// manifestsAtOnce is how many manifests are fetched concurrently.
const manifestsAtOnce = 8

// Budget counts what is read of an image against limits. Errors are of the class [fault.ErrLimit]. It is safe for
// concurrent use.
type Budget struct {
	// Limits are those that were given, with the defaults in place of zeros.
	Limits                    Limits
	count, manifests, content atomic.Int64
}

// NewBudget returns a budget of which nothing is used.
func (l Limits) NewBudget() *Budget {
	l.Count = cmp.Or(l.Count, reflist.MaxReferrers)
	l.Manifests = cmp.Or(l.Manifests, 64<<20)
	l.Content = cmp.Or(l.Content, 4<<30)
	l.Depth = cmp.Or(l.Depth, 3)
	return &Budget{Limits: l}
}

// TakeCount counts manifests that are listed.
func (b *Budget) TakeCount(n int) error {
	if !reserve(&b.count, int64(n), int64(b.Limits.Count)) {
		return fmt.Errorf("%w: more than %d", fault.ErrLimit, b.Limits.Count)
	}
	return nil
}

// TakeManifest counts a manifest of so many bytes.
func (b *Budget) TakeManifest(size int) error {
	if !reserve(&b.manifests, int64(size), b.Limits.Manifests) {
		return fmt.Errorf("%w: manifests of more than %d bytes", fault.ErrLimit, b.Limits.Manifests)
	}
	return nil
}

// TakeContent counts a blob of so many bytes. The error calls all blobs together what, such as "attachments".
func (b *Budget) TakeContent(size int64, what string) error {
	if !reserve(&b.content, size, b.Limits.Content) {
		return fmt.Errorf("%w: %s of more than %d bytes", fault.ErrLimit, what, b.Limits.Content)
	}
	return nil
}

// reserve adds a size to a sum, unless there is no room for it.
func reserve(sum *atomic.Int64, size, limit int64) bool {
	if sum.Add(size) <= limit {
		return true
	}
	sum.Add(-size)
	return false
}
