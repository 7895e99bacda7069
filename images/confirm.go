package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/docker/distribution/registry/api/errcode"
	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"
)

// ErrRegistry is the class of errors of a push that are neither of the image nor of the local machine.
var ErrRegistry = errors.New("registry")

// registryError gives an error of a push its class and leaves its text.
type registryError struct{ error }

func (e registryError) Is(target error) bool { return target == ErrRegistry }
func (e registryError) Unwrap() error        { return e.error }

// confirm reads back what was pushed: a server that says yes to everything is no registry. Who may write and not read is
// believed.
func (c *copier) confirm(ctx context.Context, ref types.ImageReference, sys *types.SystemContext, d digest.Digest) error {
	named, err := reference.WithDigest(reference.TrimNamed(ref.DockerReference()), d)
	if err != nil {
		return err
	}
	pushed, err := docker.NewReference(named)
	if err != nil {
		return err
	}
	src, err := pushed.NewImageSource(ctx, sys)
	if IsUnauthorized(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading back what was pushed: %w", err)
	}
	defer src.Close()
	text, _, err := src.GetManifest(ctx, nil)
	if err != nil {
		return fmt.Errorf("reading back what was pushed: %w", err)
	}
	if same, err := manifest.MatchesDigest(text, d); err != nil || !same {
		return fmt.Errorf("%w: %s does not return what was pushed to it: it begins with %.80q", ErrIntegrity, named, text)
	}
	return nil
}

// IsUnauthorized tells whether an error is a registry's refusal of the credentials, or of there being none.
func IsUnauthorized(err error) bool {
	var unauthorized docker.ErrUnauthorizedForCredentials
	var status docker.UnexpectedHTTPStatusError
	var coded errcode.Error
	switch {
	case errors.As(err, &unauthorized):
		return true
	case errors.As(err, &status):
		return status.StatusCode == http.StatusUnauthorized || status.StatusCode == http.StatusForbidden
	case errors.As(err, &coded):
		return coded.Code == errcode.ErrorCodeUnauthorized || coded.Code == errcode.ErrorCodeDenied
	case err == nil:
		return false
	}
	// The library's type for a refusal without a body in JSON is its own.
	return strings.Contains(err.Error(), "StatusCode: 401,") || strings.Contains(err.Error(), "StatusCode: 403,")
}
