package registry_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

func TestMirrors(t *testing.T) {
	mirror, origin := testregistry.New(t), testregistry.New(t)
	old, current := simple("old"), simple("current")
	mirror.AddImage(t, "m/b", "v1", old)
	top := origin.AddImage(t, "a/b", "v1", current)
	conf := filepath.Join(t.TempDir(), "registries.conf")
	text := fmt.Sprintf("[[registry]]\nprefix = \"example.test/a\"\nlocation = \"%s/a\"\ninsecure = "+
		"true\n[[registry.mirror]]\nlocation = \"%s/m\"\ninsecure = true\n"+
		"[[registry]]\nlocation = \"blocked.test\"\nblocked = true\n", origin.Host(), mirror.Host())
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := quick(t, images.ClientOptions{Options: registries.Options{Registry: registries.Config{RegistriesConf: conf}, Retries: 5, Backoff: time.Minute}})
	if got, err := read(t.Context(), c, "example.test/a/b:v1"); err != nil || got != "old" {
		t.Errorf("by tag: %q, %v", got, err)
	}
	if got, err := read(t.Context(), c, "example.test/a/b@"+top.String()); err != nil || got != "current" {
		t.Errorf("by digest, which the mirror has not: %q, %v", got, err)
	}
	mirror.Interfere(on("/manifests/", 0, status(500)))
	img, err := c.Image(t.Context(), "example.test/a/b:v1", v1.Platform{})
	if err != nil || img.Source != origin.Host()+"/a/b:v1" || img.Reference() != "example.test/a/b@"+top.String() {
		t.Fatalf("the mirror fails: %+v, %v", img, err)
	}
	img.Close()
	// A mirror that lies about a digest is passed over for the registry itself.
	mirror.Interfere(on("/manifests/", 0,
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(mirror.Manifest("m/b", "v1")) }))
	if got, err := read(t.Context(), c, "example.test/a/b@"+top.String()); err != nil || got != "current" {
		t.Errorf("a lying mirror: %q, %v", got, err)
	}
	origin.Interfere(on("/manifests/", 0, status(404)))
	if _, err := c.Image(t.Context(), "example.test/a/b@"+top.String(), v1.Platform{}); err == nil || !strings.Contains(err.Error(),
		"mirrors failed too") {
		t.Errorf("both fail: %v", err)
	}
	if _, err := c.Image(t.Context(), "blocked.test/a/b:v1", v1.Platform{}); !errors.Is(err, fault.ErrRegistry) ||
		!strings.Contains(err.Error(), conf) || !strings.Contains(err.Error(), "blocked") {
		t.Errorf("blocked: %v", err)
	}
	if n := slices.ContainsFunc(origin.Requests(), func(r string) bool { return strings.Contains(r, "blocked") }); n {
		t.Error("a blocked registry was asked")
	}
}
