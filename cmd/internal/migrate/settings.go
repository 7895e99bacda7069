package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/migrate/jobs"
	"github.com/operator-bindery/bindery/render"
)

// directorySettings are the options that a migrated directory depends on. Records of earlier runs have the digest of its
// JSON form, as of that of [imageSettings]: if a name, the order or the form of a value changes, all lines are migrated
// again.
type directorySettings struct {
	Format, Level, Compat string
	Platform              string
	Repair                bool `json:",omitempty"`
}

// imageSettings are the options that the image of a migrated directory depends on.
type imageSettings struct {
	directorySettings
	Platforms, Labels, Annotations                any
	Image, Compression, Cache, Server, Base, Time string
	MaxLayers                                     int
}

// settings returns the digests of the flags that the result of a line depends on: one for directories, one for images.
func (l *migrationList) settings(ctx context.Context) (func(*jobs.Line) string, error) {
	base := directorySettings{Repair: l.m.o.Render.Repair,
		Format: string(l.m.o.Format), Level: string(l.m.o.Render.Level), Compat: string(l.m.o.Render.Compat)}
	if l.p.ReadPlatform.OS != "" {
		base.Platform = fmt.Sprint(l.p.ReadPlatform)
	}
	directory, err := digestOf(base)
	if err != nil {
		return nil, err
	}
	makesImage := func(line *jobs.Line) bool { return len(line.Destinations) > 0 }
	image := ""
	if slices.ContainsFunc(l.lines, func(line jobs.Line) bool { return makesImage(&line) }) {
		settings, err := l.imageSettings(ctx, base)
		if err != nil {
			return nil, err
		}
		if image, err = digestOf(settings); err != nil {
			return nil, err
		}
	}
	return func(line *jobs.Line) string {
		if makesImage(line) {
			return image
		}
		return directory
	}, nil
}

// imageSettings completes the settings of directories. The base and a server in a file are known by their digests.
func (l *migrationList) imageSettings(ctx context.Context, base directorySettings) (s imageSettings, err error) {
	spec := l.m.spec
	s = imageSettings{directorySettings: base,
		Platforms: spec.Platforms, Labels: spec.Build.Labels, Annotations: spec.Build.Annotations,
		Image: string(spec.Build.Format), Compression: string(spec.Build.Compression), Cache: l.flags.cache,
		Server: spec.Server, Time: fmt.Sprint(spec.Build.Created.Unix()), MaxLayers: spec.Build.MaxLayers}
	if spec.Build.Base != nil {
		d, err := render.Describe(ctx, l.m.o.Render.Images, l.flags.base)
		if err != nil {
			return s, fmt.Errorf("--binary-image: %w", err)
		}
		s.Base = d.Top.String()
	}
	if !slices.Contains([]string{"", "base", "embedded", "none"}, s.Server) {
		if s.Server, err = fileSum(ctx, s.Server); err != nil {
			return s, fmt.Errorf("--server: %w", err)
		}
	}
	return s, nil
}

// digestOf returns a digest of the JSON form of a value.
func digestOf(v any) (string, error) {
	text, err := json.Marshal(v)
	return digest.FromBytes(text).String(), err
}

// fileSum returns the digest of a file.
func fileSum(ctx context.Context, path string) (string, error) {
	f, err := regularfile.OpenSeekable(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, err := digest.FromReader(ctxio.Reader{Ctx: ctx, R: f})
	return sum.String(), err
}
