package registry_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A registries.conf in version 1 counts: its lists of blocked and insecure registries, and what it has of version 2
// besides. There is one warning.
func TestRegistriesConfVersion1(t *testing.T) {
	reg, mirror := testregistry.New(t), testregistry.New(t)
	reg.AddImage(t, "a/b", "v1", simple("x"))
	mirror.AddImage(t, "a/c", "v1", simple("mirrored"))
	for name, c := range map[string]struct {
		conf   string
		ref    string
		want   string
		failed string
	}{
		"insecure": {"[registries.search]\nregistries = ['docker.io']\n[registries.insecure]\nregistries " +
			"= [%q]\n", "/a/b:v1", "x", ""},
		"blocked": {"[registries.block]\nregistries = [%q]\n", "/a/b:v1", "", "is blocked in CONF"},
		"empty lists": {"[registries.insecure]\nregistries = ['a.example.com', " +
			"%q]\n[registries.block]\nregistries = []\n", "/a/b:v1", "x", ""},
		"mirror": {"[registries.block]\nregistries = ['b.example.com']\n[[registry]]\nlocation = " +
			"%q\n[[registry.mirror]]\nlocation = 'MIRROR'\ninsecure = true\n", "/a/c:v1", "mirrored", ""},
		"both of one": {"[registries.block]\nregistries = [%[1]q]\n[[registry]]\nlocation = %[1]q\ninsecure " +
			"= true\n", "/a/b:v1", "", "is blocked in CONF"},
		"no registry":      {"[registries.block]\nregistries = ['http://%s']\n", "/a/b:v1", "", "CONF"},
		"version 2":        {"[[registry]]\nlocation = %q\ninsecure = true\n", "/a/b:v1", "x", ""},
		"neither of these": {"[registries.block]\nregistries = '%s'\n", "/a/b:v1", "", "registries.conf"},
	} {
		t.Run(name, func(t *testing.T) {
			o := registries.Config{RegistriesConf: filepath.Join(t.TempDir(), "registries.conf")}
			write(t, o.RegistriesConf, strings.ReplaceAll(fmt.Sprintf(c.conf, reg.Host()), "MIRROR", mirror.Host()))
			var warned []string
			events := func(e store.Event) {
				if e.Kind == store.EventWarning {
					warned = append(warned, e.Err.Error())
				}
			}
			client := quick(t, images.ClientOptions{Options: registries.Options{Registry: o, Events: events}})
			for range 2 {
				got, err := read(t.Context(), client, reg.Host()+c.ref)
				if got != c.want || (err == nil) != (c.failed == "") || err != nil && !strings.Contains(err.Error(),
					strings.ReplaceAll(c.failed, "CONF", o.RegistriesConf)) {
					t.Errorf("got %q, %v", got, err)
				}
			}
			old := name != "version 2" && name != "no registry" && name != "neither of these"
			if old && (len(warned) != 1 || !strings.Contains(warned[0], o.RegistriesConf+" is in version 1")) ||
				!old && len(warned) > 0 {
				t.Errorf("warnings %q", warned)
			}
		})
	}
}
