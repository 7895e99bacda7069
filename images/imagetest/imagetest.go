// Package imagetest opens images for tests.
package imagetest

import (
	"testing"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/registries"
)

// Client returns a client that asks no policy, until the test ends.
func Client(t testing.TB) *images.Client {
	t.Helper()
	c, err := images.NewClient(images.ClientOptions{NoPolicy: true, Options: registries.Options{Temp: t.TempDir()},
		Transports: library.Transports(images.BuiltIn())})
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
