package render

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/platform"
)

// SameOnAll checks that an image has the same database or catalog for all its images for the wanted platforms; none are
// all. Then one of them may be read for all. Images with the same layers are not read. Errors are a [*ReferenceError].
func SameOnAll(ctx context.Context, d *images.Description, wanted []v1.Platform, o Options) (err error) {
	prepared, done, err := o.prepare()
	if err != nil {
		return err
	}
	defer func() { err = closing(err, done) }()
	var first v1.Platform
	var firstSum []byte
	var seen [][]digest.Digest
	for _, v := range d.Variants {
		if !platform.Matches(v.Platform, wanted...) || slices.ContainsFunc(seen,
			func(layers []digest.Digest) bool { return slices.Equal(layers, v.Config.RootFS.DiffIDs) }) {
			continue
		}
		seen = append(seen, v.Config.RootFS.DiffIDs)
		if len(seen) == 1 {
			first = v.Platform
			continue // read only if there is another one to compare with
		}
		if firstSum == nil {
			if firstSum, err = contentSum(ctx, d.Name, first, prepared); err != nil {
				return &ReferenceError{d.Name, err}
			}
		}
		sum, err := contentSum(ctx, d.Name, v.Platform, prepared)
		if err == nil && string(sum) != string(firstSum) {
			err = fmt.Errorf("%w: %s and %s", ErrPlatformsDiffer, platform.Name(first), platform.Name(v.Platform))
		}
		if err != nil {
			return &ReferenceError{d.Name, err}
		}
	}
	return nil
}

// contentSum returns a digest of the database or catalog in the image of one platform.
func contentSum(ctx context.Context, name string, p v1.Platform, o *Options) (_ []byte, err error) {
	img, err := o.Images.Image(ctx, name, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	kind, dir, err := KindOfImage(img.Config.Config.Labels)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	if kind == DatabaseImage {
		limits := o.ImageLimits
		limits.File = cmp.Or(limits.File, maxDatabase)
		_, err = img.CopyFile(ctx, dir, h, images.ExtractOptions{Limits: limits, Temp: o.TempDir})
		return h.Sum(nil), err
	}
	if kind != CatalogImage {
		return nil, fmt.Errorf("cannot render %s: %w", kind, ErrNotAllowed)
	}
	tree, configs, err := extract(ctx, img, o, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	err = fs.WalkDir(configs, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := configs.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		content := sha256.New()
		if _, err := io.Copy(content, f); err != nil {
			return err
		}
		fmt.Fprintf(h, "%x %s\x00", content.Sum(nil), name)
		return nil
	})
	return h.Sum(nil), err
}
