//go:build !linux

package atomicfs

import "errors"

// NewMemory makes a [Scratch] in memory, which only Linux has.
func NewMemory(string) (*Scratch, error) { return nil, errors.ErrUnsupported }
