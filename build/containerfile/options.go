//go:build !nobuildah

package containerfile

import (
	"context"
	"io/fs"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
)

// Options say what a Containerfile is evaluated with. Dir is required.
type Options struct {
	// Dir is a private directory for temporary files. It must exist until the layers have been written.
	Dir string
	// Context is the directory that COPY and ADD take files of.
	Context string
	// IgnoreBeside is the path of the Containerfile, beside which there may be an ignore file of its own; it may be empty.
	IgnoreBeside string
	// Contexts are further directories by the names that --from knows them by.
	Contexts map[string]string
	// Args are the values of --build-arg.
	Args map[string]string
	// Target is the stage that becomes the image, by its name or number; the last one if empty.
	Target string
	// Labels are added to those of the image.
	Labels map[string]string
	// Format decides what can be in a configuration.
	Format build.Format
	// Created is the time of the image; 1970-01-01T00:00:00Z if zero.
	Created time.Time
	// Open opens an image that FROM or --from names. The caller closes nothing: that is done here.
	Open func(ctx context.Context, name string, p v1.Platform) (*images.Image, error)
	// Limits bound what is read of images and archives.
	Limits images.Limits
	// Warn, unless nil, is called for what is odd.
	Warn func(string)

	// fill makes what a server writes with --cache-only: [build.CatalogInput.ServeCache] but in tests.
	fill func(ctx context.Context, configs fs.FS, temp, dir string, kind build.ServeCache) ([]layers.Entry, error)
}

func (o *Options) created() time.Time {
	if o.Created.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return o.Created.UTC().Truncate(time.Second)
}
