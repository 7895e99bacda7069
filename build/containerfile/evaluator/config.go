//go:build !nobuildah

package evaluator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	docker "github.com/fsouza/go-dockerclient"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/layers"
)

// parsedStage is the result of evaluating a Containerfile for one platform.
type parsedStage struct {
	Platform v1.Platform
	// Base is the name of the base image, with its digest if it is in a registry; empty for scratch.
	Base string
	// BaseName is the name of the base image in a registry as its stage gives it, with the host; empty for others.
	BaseName string
	// Layers are the layers above the base, from the bottom up. Stages of several platforms share layers with the same
	// content.
	Layers []*layers.Layer
	// Config is the configuration of the image.
	Config v1.ImageConfig

	s *stage
	e *Evaluator
}

// health is a health check in the docker format.
type health struct {
	Test          []string      `json:",omitempty"`
	Interval      time.Duration `json:",omitempty"`
	Timeout       time.Duration `json:",omitempty"`
	StartPeriod   time.Duration `json:",omitempty"`
	StartInterval time.Duration `json:",omitempty"`
	Retries       int           `json:",omitempty"`
}

// dockerConfig has the fields that only the docker format has.
type dockerConfig struct {
	v1.ImageConfig
	Healthcheck *health  `json:",omitempty"`
	OnBuild     []string `json:",omitempty"`
	Shell       []string `json:",omitempty"`
}

// baseConfig reads the configuration of a base image.
func baseConfig(text []byte) (c docker.Config, author string, err error) {
	var base struct {
		Author string       `json:"author"`
		Config dockerConfig `json:"config"`
	}
	if err := json.Unmarshal(text, &base); err != nil {
		return c, "", fmt.Errorf("configuration: %w", err)
	}
	of := base.Config
	c = docker.Config{
		User: of.User, Env: slices.Clone(of.Env), Cmd: of.Cmd, Entrypoint: of.Entrypoint, WorkingDir: of.WorkingDir,
		StopSignal: of.StopSignal,
		Labels:     cloneMap(of.Labels), Volumes: cloneMap(of.Volumes), ExposedPorts: map[docker.Port]struct{}{},
		OnBuild: of.OnBuild, Shell: of.Shell,
	}
	for port := range of.ExposedPorts {
		c.ExposedPorts[docker.Port(port)] = struct{}{}
	}
	if h := of.Healthcheck; h != nil {
		c.Healthcheck = &docker.HealthConfig{
			Test: h.Test, Interval: h.Interval, Timeout: h.Timeout, StartPeriod: h.StartPeriod,
			StartInterval: h.StartInterval, Retries: h.Retries,
		}
	}
	return c, base.Author, nil
}

// finish builds the result from the target stage.
func (v *evaluation) finish(_ context.Context, s *stage) (*parsedStage, error) {
	c := s.ib.RunConfig
	labels := cloneMap(c.Labels)
	maps.Copy(labels, v.o.Labels)
	out := &parsedStage{Platform: s.platform, Layers: s.layers, s: s, e: v.Evaluator, Config: v1.ImageConfig{
		User: c.User, Env: s.allEnv(), Cmd: c.Cmd, Entrypoint: c.Entrypoint, WorkingDir: c.WorkingDir,
		StopSignal: c.StopSignal,
		Labels:     labels, Volumes: c.Volumes,
	}}
	if len(c.ExposedPorts) > 0 {
		out.Config.ExposedPorts = map[string]struct{}{}
		for port := range c.ExposedPorts {
			out.Config.ExposedPorts[string(port)] = struct{}{}
		}
	}
	if s.image != nil {
		out.Base = s.image.image.Reference()
		if s.image.image.InRegistry() {
			out.BaseName = strings.TrimPrefix(s.image.image.Name, "docker://")
		}
	} else if len(out.Layers) == 0 {
		// Some readers refuse an image without layers.
		out.Layers = []*layers.Layer{{Name: "empty"}}
		if len(s.history) == 0 {
			created := v.o.created()
			s.history = append(s.history, v1.History{Created: &created, CreatedBy: "/bin/sh"})
		}
		s.markLayer()
	}
	if v.o.Format != build.FormatDocker {
		for _, lost := range []struct {
			name  string
			there bool
		}{{"HEALTHCHECK", c.Healthcheck != nil}, {"ONBUILD", len(c.OnBuild) > 0}, {"SHELL", len(c.Shell) > 0}} {
			if lost.there {
				v.warn(
					v.f.Name + ": " + lost.name +
						" is dropped: the oci format does not support it; use --format docker")
			}
		}
	}
	return out, nil
}

// ConfigText returns the JSON configuration of an image with the given diffIDs of all layers and the history of its
// base.
func (s *parsedStage) ConfigText(ids []digest.Digest, history []v1.History) ([]byte, error) {
	created := s.e.o.created()
	img := v1.Image{
		Created: &created, Author: s.s.author, Platform: s.Platform, Config: s.Config,
		RootFS: v1.RootFS{Type: "layers", DiffIDs: ids}, History: append(slices.Clone(history), s.s.history...),
	}
	if s.s.ib.Author != "" {
		img.Author = s.s.ib.Author
	}
	if s.e.o.Format != build.FormatDocker {
		return json.Marshal(img)
	}
	c := dockerConfig{ImageConfig: s.Config, OnBuild: s.s.ib.RunConfig.OnBuild, Shell: s.s.ib.RunConfig.Shell}
	if h := s.s.ib.RunConfig.Healthcheck; h != nil {
		c.Healthcheck = &health{h.Test, h.Interval, h.Timeout, h.StartPeriod, h.StartInterval, h.Retries}
	}
	return json.Marshal(struct {
		v1.Image
		Config dockerConfig `json:"config"`
	}{img, c})
}
