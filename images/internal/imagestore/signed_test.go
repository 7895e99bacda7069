//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/copy"
	"go.podman.io/image/v5/oci/layout"
	"go.podman.io/image/v5/signature"
	transport "go.podman.io/image/v5/storage"
	"go.podman.io/storage"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
)

// A policy accepts an image in a store by the signatures that the store keeps, and no other.
func TestSignedImagesInAStore(t *testing.T) {
	dir := supplytest.Policies(t)
	p := newPlace(t)
	for name, key := range map[string]string{"signed": "p256.key", "unsigned": ""} {
		p.look(t, func(store storage.Store) {
			to, err := transport.Transport.ParseStoreReference(store, supplytest.Repository+":"+name)
			if err != nil {
				t.Fatal(err)
			}
			from, err := layout.NewReference(supplytest.Unpack(t, "unsigned"), "v1")
			if err != nil {
				t.Fatal(err)
			}
			context, err := signature.NewPolicyContext(anyImage(t))
			if err != nil {
				t.Fatal(err)
			}
			o := &copy.Options{}
			if key != "" {
				o.SignBySigstorePrivateKeyFile = filepath.Join(dir, key)
				o.SignSigstorePrivateKeyPassphrase = []byte(supplytest.Passphrase)
			}
			if _, err := copy.Image(t.Context(), context, to, from, o); err != nil {
				t.Fatal(err)
			}
		})
		for _, rule := range []struct {
			policy  string
			accepts bool
		}{
			{fmt.Sprintf(`{"type":"sigstoreSigned","keyPath":%q}`, filepath.Join(dir, "p256.pub")), key != ""},
			{fmt.Sprintf(`{"type":"sigstoreSigned","keyPath":%q}`, filepath.Join(dir, "p256-other.pub")), false},
			{`{"type":"reject"}`, false},
			{`{"type":"insecureAcceptAnything"}`, true},
		} {
			file := filepath.Join(t.TempDir(), "policy.json")
			if err := os.WriteFile(file, []byte(`{"default":[`+rule.policy+`]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Transports: transports, PolicyFile: file, Options: registries.Options{Temp: t.TempDir()}})
			if err != nil {
				t.Fatal(err)
			}
			img, err := c.Image(t.Context(), p.name(supplytest.Repository+":"+name), v1.Platform{})
			if err == nil {
				err = img.Close()
			}
			if rule.accepts && err != nil || !rule.accepts && !errors.Is(err, trust.ErrPolicy) {
				t.Errorf("%s, %s: got %v", name, rule.policy, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
