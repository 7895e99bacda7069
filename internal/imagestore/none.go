//go:build !linux || nobuildah || (cgo && !exclude_graphdriver_btrfs)

package imagestore

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/libimage"
)

// ErrStore is the class of errors about stores of images that cannot be used here.
var ErrStore = errors.New("the store of images cannot be used")

// errNoStore returns the reason why this program has no stores.
func errNoStore() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: containers-storage: is on Linux only", ErrStore)
	}
	return fmt.Errorf("%w: this build of bindery has none (tag nobuildah, or cgo without the tag "+
		"exclude_graphdriver_btrfs): that of \"make build\" has it", ErrStore)
}

// Store is an open store.
type Store struct{}

// Open fails.
func Open(context.Context, string) (*Store, error) { return nil, errNoStore() }

// Release does nothing.
func (h *Store) Release() error { return nil }

// NewReference fails.
func NewReference(Name) (types.ImageReference, error) { return nil, errNoStore() }

// Source is an image in a store.
type Source struct{ *libimage.Opened }

// OpenSource fails.
func OpenSource(context.Context, Name, string) (*Source, error) { return nil, errNoStore() }

// Original returns nothing.
func (*Source) Original() types.ImageSource { return nil }

// Identity returns nothing.
func (*Source) Identity() digest.Digest { return "" }

// Close does nothing.
func (*Source) Close() error { return nil }

// Output is an image that is written to a store.
type Output struct{}

// NewOutput fails.
func NewOutput(context.Context, Name, []byte) (*Output, error) {
	return nil, errNoStore()
}

// Reference fails.
func (out *Output) Reference() (types.ImageReference, error) { return nil, errNoStore() }

// Commit fails.
func (out *Output) Commit(context.Context) error { return errNoStore() }

// Discard does nothing.
func (out *Output) Discard() error { return nil }
