//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package library_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/storage/pkg/reexec"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/edit/edittest"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/userns"
)

// TestMain is that of a program with a store: its library starts the test program again to unpack layers, and users
// other than root need a user namespace for the whole process.
func TestMain(m *testing.M) {
	if reexec.Init() {
		return
	}
	if status, started := userns.Enter(nil); started {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// A store receives the image of one platform of an index, says which one, and gives it back with its configuration and
// layers; a name that it has moves to the new image.
func TestStoreIsFilled(t *testing.T) {
	catalog := edittest.Catalog(t, "foo = stable", "foo/stable: 1.0.0")
	dir := t.TempDir()
	name := "containers-storage:[vfs@" + filepath.Join(dir, "root") + "+" + filepath.Join(dir, "run") +
		"]quay.io/acme/etcd:v1"
	dest, err := transports.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	client, err := images.NewClient(images.ClientOptions{NoPolicy: true, Options: registries.Options{Temp: t.TempDir()}, Transports: transports})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	other := "s390x"
	for _, label := range []string{"first", "second"} {
		o := build.Options{Dir: t.TempDir(), Labels: map[string]string{"run": label}}
		of := []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}, {OS: "linux", Architecture: other}}
		if err := o.SetServer(build.ServerNone, of, &build.Embedded{}); err != nil {
			t.Fatal(err)
		}
		img, err := build.Catalog(t.Context(), build.CatalogInput{Blobs: catalog.Blobs()}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		var warnings []string
		_, err = images.Copy(t.Context(), img.Store(), img.Top(), []transport.Destination{dest},
			images.CopyOptions{Transports: transports, Options: registries.Options{Temp: t.TempDir(), Events: func(e store.Event) {
				if e.Kind == store.EventWarning {
					warnings = append(warnings, e.Err.Error())
				}
			}}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(warnings, func(w string) bool {
			return strings.Contains(w, "gets that of linux/"+runtime.GOARCH)
		}) {
			t.Errorf("warnings: %q", warnings)
		}
		src, err := client.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := src.Describe(t.Context())
		if err != nil || len(d.Variants) != 1 || d.Variants[0].Config.Architecture == other ||
			d.Variants[0].Config.Config.Labels["run"] != label ||
			len(d.Variants[0].Config.RootFS.DiffIDs) != len(img.Layers) {
			t.Errorf("%s: %+v, %v", label, d, err)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}
