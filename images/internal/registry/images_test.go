package registry_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// quick makes a client for tests: it is patient for fractions of a second only, and leaves no file behind.
func quick(t testing.TB, o images.ClientOptions) *images.Client {
	t.Helper()
	if o.Backoff == 0 {
		o.Backoff = time.Millisecond
	}
	if o.Stall == 0 {
		o.Stall = 30 * time.Second
	}
	o.Temp, o.Policy = t.TempDir(), policy.Read
	c, err := images.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(o.Temp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return c
}

// read is the catalog in an image.
func read(ctx context.Context, c *images.Client, name string) (string, error) {
	img, err := c.Image(ctx, name, v1.Platform{})
	if err != nil {
		return "", err
	}
	defer img.Close()
	tree, err := img.Extract(ctx, []string{"configs"}, images.ExtractOptions{Temp: ""})
	if err != nil {
		return "", err
	}
	defer tree.Close()
	text, err := fs.ReadFile(tree, "configs/a/catalog.yaml")
	return string(text), err
}

// on answers the requests whose path contains a text, times times; 0 is always.
func on(path string, times int32, answer http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	var n atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, path) || times > 0 && n.Add(1) > times {
			return false
		}
		answer(w, r)
		return true
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func insecure() registries.Config {
	yes := true
	return registries.Config{SkipTLSVerify: &yes, PlainHTTP: true, UserAgent: "bindery/test"}
}

// openOnce opens an image with a client, and closes it.
func openOnce(ctx context.Context, c *images.Client, name string) error {
	img, err := c.Image(ctx, name, v1.Platform{})
	if err != nil {
		return err
	}
	return img.Close()
}

// write makes a file and the directories above it.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// simple is a small image with a catalog.
func simple(catalog string) testregistry.Image {
	return testregistry.Image{Layers: []map[string]string{{"shared": "the same in all"},
		{"configs/a/catalog.yaml": catalog}}}
}

func newRemote(t testing.TB) *registries.Client {
	t.Helper()
	r, err := registries.New(t.Context(), registries.Options{Registry: insecure(), Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func repositoryOf(t testing.TB, r *registries.Client, name string) *registries.Repository {
	t.Helper()
	repository, err := r.Repository(name)
	if err != nil {
		t.Fatal(err)
	}
	return repository
}
