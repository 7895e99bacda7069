package build

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/layers"
)

// Options that contradict each other are refused before any work.
func TestOptionsAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"no directory":   {},
		"format":         {Dir: ".", Format: "tar"},
		"docker's codec": {Dir: ".", Format: FormatDocker, Compression: layers.Zstd},
	} {
		if err := o.normalize(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, kinds := range map[string][]ServeCache{
		"unknown": {"fast"},
		"two":     {ServeCacheJSON, ServeCachePogreb},
	} {
		if err := new(Options).SetServeCaches(kinds...); err == nil {
			t.Errorf("%s serve caches: no error", name)
		}
	}
}

// A server that cannot be in the image is refused, with the platform that has none.
func TestServersAreRefused(t *testing.T) {
	amd64, riscv64 := v1.Platform{OS: "linux", Architecture: "amd64"}, v1.Platform{OS: "linux", Architecture: "riscv64"}
	for name, c := range map[string]struct {
		choice    string
		platforms []v1.Platform
		is        func(error) bool
	}{
		"no server": {"", []v1.Platform{riscv64}, func(err error) bool {
			var server *ServerError
			return errors.As(err, &server) && errors.Is(err, ErrNoServer) && server.Platform.Architecture == "riscv64"
		}},
		"server for two": {"x", []v1.Platform{amd64, riscv64}, func(err error) bool {
			var server *ServerError
			return errors.As(err, &server)
		}},
		"no file": {filepath.Join(t.TempDir(), "absent"), []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}},
			func(err error) bool { return errors.Is(err, os.ErrNotExist) }},
	} {
		if err := new(Options).SetServer(c.choice, c.platforms, &Embedded{}); !c.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := Options{Dir: "."}
	if err := o.SetServer(ServerBase, []v1.Platform{amd64}, &Embedded{}); err != nil {
		t.Fatal(err)
	}
	if err := o.normalize(); err == nil {
		t.Error("the server of a base that there is not: no error")
	}
}
