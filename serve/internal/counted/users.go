// Package counted counts the users of a resource, so that it is closed after the last of them.
package counted

import "sync"

// Users counts the users of a resource. The zero value has none. It is safe for concurrent use.
type Users struct {
	mu      sync.Mutex
	n       int
	retired bool
}

// Acquire adds a user. It returns false after [Users.Retire]; then there is nothing to release.
func (u *Users) Acquire() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.retired {
		u.n++
	}
	return !u.retired
}

// Release removes a user. It reports whether this was the last one after Retire: the caller then closes the resource.
func (u *Users) Release() (last bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	return u.retired && u.n == 0
}

// Retire refuses new users. It reports whether there are none left: the caller then closes the resource. It returns
// true at most once.
func (u *Users) Retire() (last bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	last = !u.retired && u.n == 0
	u.retired = true
	return last
}
