// Package counted tells when the last user of something that is to be closed has gone.
package counted

import "sync"

// Users counts who uses something. The zero value has no users. It is safe for concurrent use.
type Users struct {
	mu      sync.Mutex
	n       int
	retired bool
}

// Acquire counts one more; false when [Users.Retire] was called, and then there is nothing to release.
func (u *Users) Acquire() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.retired {
		u.n++
	}
	return !u.retired
}

// Release takes a user back. It reports whether it was the last of something retired, which the caller then closes.
func (u *Users) Release() (last bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	return u.retired && u.n == 0
}

// Retire lets nobody in any more. It reports whether nobody is left, and then the caller closes; true at most once.
func (u *Users) Retire() (last bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	last = !u.retired && u.n == 0
	u.retired = true
	return last
}
