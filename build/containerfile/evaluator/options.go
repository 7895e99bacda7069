//go:build !nobuildah

package evaluator

import (
	"context"
	"io/fs"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
)

// Options configure an [Evaluator]. Dir is required.
type Options struct {
	// Dir is a private directory for temporary files. It must exist until the layers have been written.
	Dir string
	// Context is the directory that COPY and ADD read.
	Context string
	// IgnoreBeside is the path of the Containerfile, next to which an ignore file is looked for. It may be empty.
	IgnoreBeside string
	// Contexts are additional directories by their name in --from.
	Contexts map[string]string
	// Args are the values of --build-arg.
	Args map[string]string
	// Target is the name or number of the stage that becomes the image; empty means the last one.
	Target string
	// Labels are added to those of the image.
	Labels map[string]string
	// Format is the format of the configuration, docker or OCI.
	Format build.Format
	// Created is the creation time of the image; 1970-01-01T00:00:00Z if zero.
	Created time.Time
	// Open opens an image that FROM or --from names. The evaluator closes the images.
	Open func(ctx context.Context, name string, p v1.Platform) (*images.Image, error)
	// Limits bound what is read from images and archives.
	Limits images.Limits
	// Warn, unless nil, is called with each warning.
	Warn func(string)

	// fill builds the serve cache that RUN asks the server in the image for with --cache-only. It is
	// [build.CatalogInput.ServeCache], which tests replace.
	fill func(ctx context.Context, configs fs.FS, temp, dir string, kind build.ServeCache) ([]layers.Entry, error)
}

func (o *Options) created() time.Time {
	if o.Created.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return o.Created.UTC().Truncate(time.Second)
}
