package checkup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/inspect"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/images"
)

// facts returns what rules know of an image.
func (c *checkup) facts(ctx context.Context, client *images.Client, img *images.Image) (*rules.Image, error) {
	d, err := client.Describe(ctx, img.Name)
	if err != nil {
		return nil, err
	}
	out := &rules.Image{Name: img.Name, Digest: d.Top, Index: d.Index, Labels: img.Config.Config.Labels,
		Annotations: map[string]string{}}
	maps.Copy(out.Annotations, d.Annotations)
	maps.Copy(out.Annotations, img.Annotations)
	for _, v := range d.Variants {
		out.Platforms = append(out.Platforms, v.Platform.OS+"/"+v.Platform.Architecture)
	}
	if !c.Pull {
		return out, nil
	}
	if out.Programs, err = c.programs(ctx, img); err != nil {
		return nil, err
	}
	return out, c.base(ctx, client, out)
}

// base reads the labels and the programs of the base image that the annotations name.
func (c *checkup) base(ctx context.Context, client *images.Client, out *rules.Image) (err error) {
	ref := out.BaseReference()
	if ref == "" {
		return nil
	}
	img, err := client.Image(ctx, ref, v1.Platform{})
	if err != nil {
		return fmt.Errorf("base image: %w", err)
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	if out.BaseLabels = img.Config.Config.Labels; out.BaseLabels == nil {
		out.BaseLabels = map[string]string{}
	}
	out.BasePrograms, err = c.programs(ctx, img)
	return err
}

// programs counts the files of an image that are named as the programs of a catalog image.
func (c *checkup) programs(ctx context.Context, img *images.Image) (map[string]int, error) {
	r := images.NewLayerReader(c.extract().Limits)
	there := map[string]bool{}
	for n := range img.Layers {
		_, err := r.Read(ctx, img, n, func(name string, h *tar.Header, _ io.Reader) error {
			dir, base := path.Split(name)
			if hidden, ok := strings.CutPrefix(base, ".wh."); ok {
				gone := dir + hidden
				if base == ".wh..wh..opq" {
					gone = path.Clean(dir)
				}
				for at := range there {
					if at == gone || strings.HasPrefix(at, gone+"/") {
						delete(there, at)
					}
				}
			} else if base == "opm" || base == "grpc_health_probe" {
				if h.Typeflag == tar.TypeDir {
					delete(there, name)
				} else {
					there[name] = h.Typeflag == tar.TypeReg || base != "opm"
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("image %q: %w", img.Name, err)
		}
	}
	out := map[string]int{}
	for name, counts := range there {
		if counts {
			out[path.Base(name)]++
		}
	}
	return out, nil
}

// catalogImage checks the catalog in the directory of an image.
func (c *checkup) catalogImage(ctx context.Context, img *images.Image, dir string, facts *rules.Image) (err error) {
	view, err := inspect.ViewCatalog(ctx, img, dir, c.Render.ImageLimits)
	if err != nil {
		return err
	}
	var links []rules.Finding
	for _, l := range view.Irregular {
		links = append(links, rules.Finding{File: l.File, Message: kindOfEntry(l.Kind)})
	}
	for _, d := range view.Differences {
		facts.Differences = append(facts.Differences, rules.Finding{File: d.File, Message: d.Message})
	}
	tree, err := img.Extract(ctx, []string{dir}, images.ExtractOptions{Limits: c.Render.ImageLimits,
		Temp: c.Render.TempDir})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && len(links) == 0:
		return fmt.Errorf("unpack image %q: %w", img.Name, err)
	case err != nil:
		return c.catalog(ctx, none, facts, links)
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	if _, err := fs.Stat(tree, dir); err != nil {
		return c.catalog(ctx, none, facts, nil)
	}
	configs, err := fs.Sub(tree, dir)
	if err != nil {
		return err
	}
	return c.catalog(ctx, configs, facts, nil)
}

func kindOfEntry(flag byte) string {
	switch flag {
	case tar.TypeSymlink:
		return "the file is a symbolic link"
	case tar.TypeLink:
		return "the file is a hard link"
	}
	return "the file is neither a regular file nor a directory"
}
