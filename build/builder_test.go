package build

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/layers"
)

// servable is a catalog that can be served.
var servable = os.DirFS("../testdata/fbc/mini")

// A builder builds the image that its options describe, and leaves no files behind.
func TestBuilder(t *testing.T) {
	temp := t.TempDir()
	b, err := New(WithTempDir(temp), WithServer(ServerNone), WithServeCaches(), WithPlatforms("linux/arm64"),
		WithLabels(map[string]string{"a": "b"}))
	if err != nil {
		t.Fatal(err)
	}
	img, err := b.Catalog(t.Context(), servable)
	if err != nil {
		t.Fatal(err)
	}
	want := catalog(t, CatalogInput{FS: servable},
		Options{Platform: img.Platforms[0].Platform, Labels: map[string]string{"a": "b"}})
	if img.Digest != want.Digest || img.Platforms[0].Platform.Architecture != "arm64" {
		t.Errorf("%s for %v instead of %s", img.Digest, img.Platforms[0].Platform, want.Digest)
	}
	at, err := images.BuiltIn().Parse("oci:" + filepath.Join(t.TempDir(), "out") + ":v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := img.Copy(t.Context(), []transport.Destination{at}, images.CopyOptions{}); err != nil {
		t.Error(err)
	}
	if err := img.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestBuilderRefuses(t *testing.T) {
	for name, opts := range map[string][]Option{
		"platform":       {WithPlatforms("plan9/386")},
		"format":         {WithFormat("tar")},
		"docker's codec": {WithFormat(FormatDocker), WithCompression(layers.Zstd)},
		"cache":          {WithServeCaches("fast")},
		"two caches":     {WithServeCaches(ServeCacheJSON, ServeCachePogreb)},
	} {
		if _, err := New(opts...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	temp := t.TempDir()
	for name, c := range map[string]struct {
		opts []Option
		fsys fs.FS
		is   func(error) bool
	}{
		"empty": {[]Option{WithServer(ServerNone)}, fstest.MapFS{}, func(err error) bool {
			var empty *declcfg.EmptyError
			return errors.As(err, &empty)
		}},
		"invalid": {[]Option{WithServer(ServerNone)},
			fstest.MapFS{"a/c.yaml": {Data: []byte("schema: olm.package\nname: a\ndefaultChannel: none\n")}},
			func(err error) bool {
				var invalid *declcfg.ValidationError
				return errors.As(err, &invalid)
			}},
		"no server": {[]Option{WithPlatforms("linux/riscv64")}, servable, func(err error) bool {
			var server *ServerError
			return errors.As(err, &server) && errors.Is(err, ErrNoServer) && server.Platform.Architecture == "riscv64"
		}},
		"server of no base": {[]Option{WithServer(ServerBase)}, servable, func(err error) bool { return err != nil }},
		"server for two": {[]Option{WithServer("x"), WithPlatforms("linux/amd64", "linux/arm64")}, servable,
			func(err error) bool {
				var server *ServerError
				return errors.As(err, &server)
			}},
		"no file": {[]Option{WithServer(filepath.Join(temp, "absent")), WithPlatforms("linux/" + runtime.GOARCH)},
			servable, func(err error) bool {
				return errors.Is(err, os.ErrNotExist)
			}},
	} {
		b, err := New(append(c.opts, WithTempDir(temp))...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := b.Catalog(t.Context(), c.fsys); !c.is(err) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", name, left, err)
		}
	}
}
