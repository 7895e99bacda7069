package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/cliutil"
)

// catalogImageFlags say what the image of a migrated catalog is. --platform is among the flags of what is read.
func catalogImageFlags() []cli.Flag {
	const group = "image"
	return []cli.Flag{
		&cli.StringFlag{Name: "binary-image", Usage: "`IMAGE` that the server and everything else comes from", DefaultText: "an empty image with this program's server", Category: group},
		&cli.StringFlag{Name: "server", Category: group, DefaultText: "that of the binary image, if it starts one",
			Usage: "who serves: static program `FILE`, \"base\" for /bin/opm of the binary image, \"embedded\" for this program's, \"none\""},
		&cli.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` label, over those of the source", Category: group},
		&cli.StringSliceFlag{Name: "annotation", Usage: "`KEY=VALUE` annotation of the manifest, over those of the source", Category: group},
		&cli.StringFlag{Name: "format", Value: "oci", Usage: "`FORMAT` of the manifest (oci|docker)", Category: group},
		&cli.StringFlag{Name: "compression", Value: "gzip", Usage: "`CODEC` of the layers (gzip|zstd)", Category: group},
		&cli.StringFlag{Name: "cache", Value: "native", Usage: "`KIND` of serve cache in the image (native|none)", Category: group},
		&cli.IntFlag{Name: "max-layers", Value: 100, Usage: "at most `N` layers, those of the binary image included", Category: group},
	}
}

// catalogImage makes images of catalog directories. It is safe for concurrent use.
type catalogImage struct {
	p         *program
	c         *cli.Context
	o         build.Options // as far as all images have them in common
	platforms []v1.Platform // that were asked for

	mu      sync.Mutex
	servers map[string]build.Server
}

// catalogImage reads [catalogImageFlags].
func (p *program) catalogImage(c *cli.Context) (*catalogImage, error) {
	i := &catalogImage{p: p, c: c, servers: map[string]build.Server{}}
	var err error
	if i.o, err = p.buildOptions(c); err != nil {
		return nil, err
	}
	switch c.String("cache") {
	case "native":
		i.o.Cache = p.nativeCache
	case "none":
	default:
		return nil, cliutil.Usagef("invalid --cache value %q, expected (native|none)", c.String("cache"))
	}
	if len(c.StringSlice("platform")) > 0 {
		if i.platforms, err = platforms(c); err != nil {
			return nil, err
		}
	}
	if base := c.String("binary-image"); base != "" && base != "scratch" {
		client, err := p.client(c)
		if err != nil {
			return nil, err
		}
		if i.o.Base, err = client.Reference(base); err != nil {
			return nil, &cliutil.Error{Class: cliutil.ClassUsage, Object: base, Err: err}
		}
	} else if c.String("server") == "base" {
		return nil, cliutil.Usagef("--server base: there is no --binary-image that could have a server")
	}
	return i, nil
}

// assemble makes the image of the catalog in a directory, in the directory work. from describes the image that the catalog
// comes from, nil if it comes from none: its platforms and its labels are kept. The caller closes the image.
func (i *catalogImage) assemble(ctx context.Context, dir, work string, from *images.Description, jobs int, events func(build.Layer)) (*build.Image, error) {
	root, err := declcfg.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	catalog, err := declcfg.Load(ctx, root, declcfg.LoadOptions{Skeleton: true, Jobs: jobs, Warn: i.p.warnAt})
	if err != nil {
		return nil, err
	}
	// An image that is not valid would not be served.
	if err := declcfg.Validate(catalog); err != nil {
		return nil, err
	}
	files, err := build.FilesOf(catalog)
	if err != nil {
		return nil, err
	}
	catalog = nil
	debug.FreeOSMemory() // what was loaded, and what the migration took
	o := i.o
	o.Dir, o.Jobs, o.Events = work, jobs, events
	if o.System, err = registryOptions(i.c).System(work); err != nil {
		return nil, err
	}
	of, err := i.platformsOf(from)
	if err != nil {
		return nil, err
	}
	if from != nil {
		o.Kept, o.KeptAnnotations = kept(from), keptAnnotations(from.Annotations)
	}
	if err := i.settleServer(&o, of); err != nil {
		return nil, err
	}
	return build.Catalog(ctx, build.CatalogInput{FS: root, Files: files}, o)
}

// platformsOf are the platforms of the image: those that were asked for, else those of what it comes from.
func (i *catalogImage) platformsOf(from *images.Description) ([]v1.Platform, error) {
	if i.platforms != nil {
		return i.platforms, nil
	}
	if from == nil {
		return []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}, nil
	}
	var out []v1.Platform
	for _, v := range from.Variants {
		if v.Platform.OS != "linux" {
			i.p.log.Warn(fmt.Sprintf("%s: left out the platform %s/%s: catalogs are served on Linux", images.WithoutCredentials(from.Name), v.Platform.OS, v.Platform.Architecture))
			continue
		}
		out = append(out, v1.Platform{OS: v.Platform.OS, Architecture: v.Platform.Architecture, Variant: v.Platform.Variant})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%q is for no platform of Linux: --platform says which the catalog is for", images.WithoutCredentials(from.Name))
	}
	return out, nil
}

// settleServer reads --server. Without it a binary image that starts opm serves, and else this program's server does.
func (i *catalogImage) settleServer(o *build.Options, of []v1.Platform) error {
	o.Platforms = of
	switch server := i.c.String("server"); server {
	case "base":
		o.BaseServer = true
		return nil
	case "none":
		return nil
	case "", "embedded":
		if server == "" && o.Base != nil {
			o.ServerOf = i.embedded
			return nil
		}
		for _, platform := range of {
			s, err := i.embedded(platform)
			if err != nil {
				return err
			}
			o.Servers = append(o.Servers, s)
		}
		return nil
	}
	var err error
	o.Servers, err = i.p.servers(i.c, of)
	return err
}

// embedded is this program's server, found once for all images.
func (i *catalogImage) embedded(platform v1.Platform) (build.Server, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := platform.OS + "/" + platform.Architecture + "/" + platform.Variant
	if s, ok := i.servers[key]; ok {
		return s, nil
	}
	s, err := i.p.embeddedServer(platform)
	var known *cliutil.Error
	if errors.As(err, &known) {
		known.Hint = "--platform linux/" + runtime.GOARCH + " leaves the other platforms out; --binary-image names an image with a server"
	}
	if err == nil {
		i.servers[key] = s
	}
	return s, err
}

// kept is what images take over of the image that their catalog comes from: what it has for the platform, or for its first
// one where it has none.
func kept(from *images.Description) func(v1.Platform) build.Kept {
	return func(p v1.Platform) build.Kept {
		v := from.Variants[0]
		for _, other := range from.Variants {
			if other.Platform.OS == p.OS && other.Platform.Architecture == p.Architecture && other.Platform.Variant == p.Variant {
				v = other
			}
		}
		return build.Kept{Labels: v.Config.Config.Labels, Annotations: keptAnnotations(v.Annotations)}
	}
}

// staleAnnotations begin annotations that are about the very manifest they stand in: when and of what it was made, and what
// tools noted for themselves.
var staleAnnotations = [...]string{
	v1.AnnotationBaseImageDigest, v1.AnnotationBaseImageName, v1.AnnotationCreated, v1.AnnotationRefName,
	"com.docker.", "vnd.docker.", "containerd.io/", "io.containerd.", "io.buildah.", "io.podman.", "io.github.containers.", "dev.cosign", "dev.sigstore.",
}

// keptAnnotations leaves out what is not true of an image that is made anew.
func keptAnnotations(all map[string]string) map[string]string {
	out := map[string]string{}
next:
	for key, value := range all {
		for _, stale := range staleAnnotations {
			if strings.HasPrefix(key, stale) {
				continue next
			}
		}
		out[key] = value
	}
	return out
}
