package web

import (
	"slices"
	"sync"
)

// recent keeps what was read last, up to a sum of sizes, and at least one. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	most int64

	mu   sync.Mutex
	list []*recentOne[K, V] // the latest last
	size int64
}

type recentOne[K comparable, V any] struct {
	key  K
	size int64
	read func() (V, error)
}

// get returns what is kept of a key, or reads and keeps it. Of concurrent calls for a key one reads.
func (r *recent[K, V]) get(key K, size int64, read func() (V, error)) (V, error) {
	r.mu.Lock()
	var one *recentOne[K, V]
	if at := slices.IndexFunc(r.list, func(one *recentOne[K, V]) bool { return one.key == key }); at >= 0 {
		one = r.list[at]
		r.list = slices.Delete(r.list, at, at+1)
	} else {
		one = &recentOne[K, V]{key, size, sync.OnceValues(read)}
		r.size += size
	}
	r.list = append(r.list, one)
	for r.size > r.most && len(r.list) > 1 {
		r.size -= r.list[0].size
		r.list = slices.Delete(r.list, 0, 1)
	}
	r.mu.Unlock()
	return one.read()
}
