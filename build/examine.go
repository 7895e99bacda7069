package build

import (
	"context"
	"errors"
	"fmt"

	"github.com/operator-bindery/bindery/images"
)

// Examine calls read with a survey of the image, which has no name. Nothing is copied, and layers are written or
// fetched as they are read. As for [Image.Copy], an image with a cached layer that differs from its record is rebuilt,
// and read is called again for the new one. Nothing else may use the image meanwhile.
func (i *Image) Examine(ctx context.Context, read func(*images.Survey) error) error {
	return i.current(ctx, func() (err error) {
		src, err := images.At(ctx, i.Store(), i.Top())
		if err != nil {
			return err
		}
		survey, err := src.Survey(ctx)
		if err != nil {
			return err
		}
		return read(survey)
	})
}

// current calls use, which reads the image, and calls it again if the image had to be rebuilt.
func (i *Image) current(ctx context.Context, use func() error) error {
	err := use()
	var stale *staleError
	if !errors.As(err, &stale) || i.rebuild == nil {
		return err
	}
	if i.warn != nil {
		i.warn(fmt.Sprintf("layer %s differs from the cache record: the image is rebuilt without the cache",
			stale.Layer))
	}
	if err := i.renew(ctx); err != nil {
		return err
	}
	return use()
}
