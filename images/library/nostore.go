//go:build !linux || nobuildah || (cgo && !exclude_graphdriver_btrfs)

package library

import (
	"context"
	"fmt"
	"runtime"

	"github.com/operator-bindery/bindery/images/transport"
)

// errNoStore returns the reason why this program has no stores.
func errNoStore() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: containers-storage: is on Linux only", ErrStore)
	}
	return fmt.Errorf("%w: this build of bindery has none (tag nobuildah, or cgo without the tag "+
		"exclude_graphdriver_btrfs): that of \"make build\" has it", ErrStore)
}

func openStored(context.Context, string, string, transport.Options) (*transport.Place, error) {
	return nil, errNoStore()
}

func fillStore(context.Context, string, string, transport.Content) (*transport.Filled, error) {
	return nil, errNoStore()
}

func holdStore(context.Context, string) (release func() error, err error) { return nil, errNoStore() }
