//go:build linux && cgo && buildah && exclude_graphdriver_btrfs

package fullbuild

import (
	"errors"

	"go.podman.io/common/libnetwork/types"
)

// noNetwork is a network backend for builds that use the network of the process: it sets up nothing. Without a backend
// the library looks for the program netavark even if no command is run.
type noNetwork struct{}

var errNoNetwork = errors.New("a build sets up no network: its commands use that of this process")

func (noNetwork) NetworkCreate(types.Network, *types.NetworkCreateOptions) (types.Network, error) {
	return types.Network{}, errNoNetwork
}
func (noNetwork) NetworkUpdate(string, types.NetworkUpdateOptions) error { return errNoNetwork }
func (noNetwork) NetworkRemove(string) error                             { return errNoNetwork }
func (noNetwork) NetworkList(...types.FilterFunc) ([]types.Network, error) {
	return nil, nil
}
func (noNetwork) NetworkInspect(string) (types.Network, error) { return types.Network{}, errNoNetwork }
func (noNetwork) Setup(string, types.SetupOptions) (map[string]types.StatusBlock, error) {
	return nil, errNoNetwork
}
func (noNetwork) Teardown(string, types.TeardownOptions) error { return nil }
func (noNetwork) RunInRootlessNetns(run func() error) error    { return run() }
func (noNetwork) Drivers() []string                            { return nil }
func (noNetwork) DefaultNetworkName() string                   { return "host" }
func (noNetwork) NetworkInfo() types.NetworkInfo               { return types.NetworkInfo{} }
func (noNetwork) RootlessNetnsInfo() (*types.RootlessNetnsInfo, error) {
	return nil, errNoNetwork
}
