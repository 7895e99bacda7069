//go:build !linux

package atomicfs

import "errors"

// NewMemory fails: memory files exist on Linux only.
func NewMemory(string) (*Scratch, error) { return nil, errors.ErrUnsupported }
