//go:build !linux || nobuildah

package images

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"go.podman.io/image/v5/types"
)

// ErrStore is the class of errors about stores of images that cannot be used here.
var ErrStore = errors.New("the store of images cannot be used")

// errNoStore says why this program has no stores of images.
func errNoStore() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: containers-storage: is on Linux only", ErrStore)
	}
	return fmt.Errorf("%w: this build of bindery has none (tag nobuildah): that of \"make build\" has it", ErrStore)
}

type heldStore struct{}

func holdStore(context.Context, string) (*heldStore, error) { return nil, errNoStore() }

func (h *heldStore) release() error { return nil }

func newStoreReference(storeName) (types.ImageReference, error) { return nil, errNoStore() }

func openStored(context.Context, storeName, string) (types.ImageSource, error) {
	return nil, errNoStore()
}

// storeOutput is an image that is written to a store.
type storeOutput struct{}

func newStoreOutput(context.Context, storeName, []byte) (*storeOutput, error) {
	return nil, errNoStore()
}

func (out *storeOutput) reference() (types.ImageReference, error) { return nil, errNoStore() }

// Commit fails.
func (out *storeOutput) Commit(context.Context) error { return errNoStore() }

// Discard does nothing.
func (out *storeOutput) Discard() error { return nil }
