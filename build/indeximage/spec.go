package indeximage

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
)

// Spec has the options that images have in common. It is safe for concurrent use.
type Spec struct {
	// Build are the options of all images. Dir, Source, Platforms, Previous and the server are set per image.
	Build build.Options
	// Platforms are the requested platforms; nil means those of the source.
	Platforms []v1.Platform
	// AnyPlatform takes the catalog of one platform for all of them, without comparing.
	AnyPlatform bool
	// Server is the server program, see [build.Options.SetServer], with the servers in Embedded.
	Server   string
	Embedded *build.Embedded
	// Previous is the image whose grouping of layers is kept.
	Previous Previous
	// Images reads the previous image and source images through Registry.
	Images   *images.Client
	Registry registries.Config
	// Program identifies the validating program, see [build.ReadOptions].
	Program string
	Log     *slog.Logger
}

// Previous is an earlier image of the same catalog.
type Previous struct {
	Name string
	// Trusted skips verifying the content of its layers against its annotations.
	Trusted bool
	// FromSource uses the source image if no name is given: its registry has the unchanged layers. It is for images
	// that are pushed to a registry.
	FromSource bool
}

// Read reads the named image; nil without a name, or if the image does not exist.
func (p Previous) Read(ctx context.Context, client *images.Client, log *slog.Logger) (*build.Previous, error) {
	if p.Name == "" {
		return nil, nil
	}
	previous, err := build.ReadPrevious(ctx, client, p.Name)
	switch {
	case err != nil:
		return nil, err
	case previous == nil:
		log.Warn(fmt.Sprintf("image %s does not exist and is ignored", redact.Text(p.Name)))
		return nil, nil
	case len(previous.Groups) == 0:
		log.Warn(
			fmt.Sprintf("image %s has no layer annotations: it has the docker format or was built by another program",
				redact.Text(p.Name)))
	}
	previous.Trusted = p.Trusted
	return previous, nil
}

// ReadOr works like Read. If there is no previous image, the layers of the source image are reused, but its grouping is
// not: packages are grouped as in a new image.
func (p Previous) ReadOr(ctx context.Context, source string, client *images.Client,
	log *slog.Logger) (*build.Previous, error) {
	if p.Name != "" || !p.FromSource || render.CheckName(source) != nil {
		return p.Read(ctx, client, log)
	}
	lender, err := build.ReadPrevious(ctx, client, source)
	if err != nil || lender == nil {
		// The error is only logged: without reusable layers more bytes are transferred.
		log.Debug("the source has no reusable layers", "image", redact.Text(source), "error", fmt.Sprint(err))
		return nil, context.Cause(ctx)
	}
	lender.Groups = nil
	return lender, nil
}

// optionsFor returns the options of the image of one catalog, for these platforms, of this source, in the directory
// dir.
func (s *Spec) optionsFor(ctx context.Context, of []v1.Platform, source, dir string) (_ build.Options, err error) {
	o := s.Build
	o.Dir = dir
	if o.Previous, err = s.Previous.ReadOr(ctx, source, s.Images, s.Log); err != nil {
		return o, err
	}
	return o, o.SetServer(s.Server, of, s.Embedded)
}

// Edited returns the options of the image of an edited index. With inherit the image takes over labels and annotations
// of the source image. It fails with [render.ErrPlatformsDiffer] if the source has a different catalog for one of the
// platforms, unless AnyPlatform is set.
func (s *Spec) Edited(ctx context.Context, x *Index, from string, inherit bool, dir string,
	ro render.Options) (o build.Options, err error) {
	of := s.Platforms
	var d *images.Description
	source := ""
	if x.Image != nil {
		source = x.Image.Name
		if d, err = s.Images.Describe(ctx, from); err != nil {
			return o, err
		}
		if of == nil {
			of, _ = linuxPlatforms(d)
		}
	}
	if len(of) == 0 {
		of = []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}
	}
	if d != nil && !s.AnyPlatform {
		if err := render.SameOnAll(ctx, d, append(slices.Clone(of), x.Image.Platform), ro); err != nil {
			return o, err
		}
	}
	if o, err = s.optionsFor(ctx, of, source, dir); err == nil && inherit {
		o.Source = d
	}
	return o, err
}

// linuxPlatforms are the platforms of an image that a catalog can be served on, and the other ones.
func linuxPlatforms(d *images.Description) (linux, others []v1.Platform) {
	for _, v := range d.Variants {
		p := platform.Plain(v.Platform)
		if p.OS == "linux" {
			linux = append(linux, p)
		} else {
			others = append(others, p)
		}
	}
	return linux, others
}
