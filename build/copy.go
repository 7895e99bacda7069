package build

import (
	"context"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/transport"
)

// Copy copies the image to all destinations as [images.Copy] does, and records in [Options.Cache] which repositories
// have its layers. A cached layer may differ from its record, which is detected only when a destination reads its
// bytes. The image is then rebuilt without the cache, with another digest, and copied. Nothing else may use the image
// meanwhile.
func (i *Image) Copy(ctx context.Context, dests []transport.Destination, o images.CopyOptions) ([]images.Result, error) {
	var results []images.Result
	err := i.current(ctx, func() (err error) {
		results, err = images.Copy(ctx, i.Store(), i.Top(), dests, o)
		return err
	})
	if err == nil {
		i.pushed(results)
	}
	return results, err
}

// renew rebuilds the image without the cache.
func (i *Image) renew(ctx context.Context) error {
	if err := i.Close(); err != nil {
		return err
	}
	fresh, err := i.rebuild(ctx)
	if err != nil {
		return err
	}
	*i = *fresh
	return nil
}

// rebuilds lets [Image.Copy] rebuild the image if it has cached layers.
func (i *Image) rebuilds(o Options, again func(context.Context, Options) (*Image, error)) {
	if o.Cache == nil {
		return
	}
	o.Cache = nil
	i.warn = o.Warn
	i.rebuild = func(ctx context.Context) (*Image, error) { return again(ctx, o) }
}

// pushed records which repositories have the layers, so that later builds can mount them from there.
func (i *Image) pushed(results []images.Result) {
	if i.known == nil {
		return
	}
	layer := map[string]bool{}
	for _, l := range i.Layers {
		layer[l.Digest.String()] = true
	}
	for _, r := range results {
		at, err := images.BuiltIn().Parse(r.Destination)
		if err != nil || !at.InRegistry() {
			continue
		}
		ref, err := reference.ParseNormalizedNamed(at.Name)
		if err != nil {
			continue
		}
		for _, b := range r.Blobs {
			if layer[b.Digest.String()] {
				i.known.addRepository(b.Digest, ref.Name())
			}
		}
	}
}
