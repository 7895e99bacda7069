package registry

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Refusal is why a registry does not take what others take.
type Refusal string

// The refusals that differ for callers.
const (
	// RefusedSize is a blob or manifest that is too large, for the registry or for a proxy before it.
	RefusedSize Refusal = "size"
	// RefusedName is the name of a repository, such as one with too many components.
	RefusedName Refusal = "name"
	// RefusedRepository is a repository that does not exist and that the registry does not make.
	RefusedRepository Refusal = "repository"
)

// RefusedError is the error of a registry that takes something else than most.
type RefusedError struct {
	Why Refusal
	// Repository is HOST/PATH.
	Repository string
	// Digest and Size in bytes are those of the blob or manifest.
	Digest digest.Digest
	Size   int64
	Err    error
}

// Hint is what to change at the registry.
func (e *RefusedError) Hint() string {
	switch e.Why {
	case RefusedSize:
		return fmt.Sprintf("raise the limit of the registry, or of the proxy before it, above %d bytes, such as "+
			"nginx's client_max_body_size", e.Size)
	case RefusedRepository:
		return "make the repository " + e.Repository + " first, or have the registry make repositories on push"
	}
	return ""
}

func (e *RefusedError) Error() string {
	switch e.Why {
	case RefusedSize:
		return fmt.Sprintf("%s takes nothing as large as %s with %d bytes: %v", e.Repository, e.Digest, e.Size, e.Err)
	case RefusedName:
		return fmt.Sprintf("the registry takes no repository with a name as %s: %v", e.Repository, e.Err)
	}
	return fmt.Sprintf("the repository %s does not exist, and the registry does not make it: %v", e.Repository, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// classifyRefusal makes the answer to writing a blob or a manifest a [RefusedError] if it is one.
func (p *repository) classifyRefusal(d digest.Digest, size int64, err error) error {
	var answer *StatusError
	if !errors.As(err, &answer) {
		return err
	}
	// It answers the beginning of an upload or a manifest, and not the upload, which may be unknown to one of several
	// servers.
	begins := strings.HasPrefix(answer.Request, http.MethodPost+" ") || strings.Contains(answer.Request, "/manifests/")
	refusal := &RefusedError{Repository: p.name.Name(), Digest: d, Size: size, Err: err}
	switch {
	case hasStatus(err, http.StatusRequestEntityTooLarge), hasCode(err, "SIZE_INVALID", "BLOB_SIZE_EXCEEDED"):
		refusal.Why = RefusedSize
	case hasCode(err, "NAME_INVALID"),
		// Registries of two levels have no such address at all, and say nothing about it.
		hasStatus(err, http.StatusNotFound, http.StatusMethodNotAllowed) && begins && len(answer.Codes) == 0 &&
			strings.Count(p.path, "/") > 1:
		refusal.Why = RefusedName
	case hasCode(err, "NAME_UNKNOWN"), hasStatus(err, http.StatusNotFound) && begins &&
		!hasCode(err, "BLOB_UPLOAD_UNKNOWN", "MANIFEST_UNKNOWN", "MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN"):
		refusal.Why = RefusedRepository
	default:
		return err
	}
	return refusal
}
