package hint

import (
	"errors"

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
	case errors.As(err, &refused) && refused.Why == registries.RefusedName:
		return "for a registry whose repositories have few components set --max-nested-paths, such as 2"
	}
	return ""
}
