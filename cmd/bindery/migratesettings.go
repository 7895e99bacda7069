package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/operator-bindery/bindery/internal/jobs"
	"github.com/operator-bindery/bindery/render"
)

// settings are the digests of the flags that the result of a line depends on: one for directories, one for images.
func (l *migrationList) settings() (func(*jobs.Line) string, error) {
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
	i := l.m.image
	image := struct {
		common
		Platforms, Labels, Annotations                any
		Image, Compression, Cache, Server, Base, Time string
		MaxLayers                                     int
	}{
		common: base, Platforms: i.platforms, Labels: i.o.Labels, Annotations: i.o.Annotations,
		Image: string(i.o.Format), Compression: string(i.o.Compression), Time: fmt.Sprint(i.o.Created.Unix()), MaxLayers: i.o.MaxLayers,
	}
	caches, err := serveCaches(l.c)
	if err != nil {
		return nil, err
	}
	image.Cache = strings.Join(caches, ",")
	imaged := false
	for _, line := range l.lines {
		imaged = imaged || len(line.Destinations) > 0
	}
	if !imaged {
		return func(*jobs.Line) string { return directory }, nil
	}
	if i.o.Base != nil {
		d, err := render.Describe(l.c.Context, l.m.o.Render.Images, l.c.String("binary-image"))
		if err != nil {
			return nil, fmt.Errorf("--binary-image: %w", err)
		}
		image.Base = d.Top.String()
	}
	if image.Server = l.c.String("server"); image.Server != "" && image.Server != "base" && image.Server != "embedded" && image.Server != "none" {
		if image.Server, err = fileSum(image.Server); err != nil {
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

// digestOf is a digest of the JSON of a value.
func digestOf(v any) (string, error) {
	text, err := json.Marshal(v)
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), err
}

// fileSum is the digest of a file.
func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
