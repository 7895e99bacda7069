// Package imagetest opens images for tests.
package imagetest

import (
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
)

// Client returns a client that asks no policy, until the test ends.
func Client(t testing.TB) *images.Client {
	t.Helper()
	c, err := images.NewClient(images.ClientOptions{NoPolicy: true, Transports: library.Transports(images.BuiltIn()), Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Open opens an image on this machine for a platform, linux/amd64 by default, until the test ends.
func Open(t testing.TB, name string, p v1.Platform) *images.Image {
	t.Helper()
	img, err := Client(t).Image(t.Context(), name, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := img.Close(); err != nil {
			t.Error(err)
		}
	})
	return img
}

// Survey reads the manifests and configurations of an image. The image is open until the test ends.
func Survey(t testing.TB, c *images.Client, name string) (*images.Survey, error) {
	t.Helper()
	src, err := c.Open(t.Context(), name)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = src.Close() }) // the survey may have been closed
	return src.Survey(t.Context())
}

// Opened opens an image of a client until the test ends.
func Opened(t testing.TB, c *images.Client, name string) *images.Source {
	t.Helper()
	src, err := c.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	return src
}
