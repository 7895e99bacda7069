package app_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// asking records which registries are asked for manifests, by the first component of the repository.
type asking struct {
	mu  sync.Mutex
	log map[string][]string
}

// record returns a registry whose requests are recorded under a name.
func (a *asking) record(t *testing.T, name string) *testregistry.Registry {
	r := testregistry.New(t)
	r.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
		path := strings.TrimPrefix(q.URL.Path, "/v2/")
		of, _, _ := strings.Cut(path, "/")
		a.mu.Lock()
		defer a.mu.Unlock()
		if strings.Contains(path, "/manifests/") && !slices.Contains(a.log[of], name) {
			a.log[of] = append(a.log[of], name)
		}
		return false
	})
	return r
}

// Take returns what was recorded, and forgets it.
func (a *asking) take() map[string][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	log := a.log
	a.log = map[string][]string{}
	return log
}

// What registries.conf says is applied to the endpoint that is asked. In every configuration the same registries are
// asked, in the same order and with the same result, as by the containers library.
func TestEndpointsAreThoseOfTheLibrary(t *testing.T) {
	var asked asking
	asked.take()
	at := map[string]*testregistry.Registry{}
	for _, name := range []string{"origin", "one", "two"} {
		at[name] = asked.record(t, name)
	}
	var conf strings.Builder
	names := map[string]string{} // of the images, by the case
	describe := map[string]string{}
	for _, renamed := range []bool{false, true} {
		for _, blocked := range []bool{false, true} {
			for _, mirrorBlocked := range []bool{false, true} {
				for _, only := range []string{"", "digest-only", "tag-only", "both digest-only"} {
					for _, byDigest := range []bool{false, true} {
						for _, has := range []string{"origin", "two", "origin one two"} {
							c := fmt.Sprintf("c%d", len(names))
							location := at["origin"].Host() + "/" + c
							prefix := location
							if renamed {
								prefix = "up.example.com/" + c
							}
							fmt.Fprintf(&conf, "[[registry]]\nprefix = %q\nlocation = %q\ninsecure = true\nblocked = %v\n",
								prefix, location, blocked)
							if only == "both digest-only" {
								conf.WriteString("mirror-by-digest-only = true\n")
							}
							fmt.Fprintf(&conf, "[[registry.mirror]]\nlocation = \"%s/%s\"\ninsecure = true\n", at["one"].Host(), c)
							if only != "" && only != "both digest-only" {
								fmt.Fprintf(&conf, "pull-from-mirror = %q\n", only)
							}
							fmt.Fprintf(&conf, "[[registry.mirror]]\nlocation = \"%s/%s\"\ninsecure = true\n", at["two"].Host(), c)
							if mirrorBlocked {
								fmt.Fprintf(&conf, "[[registry]]\nlocation = \"%s/%s\"\nblocked = true\n", at["one"].Host(), c)
							}
							image := clitest.OpmFor("amd64")
							image.Labels = map[string]string{clitest.TestConfigsLabel: "/configs"}
							image.Layers = []map[string]string{{"configs/catalog.json": clitest.PackageText(c)}}
							var d digest.Digest
							for _, where := range strings.Fields(has) {
								d = at[where].AddImage(t, c+"/img", "v1", image)
							}
							names[c] = prefix + "/img:v1"
							if byDigest {
								names[c] = prefix + "/img@" + d.String()
							}
							describe[c] = fmt.Sprintf("renamed %v, blocked %v, first mirror blocked %v, %q, by digest %v, in %s",
								renamed, blocked, mirrorBlocked, only, byDigest, has)
						}
					}
				}
			}
		}
	}
	dir := t.TempDir()
	file, auth := filepath.Join(dir, "registries.conf"), filepath.Join(dir, "auth.json")
	clitest.WriteFile(t, auth, "{}")
	clitest.WriteFile(t, file, conf.String())
	sys := &types.SystemContext{SystemRegistriesConfPath: file, AuthFilePath: auth}
	flags := []string{"--registries-conf", file, "--authfile", auth, "--no-cache"}
	together, alone := []string{"render", "-o", "ndjson"}, map[string]string{}
	for c, name := range names {
		ref, err := docker.ParseReference("//" + name)
		if err != nil {
			t.Fatal(err)
		}
		src, err := ref.NewImageSource(t.Context(), sys)
		if err != nil {
			alone[c] = name
			continue
		}
		_ = src.Close()
		together = append(together, name)
	}
	want := asked.take()
	if len(want) < 150 || len(alone) < 20 {
		t.Fatalf("%d of %d cases asked the registries, %d failed", len(want), len(names), len(alone))
	}
	clitest.Done(t, dir, "bindery", append(together, flags...)...)
	for c, name := range alone {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"inspect", name}, flags...)...)
		if got.Status != 1 {
			t.Errorf("%s: %+v", describe[c], got)
		}
	}
	log := asked.take()
	for c := range names {
		if !slices.Equal(log[c], want[c]) {
			t.Errorf("%s: asked %q, and the library %q", describe[c], log[c], want[c])
		}
	}
}

// No command asks a blocked registry: images of one are read from its mirrors, a blocked mirror is passed over, and
// nothing is pushed to one.
func TestBlockedRegistriesAreNotAsked(t *testing.T) {
	w := clitest.NewSignedWorld(t, clitest.Signed)
	up, mirror := testregistry.New(t), testregistry.New(t)
	conf := filepath.Join(w.Top, "blocked.conf")
	clitest.WriteFile(t, conf, strings.NewReplacer("UP", up.Host(), "BAD", mirror.Host(), "GOOD", w.Source.Host()).Replace(`
[[registry]]
location = "UP"
blocked = true
[[registry.mirror]]
location = "BAD"
[[registry.mirror]]
location = "GOOD"
[[registry]]
location = "BAD"
blocked = true
[[registry]]
location = "GOOD"
[[registry.mirror]]
location = "BAD"
`))
	clitest.WriteFile(t, filepath.Join(w.Dir, "cat", "catalog.json"), clitest.PackageText("etcd"))
	clitest.WriteFile(t, filepath.Join(w.Dir, "Containerfile"), "FROM "+up.Host()+"/acme/tool:v1\nCOPY cat /cat\n")
	set := filepath.Join(w.Dir, "isc.yaml")
	clitest.WriteFile(t, set, strings.ReplaceAll(clitest.ReadFile(t, filepath.Join(w.Top, "set.yaml")), w.Source.Host(), up.Host()))
	clitest.WriteFile(t, filepath.Join(w.Dir, "bom.json"), "{}")
	for line, want := range map[string]string{
		"inspect UP/acme/catalog:v1":                                                          "configs",
		"inspect --deep UP/acme/catalog:v1":                                                   "etcd",
		"render UP/acme/catalog:v1":                                                           "etcd",
		"render UP/acme/catalog:v1 --lock lock":                                               "etcd",
		"list images UP/acme/catalog:v1":                                                      "acme/operand",
		"verify UP/acme/catalog:v1":                                                           "!different",
		"tree UP/acme/catalog:v1":                                                             "1 signature",
		"copy UP/acme/catalog:v1 oci:copied":                                                  "sha256:",
		"copy UP/acme/operand:v1 docker://GOOD/copied/operand:v1":                             "sha256:",
		"serve UP/acme/catalog:v1 --cache-dir cache --cache-only":                             "",
		"build catalog cat -t a/b:v1 --server none --base UP/acme/tool:v1 --output oci:built": "sha256:",
		"build catalog cat --server none -t GOOD/a/b:v1 --base UP/acme/tool:v1 --push":        "sha256:",
		"build catalog cat --server none -t GOOD/a/b:v2 --previous UP/acme/catalog:v1 --push": "sha256:",
		"build containerfile . -t a/b:v1 --output oci:filed":                                  "sha256:",
		"mirror plan -c isc.yaml -o json":                                                     "acme/tool",
		"mirror run -c isc.yaml docker://GOOD/mirrored --workspace ws":                        "",
		"mirror run -c isc.yaml file://archive":                                               "",
		"catalog filter UP/acme/catalog:v1 -p etcd --to filtered":                             "",
		"mirror run -c isc.yaml docker://UP/mirrored --workspace ws2":                         "!is blocked in",
		"copy GOOD/acme/tool:v1 docker://UP/copied/tool:v1":                                   "!is blocked in",
		"copy GOOD/acme/tool:v1 docker://BAD/copied/tool:v1":                                  "!is blocked in",
		"build catalog cat -t UP/a/b:v1 --push":                                               "!is blocked in",
		"sign UP/acme/tool:v1 --sign-key ../a.key":                                            "!is blocked in",
		"attach UP/acme/tool:v1 bom.json --type application/spdx+json":                        "!is blocked in",
		"inspect BAD/acme/catalog:v1":                                                         "!is blocked in",
		"build catalog cat -t BAD/a/b:v1 --previous UP/acme/catalog:v1 --push":                "!is blocked in",
		"mirror verify -c isc.yaml docker://UP/mirrored":                                      "!is blocked in",
	} {
		t.Run(line, func(t *testing.T) {
			full := strings.NewReplacer("UP", up.Host(), "BAD", mirror.Host(), "GOOD", w.Source.Host()).Replace(line)
			cmd := clitest.Command(w.Dir, "bindery", append(strings.Fields(full), "--registries-conf", conf, "--use-http")...)
			cmd.Env = append(cmd.Env, "BINDERY_NO_CACHE=true")
			got := clitest.Finish(t, cmd)
			want, fails := strings.CutPrefix(want, "!")
			if fails != (got.Status == 1) || !strings.Contains(got.Stdout+got.Stderr, want) || got.Status > 1 {
				t.Errorf("%+v", got)
			}
			if asked := append(up.Requests(), mirror.Requests()...); len(asked) > 0 {
				t.Errorf("asked %q", asked)
			}
		})
	}
}

// A layer of a blocked repository, which a mirror of it had, is sent and not mounted from there.
func TestNothingIsMountedFromABlockedRepository(t *testing.T) {
	dir, r, mirror := t.TempDir(), testregistry.New(t), testregistry.New(t)
	r.Separate(true)
	mirror.AddImage(t, "img", "v1", testregistry.Image{Layers: []map[string]string{{"x": "x"}}})
	clitest.Done(t, dir, "bindery", "copy", "--use-http", mirror.Host()+"/img:v1", r.Host()+"/base/img:v1")
	var mu sync.Mutex
	var mounts []string
	r.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if from := q.URL.Query().Get("from"); from != "" {
			mounts = append(mounts, from)
		}
		return false
	})
	clitest.WriteFile(t, filepath.Join(dir, "cat", "catalog.json"), clitest.PackageText("etcd"))
	for blocked, want := range map[bool][]string{false: {"base/img"}, true: nil} {
		mounts = nil
		clitest.WriteFile(t, filepath.Join(dir, "registries.conf"), fmt.Sprintf("[[registry]]\nlocation = \"%s/base\"\nblocked = %v\n"+
			"[[registry.mirror]]\nlocation = %q\n", r.Host(), blocked, mirror.Host()))
		clitest.Done(t, dir, "bindery", "build", "catalog", "cat", "--server", "none", "--base", r.Host()+"/base/img:v1", "-t",
			fmt.Sprintf("%s/to/blocked-%v:v1", r.Host(), blocked), "--push", "--use-http", "--registries-conf",
			"registries.conf", "--no-cache")
		if got := slices.Compact(slices.Sorted(slices.Values(mounts))); !slices.Equal(got, want) {
			t.Errorf("blocked %v: mounts from %q", blocked, got)
		}
	}
}
