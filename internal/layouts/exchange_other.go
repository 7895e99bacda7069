//go:build !linux

package layouts

import "syscall"

// errNotEmpty is how the system says that a rename would replace a directory that is not empty.
const errNotEmpty = syscall.ENOTEMPTY

func exchange(a, b string) error { return exchangeByRenames(a, b) }
