//go:build !linux || !cgo || !buildah || !exclude_graphdriver_btrfs

package fullbuild

import (
	"errors"
	"strings"
	"testing"
)

// The error of a program that cannot run commands names the build that can.
func TestUnavailable(t *testing.T) {
	_, err := Build(t.Context(), Request{})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "make build-full") || Available {
		t.Errorf("got %v", err)
	}
	if _, done, err := Enter(nil); done || !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %t, %v", done, err)
	}
}
