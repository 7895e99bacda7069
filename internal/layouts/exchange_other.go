//go:build !linux

package layouts

import "syscall"

// errNotEmpty is the error of a rename onto a directory that is not empty.
const errNotEmpty = syscall.ENOTEMPTY

func exchange(a, b string) error { return exchangeByRenames(a, b) }
