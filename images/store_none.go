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

func (n sourceName) storeReference() (types.ImageReference, error) { return nil, errNoStore() }

func (c *copier) prepareStored(context.Context, Destination, *Result) (prepared, error) {
	return nil, errNoStore()
}

func openStored(context.Context, sourceName, string) (types.ImageSource, error) {
	return nil, errNoStore()
}
