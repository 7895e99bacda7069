package images

import (
	"context"
	"errors"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/types"
)

// SurveySource is [Client.Survey] for a source of any transport, such as an image that was assembled and is not written
// yet. No policy and no lock is asked. It closes the source with the survey, also after an error.
func SurveySource(ctx context.Context, src types.ImageSource) (_ *Survey, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, src.Close())
		}
	}()
	out := &Survey{src: src, Repository: repositoryOf(src)}
	if err := out.read(ctx, &Image{src: src}, func(digest.Digest) (*admission, error) { return nil, nil }); err != nil {
		return nil, err
	}
	return out, nil
}

// repositoryOf returns the repository in the reference of a source; empty if it has none.
func repositoryOf(src types.ImageSource) string {
	if ref := src.Reference(); ref != nil {
		if named := ref.DockerReference(); named != nil {
			return named.Name()
		}
	}
	return ""
}
