package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/migrate/jobs"
	"github.com/operator-bindery/bindery/render"
)

// settings returns the digests of the flags that the result of a line depends on: one for directories, one for images.
func (l *migrationList) settings(ctx context.Context) (func(*jobs.Line) string, error) {
	type common struct {
		Format, Level, Compat string
		Platform              string
		Repair                bool `json:",omitempty"`
	}
	base := common{
		Repair: l.m.o.Render.Repair,
		Format: string(l.m.o.Format), Level: string(l.m.o.Render.Level), Compat: string(l.m.o.Render.Compat),
	}
	if l.p.readPlatform.OS != "" {
		base.Platform = fmt.Sprint(l.p.readPlatform)
	}
	directory, err := digestOf(base)
	if err != nil {
		return nil, err
	}
	spec := l.m.spec
	image := struct {
		common
		Platforms, Labels, Annotations                any
		Image, Compression, Cache, Server, Base, Time string
		MaxLayers                                     int
	}{
		common: base, Platforms: spec.Platforms, Labels: spec.Build.Labels, Annotations: spec.Build.Annotations,
		Image: string(spec.Build.Format), Compression: string(spec.Build.Compression),
		Time: fmt.Sprint(spec.Build.Created.Unix()), MaxLayers: spec.Build.MaxLayers,
	}
	image.Cache = l.flags.cache
	imaged := false
	for _, line := range l.lines {
		imaged = imaged || len(line.Destinations) > 0
	}
	if !imaged {
		return func(*jobs.Line) string { return directory }, nil
	}
	if spec.Build.Base != nil {
		d, err := render.Describe(ctx, l.m.o.Render.Images, l.flags.base)
		if err != nil {
			return nil, fmt.Errorf("--binary-image: %w", err)
		}
		image.Base = d.Top.String()
	}
	if image.Server = spec.Server; image.Server != "" && image.Server != "base" && image.Server != "embedded" &&
		image.Server != "none" {
		if image.Server, err = fileSum(ctx, image.Server); err != nil {
			return nil, fmt.Errorf("--server: %w", err)
		}
	}
	withImage, err := digestOf(image)
	return func(line *jobs.Line) string {
		if len(line.Destinations) > 0 {
			return withImage
		}
		return directory
	}, err
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
