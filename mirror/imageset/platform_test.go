package imageset_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/releases"
)

// parsePlatform reads an image set with the fields of a platform.
func parsePlatform(fields string) (*imageset.Set, error) {
	return imageset.Parse([]byte("kind: ImageSetConfiguration\nmirror:\n  platform: {"+fields+"}\n"), "f", imageset.Image,
		imageset.Options{})
}

func TestPlatform(t *testing.T) {
	s, err := parsePlatform("graph: true, kubeVirtContainer: true, architectures: [arm64, multi, arm64], channels: " +
		"[{name: stable-4.16, minVersion: 4.16.1, maxVersion: 4.16.2-rc.1, shortestPath: true}, {name: scos, type: okd, full: true}]")
	if err != nil {
		t.Fatal(err)
	}
	p := s.Platform
	want := []releases.Channel{{Name: "stable-4.16", Type: releases.OCP, MinVersion: "4.16.1", MaxVersion: "4.16.2-rc.1",
		ShortestPath: true}, {Name: "scos", Type: releases.OKD, Full: true}}
	if !p.Graph || !p.KubeVirt || !slices.Equal(p.Architectures, []string{"arm64", "multi"}) || !slices.Equal(p.Channels, want) {
		t.Errorf("%+v", p)
	}
	pinned := string(s.Pinned(imageset.Image, none, map[string]string{"stable-4.16": "4.16.2"}, nil))
	for _, text := range []string{"maxVersion: 4.16.2\n", "minVersion: 4.16.2\n", "type: okd", "full: true", "graph: true", "- multi"} {
		if !strings.Contains(pinned, text) {
			t.Errorf("no %q in\n%s", text, pinned)
		}
	}
	if strings.Contains(pinned, "shortestPath") {
		t.Errorf("a channel with one version has no path:\n%s", pinned)
	}
	if s, err := parsePlatform("release: h.io/o/ocp-release:4.16.1-x86_64, channels: [{name: a-1.2}]"); err != nil ||
		s.Platform.Release.Tag != "4.16.1-x86_64" || len(s.Warnings) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := parsePlatform("kubeVirtContainer: true"); err != nil || !s.Platform.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
}

// What oc-mirror takes and does not do, or fails on later, is an error that says what to write.
func TestFaultyPlatforms(t *testing.T) {
	for fields, messages := range map[string][]string{
		"channels: [{minVersion: 4.16.0}]":                                      {"release channel without a name"},
		"channels: [{name: a}, {name: a, type: okd}]":                           {`duplicate release channel entry "a"`},
		"channels: [{name: a, type: OCP}]":                                      {`type: "OCP" is no type of channels (ocp or okd)`},
		"channels: [{name: a, minVersion: '4.16'}]":                             {`minVersion: "4.16" is no version of a release`},
		"channels: [{name: a, maxVersion: v4.16.0}]":                            {`"v4.16.0" is no version of a release`},
		"channels: [{name: a, minVersion: 4.16}]":                               {"a number, expected a string"},
		"architectures: [x86_64]":                                               {`"x86_64" is no architecture of releases (one of amd64, arm64`},
		"architectures: [amd64], platforms: [{os: linux, architecture: amd64}]": {"architectures and platforms exclude each other"},
		"platforms: [{architecture: amd64}]":                                    {"OS and architecture must not be empty"},
		"release: registry.example.com/a/b":                                     {"tag and digest are empty"},
		"release: 'oci:///a/b'":                                                 {"names no registry"},
		"graph: 'yes'":                                                          {"expected"},
	} {
		_, err := parsePlatform(fields)
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: got %v", fields, err)
			continue
		}
		for _, text := range messages {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: no %q in %v", fields, text, err)
			}
		}
	}
	// The exclusion holds for deleting, too.
	_, err := imageset.Parse([]byte("kind: DeleteImageSetConfiguration\ndelete:\n  platform: {architectures: [amd64], "+
		"platforms: [{os: linux, architecture: amd64}]}\n"), "f", imageset.Delete, imageset.Options{})
	if err == nil || !strings.Contains(err.Error(), "delete.platform.platforms: architectures and platforms exclude") {
		t.Errorf("got %v", err)
	}
}
