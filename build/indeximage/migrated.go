package indeximage

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
)

// Migrated are the inputs of the image of one migrated catalog.
type Migrated struct {
	// From describes the source image, nil if the source is not an image: its platforms, labels and annotations are
	// inherited.
	From *images.Description
	// Work is a private directory for the files of layers.
	Work string
	// Jobs and Warn are as in [build.Options] and [build.ReadOptions].
	Jobs int
	Warn func(declcfg.Position, string)
}

// Migrated builds the image of a prepared migration. The directory of the migration and m.Work must exist until the
// image has been copied.
func (s *Spec) Migrated(ctx context.Context, p *migrate.Prepared, m Migrated) (*build.Image, error) {
	root, err := declcfg.OpenDir(p.Dir())
	if err != nil {
		return nil, err
	}
	// A server would refuse an image with an invalid catalog.
	files, err := build.ReadCatalog(ctx, root,
		build.ReadOptions{Jobs: m.Jobs, Warn: m.Warn, Cache: s.Build.Cache, Program: s.Program})
	if err != nil {
		return nil, err
	}
	debug.FreeOSMemory() // free the memory of the loaded catalog and of the migration
	of, err := s.platformsOf(m.From)
	if err != nil {
		return nil, err
	}
	source := ""
	if m.From != nil {
		source = m.From.Name
	}
	o, err := s.optionsFor(ctx, of, source, m.Work)
	if err != nil {
		return nil, err
	}
	o.Source, o.Jobs = m.From, m.Jobs
	return build.Catalog(ctx, build.CatalogInput{FS: root, Files: files}, o)
}

// platformsOf returns the platforms of an image: the requested ones, or those of its source.
func (s *Spec) platformsOf(from *images.Description) ([]v1.Platform, error) {
	switch {
	case s.Platforms != nil:
		return s.Platforms, nil
	case from == nil:
		return []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}, nil
	}
	of, others := linuxPlatforms(from)
	for _, p := range others {
		s.Log.Warn(fmt.Sprintf("%s: skipped the platform %s/%s: catalogs are served on Linux", redact.Text(from.Name),
			p.OS, p.Architecture))
	}
	if len(of) == 0 {
		return nil, fmt.Errorf("%q has no Linux platform: set --platform", redact.Text(from.Name))
	}
	return of, nil
}

// CheckPlatforms checks that the source image holds the same catalog for all platforms of the new image. Verification
// needs this: the catalog was read for one platform. from may be nil.
func (s *Spec) CheckPlatforms(ctx context.Context, from *images.Description, o migrate.Options) error {
	if !o.Verify || from == nil || len(from.Variants) == 1 {
		return nil
	}
	of, err := s.platformsOf(from)
	if err != nil {
		return err
	}
	return render.SameOnAll(ctx, from, of, o.Render)
}

// CheckUnmoved fails if the tag of the source image moved between reading its labels and its content. from may be nil.
func CheckUnmoved(from *images.Description, r *migrate.Report) error {
	if from == nil {
		return nil
	}
	if _, now, named := strings.Cut(r.Image, "@sha256:"); named && "sha256:"+now != from.Top.String() {
		return fmt.Errorf("%q changed while it was read: from %s to sha256:%s", redact.Text(from.Name), from.Top, now)
	}
	return nil
}
