package registry

import (
	"errors"
	"net/http"
	"strings"

	"github.com/docker/distribution/registry/api/errcode"
	"go.podman.io/image/v5/docker"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Wrap makes an error one of [fault.ErrRegistry]. Its text is unchanged.
func Wrap(err error) error { return classified{err} }

type classified struct{ error }

func (e classified) Unwrap() []error { return []error{fault.ErrRegistry, e.error} }

// RefusesTag tells whether an error is a registry's refusal to show a tag. It says nothing of whether there is one.
func RefusesTag(err error) bool {
	var answer *StatusError
	return errors.As(err, &answer) && answer.unauthorized() && strings.Contains(answer.Request, "/manifests/") &&
		!strings.Contains(answer.Request, "/manifests/sha256:")
}

// IsUnauthorized tells whether an error is a registry's refusal of the credentials, or of there being none.
func IsUnauthorized(err error) bool {
	var answer *StatusError
	var unauthorized docker.ErrUnauthorizedForCredentials
	var status docker.UnexpectedHTTPStatusError
	var coded errcode.Error
	switch {
	case errors.As(err, &answer):
		return answer.unauthorized()
	case errors.As(err, &unauthorized):
		return true
	case errors.As(err, &status):
		return status.StatusCode == http.StatusUnauthorized || status.StatusCode == http.StatusForbidden
	case errors.As(err, &coded):
		return coded.Code == errcode.ErrorCodeUnauthorized || coded.Code == errcode.ErrorCodeDenied
	case err == nil:
		return false
	}
	// The library does not export its type for a refusal without a JSON body.
	return strings.Contains(err.Error(), "StatusCode: 401,") || strings.Contains(err.Error(), "StatusCode: 403,")
}
