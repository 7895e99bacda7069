package hint

import (
	"errors"
	"fmt"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
)

// registryHint advises on registries that take something else than most.
func registryHint(err error) string {
	var refused *registries.RefusedError
	var sparse *store.SparseError
	switch {
	case errors.As(err, &sparse) && sparse.ByDigest:
		return "mirror all platforms of the image, or to a registry that takes indexes without all their images: " +
			"--sparse trim cannot replace an index that is named by its digest"
	case errors.As(err, &sparse):
		return "--sparse trim writes an index of the platforms that are kept, which has another digest; without " +
			"platforms in the image set all are mirrored"
	case errors.Is(err, registries.ErrNoDelete):
		return "allow deleting in the configuration of the registry, such as REGISTRY_STORAGE_DELETE_ENABLED=true"
	case !errors.As(err, &refused):
		return ""
	}
	switch refused.Why {
	case registries.RefusedSize:
		return fmt.Sprintf("raise the limit of the registry, or of the proxy before it, above %d bytes, such as "+
			"nginx's client_max_body_size", refused.Size)
	case registries.RefusedName:
		return "for a registry whose repositories have few components set --max-nested-paths, such as 2"
	case registries.RefusedRepository:
		return "make the repository " + refused.Repository + " first, or have the registry make repositories on push"
	}
	return ""
}
