//go:build !linux || !cgo || !buildah

package fullbuild

import (
	"context"
	"io"
)

// Available reports whether this program can run commands.
const Available = false

// Init is to be called first in main. It is true if the program was started by itself for a part of a build, which is done
// then: main must return.
func Init() bool { return false }

// Enter sets up the namespaces of a build: see the function of the same name in full builds.
func Enter(io.Reader) (status int, done bool, err error) { return 0, false, ErrUnavailable }

// Build refuses.
func Build(context.Context, Request) (*Result, error) { return nil, ErrUnavailable }
