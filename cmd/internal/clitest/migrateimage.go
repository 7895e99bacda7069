package clitest

import (
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// DatabaseImage returns an index image for one architecture, with distinct labels and annotations.
func DatabaseImage(t *testing.T, db, arch string) testregistry.Image {
	t.Helper()
	return testregistry.Image{
		Platform: v1.Platform{OS: "linux", Architecture: arch},
		Labels: map[string]string{
			build.DatabaseLabel: "/database/index.db", "com.example.arch": arch, "maintainer": "acme",
		},
		Annotations: map[string]string{"com.example.note": arch, v1.AnnotationCreated: "2020-01-01T00:00:00Z",
			v1.AnnotationBaseImageName: "old"},
		Layers: []map[string]string{{"bin/opm": "#!/bin/sh\n"}, {"database/index.db": ReadFile(t, db)}},
	}
}
