//go:build !linux || !cgo || !buildah || !exclude_graphdriver_btrfs

package fullbuild

import (
	"context"
	"io"
)

// Available reports whether this program can run commands.
const Available = false

// Init returns false: this program starts no processes for builds.
func Init() bool { return false }

// Enter does nothing: there are no commands to run.
func Enter(io.Reader) (status int, done bool, err error) { return 0, false, ErrUnavailable }

// Build fails with [ErrUnavailable].
func Build(context.Context, Request) (*Result, error) { return nil, ErrUnavailable }
