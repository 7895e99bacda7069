package render

import (
	"context"

	"github.com/operator-bindery/bindery/images"
)

// Describe returns the platforms and labels of an image. A name that is not a full image name is refused, as in
// [Options.Render]. Errors are a [*ReferenceError].
func Describe(ctx context.Context, client *images.Client, ref string) (*images.Description, error) {
	if err := checkName(ref, client.Transports()); err != nil {
		return nil, &ReferenceError{ref, err}
	}
	d, err := client.Describe(ctx, ref)
	if err != nil {
		return nil, &ReferenceError{ref, err}
	}
	return d, nil
}
