//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore

import (
	"context"
	"errors"

	transport "go.podman.io/image/v5/storage"
)

// PolicyNames returns the name of an image in policies, and the more general names, the most specific first
// (containers-policy.json(5), "containers-storage:"). Both have the directory of the store: they are empty if it cannot
// be opened, which is an error where the image is read.
func PolicyNames(n Name) (identity string, namespaces []string) {
	store, err := Open(context.Background(), n.Place)
	if err != nil {
		return "", nil
	}
	ref, err := transport.Transport.ParseStoreReference(store.Store, n.Image)
	if err == nil {
		identity, namespaces = ref.PolicyConfigurationIdentity(), ref.PolicyConfigurationNamespaces()
	}
	if err = errors.Join(err, store.Release()); err != nil {
		return "", nil
	}
	return identity, namespaces
}
