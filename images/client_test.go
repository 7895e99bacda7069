package images_test

import (
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

func TestClientReadsRecordedImages(t *testing.T) {
	reg := testregistry.Recorded(t)
	conf := reg.RegistriesConf(t, testregistry.RecordedHost)
	c, err := images.NewClient(
		images.ClientOptions{Policy: policy.Read,
			Options: registries.Options{Registry: registries.Config{RegistriesConf: conf, UserAgent: "bindery/test"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	name := testregistry.RecordedHost + "/community/etcd:v0.9.4"
	img, err := c.Image(t.Context(), name, v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	const want = digest.Digest("sha256:20764874ca1b2665ae825cd2e3bfbf0c1e242ec0e116e9f6a2f56aa5b5ba677a")
	if img.Name != name || img.Top != want ||
		img.Reference() != testregistry.RecordedHost+"/community/etcd@"+want.String() {
		t.Errorf("got %q %s %q", img.Name, img.Top, img.Reference())
	}
	if !strings.HasPrefix(img.Source, reg.Host()+"/community/etcd:v0.9.4") {
		t.Errorf("source %q", img.Source)
	}
	tree, err := img.Extract(t.Context(), []string{"manifests", "metadata"}, images.ExtractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if _, err := fs.Stat(tree, "metadata/annotations.yaml"); err != nil {
		t.Error(err)
	}
}

// A field beside the embedded options of registries would hide the one of its name there, and have no effect.
func TestOptionsOfRegistriesAreDeclaredOnce(t *testing.T) {
	shared := reflect.TypeFor[registries.Options]()
	for _, of := range []reflect.Type{reflect.TypeFor[images.ClientOptions](), reflect.TypeFor[images.CopyOptions]()} {
		for i := range shared.NumField() {
			name := shared.Field(i).Name
			if f, ok := of.FieldByName(name); !ok || len(f.Index) != 2 {
				t.Errorf("%s.%s is not that of registries.Options", of, name)
			}
		}
	}
}
