package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/render"
)

// editImageFlags say what the image of an edited index is.
func editImageFlags() []cli.Flag {
	const group = "what"
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "platform", Usage: "`OS/ARCH` of the image; several make an index", DefaultText: "those of the index that is edited, else this machine's", Category: group},
		&cli.StringFlag{Name: "binary-image", Aliases: []string{"base"}, Usage: "`IMAGE` that the server comes from, with everything else in it", DefaultText: "an empty image with this program's server", Category: group},
		&cli.StringFlag{Name: "server", Category: group, DefaultText: "that of the binary image, if it starts one",
			Usage: "who serves: static program `FILE`, \"base\" for /bin/opm of the binary image, \"embedded\" for this program's, \"none\""},
		outputFormatFlag(),
		&cli.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` label", Category: group},
		&cli.StringSliceFlag{Name: "annotation", Usage: "`KEY=VALUE` annotation of the manifest", Category: group},
		&cli.StringFlag{Name: "format", Value: "oci", Usage: "`FORMAT` of the manifest (oci|docker)", Category: group},
		&cli.StringFlag{Name: "compression", Value: "gzip", Usage: "`CODEC` of the layers (gzip|zstd|auto); auto is an index with an image of each", Category: group},
		serveCacheFlag(group),
		&cli.IntFlag{Name: "max-layers", Value: 100, Usage: "at most `N` layers, those of the binary image included; container engines take some 125", Category: group},
		previousFlag(group), trustFlag(group),
		allowEmptyFlag(group),
	}
}

// imageOf settles for which platforms the image is, who serves, and what it keeps of the image that it comes from.
func (p *program) imageOf(c *cli.Context, i imageEdit, e *editedIndex, o *build.Options) error {
	of, err := platforms(c)
	if err != nil {
		return err
	}
	if e.opened != nil {
		name := e.opened.Name
		if c.String("lock") != "" {
			name = i.from // stands for the same, and is in the lock file already
		}
		d, err := p.images.Describe(c.Context, name)
		if err != nil {
			return err
		}
		if !c.IsSet("platform") {
			of = platformsOf(d, of)
		}
		if err := p.sameOnAll(c, d, append(slices.Clone(of), e.opened.Platform)); err != nil {
			return err
		}
		if i.takeOver {
			o.Kept, o.KeptAnnotations = keptOf(d)
		}
	}
	source := ""
	if e.opened != nil {
		source = e.opened.Name
	}
	if o.Previous, err = p.readSource(c, source); err != nil {
		return err
	}
	return p.settleServer(c, o, of)
}

// sameOnAll refuses an index that holds something else for one of the platforms than for another: what was read of one of
// them would take the place of all.
func (p *program) sameOnAll(c *cli.Context, d *images.Description, of []v1.Platform) error {
	o, err := p.bundleOptions(c)
	if err != nil {
		return err
	}
	err = render.SameOnAll(c.Context, d, func(p v1.Platform) bool {
		return slices.ContainsFunc(of, func(w v1.Platform) bool {
			return w.OS == p.OS && w.Architecture == p.Architecture && w.Variant == p.Variant
		})
	}, o)
	if errors.Is(err, render.ErrPlatformsDiffer) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: d.Name, Err: err, Hint: "--platform chooses one of them"}
	}
	return err
}

// platformsOf are the platforms of an image that a catalog can be served on.
func platformsOf(d *images.Description, otherwise []v1.Platform) []v1.Platform {
	var out []v1.Platform
	for _, v := range d.Variants {
		if v.Platform.OS == "linux" {
			out = append(out, v1.Platform{OS: v.Platform.OS, Architecture: v.Platform.Architecture, Variant: v.Platform.Variant})
		}
	}
	if len(out) == 0 {
		return otherwise
	}
	return out
}

// keptOf is what an image takes over of another one: the labels of each platform, in any variant if it is not there in the
// wanted one, and those of the first for platforms that the other one lacks.
func keptOf(d *images.Description) (func(v1.Platform) build.Kept, map[string]string) {
	return func(p v1.Platform) build.Kept {
		v, best := d.Variants[0], 0
		for _, other := range d.Variants {
			fits := 0
			if other.Platform.OS == p.OS && other.Platform.Architecture == p.Architecture {
				fits = 1
				if other.Platform.Variant == p.Variant {
					fits = 2
				}
			}
			if fits > best {
				v, best = other, fits
			}
		}
		return build.Kept{Labels: v.Config.Config.Labels, Annotations: keptAnnotations(v.Annotations)}
	}, keptAnnotations(d.Annotations)
}

// settleServer reads --server. Without it a binary image that starts opm serves, and else this program's server does.
func (p *program) settleServer(c *cli.Context, o *build.Options, of []v1.Platform) error {
	o.Platforms = of
	server := c.String("server")
	switch server {
	case "base":
		if o.Base == nil {
			return cmdline.Usagef("--server base: there is no --binary-image that could have a server")
		}
		o.BaseServer = true
		return nil
	case "none":
		return nil
	case "", "embedded":
		if server == "" && o.Base != nil {
			o.ServerOf = p.embeddedServer
			return nil
		}
		for _, platform := range of {
			s, err := p.embeddedServer(platform)
			if err != nil {
				return noServer(err)
			}
			o.Servers = append(o.Servers, s)
		}
		return nil
	}
	var err error
	o.Servers, err = p.servers(c, of)
	return err
}

// noServer tells what helps where there is no server for a platform.
func noServer(err error) error {
	return &cmdline.Error{Class: cmdline.Classify(err), Err: err,
		Hint: "--platform linux/" + runtime.GOARCH + " leaves the other platforms out; --binary-image names an image with a server"}
}

// tellBase tells what came of the binary image.
func (p *program) tellBase(c *cli.Context, image *build.Image) {
	base := c.String("binary-image")
	if base == "" || base == "scratch" {
		return
	}
	switch {
	case image.BaseServer != "":
		p.log.Info(fmt.Sprintf("%s of %s serves the index", image.BaseServer, base))
	case c.String("server") == "":
		p.log.Warn(fmt.Sprintf("%s does not start opm: this program's own server was put on top of it (--server base, if it has one as /bin/opm)", base))
	}
	if len(image.Hidden) > 0 {
		p.log.Warn(fmt.Sprintf("%s is an index itself: its %s is not seen in the new one, but is still in the layers that come from it", base, strings.Join(image.Hidden, " and ")))
	}
}
