//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package imagestore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/signature"
	"go.podman.io/storage"
	"go.podman.io/storage/pkg/reexec"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
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

// place is a store of a test.
type place struct {
	root, run string
}

func newPlace(t *testing.T) place {
	t.Helper()
	dir := t.TempDir()
	return place{filepath.Join(dir, "root"), filepath.Join(dir, "run")}
}

// name returns the reference of an image in the store.
func (p place) name(image string) string {
	return "containers-storage:[vfs@" + p.root + "+" + p.run + "]" + image
}

// look opens the store with the library, for inspection.
func (p place) look(t *testing.T, f func(storage.Store)) {
	t.Helper()
	store, err := storage.GetStore(storage.StoreOptions{GraphDriverName: "vfs", GraphRoot: p.root, RunRoot: p.run,
		GraphDriverOptions: []string{"vfs.ignore_chown_errors=true"}})
	if err != nil {
		t.Fatal(err)
	}
	f(store)
	if _, err := store.Shutdown(false); err != nil {
		t.Fatal(err)
	}
}

// content returns the names of all images, as the store has them, and the numbers of images and layers.
func (p place) content(t *testing.T) (names []string, imageCount, layers int) {
	t.Helper()
	p.look(t, func(store storage.Store) {
		all, err := store.Images()
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range all {
			names = append(names, i.Names...)
		}
		l, err := store.Layers()
		if err != nil {
			t.Fatal(err)
		}
		imageCount, layers = len(all), len(l)
	})
	return names, imageCount, layers
}

func newClient(t *testing.T) *images.Client {
	t.Helper()
	c, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Transports: transports, PolicyFile: policyFile(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const acceptAll = `{"default":[{"type":"insecureAcceptAnything"}]}`

func policyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(path, []byte(acceptAll), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func anyImage(t *testing.T) *signature.Policy {
	t.Helper()
	policy, err := signature.NewPolicyFromBytes([]byte(acceptAll))
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// transports are all that there are.
var transports = library.Transports(images.BuiltIn())

// load copies an image to stores.
func load(t *testing.T, from *images.Source, events func(store.Event), to ...string) ([]images.Result, error) {
	t.Helper()
	var dests []transport.Destination
	for _, text := range to {
		d, err := transports.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		dests = append(dests, d)
	}
	return images.Copy(t.Context(), from, from.Top, dests,
		images.CopyOptions{Options: registries.Options{Temp: t.TempDir(), Events: events}, Transports: transports})
}

var small = testregistry.Image{
	Labels:      map[string]string{"a": "b"},
	Annotations: map[string]string{"note": "kept"},
	Layers: []map[string]string{{"configs/a/x.json": "{}", "configs/a/y.json": "1"},
		{"configs/b/x.json": strings.Repeat("z", 100_000)}},
}

// An image in a store has the same digest as elsewhere, and all of it can be read.
func TestImageComesOutOfTheStoreAsItWentIn(t *testing.T) {
	dir := t.TempDir()
	want := small.WriteLayout(t, filepath.Join(dir, "layout"), "v1")
	p, c := newPlace(t), newClient(t)
	results, err := load(t, imagetest.Opened(t, c, "oci:"+dir+"/layout:v1"), nil, p.name("localhost/acme/cat:v1"),
		p.name("quay.io/acme/cat:latest"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Digest != want {
			t.Errorf("%s: digest %s, want %s", r.Destination, r.Digest, want)
		}
	}
	for name, good := range map[string]bool{
		"localhost/acme/cat:v1": true, "acme/cat:v1": true, "quay.io/acme/cat": true,
		"quay.io/acme/cat@" + want.String(): true,
		"quay.io/acme/cat:v2":               false, "quay.io/acme/cat@" + digest.FromString("x").String(): false,
		"Not A Name": false,
	} {
		img, err := c.Image(t.Context(), p.name(name), v1.Platform{})
		if !good {
			if err == nil || !errors.Is(err, images.ErrInvalid) {
				t.Errorf("%s: got %v, want an error of class invalid", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		tree, err := img.Extract(t.Context(), []string{"/configs"}, images.ExtractOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, files := range small.Layers {
			for file, content := range files {
				if got, err := fs.ReadFile(tree, file); err != nil || string(got) != content {
					t.Errorf("%s: %s: %d bytes, %v", name, file, len(got), err)
				}
			}
		}
		if img.Top != want || img.Digest != want || img.Annotations["note"] != "kept" ||
			img.Config.Config.Labels["a"] != "b" {
			t.Errorf("%s: got %+v", name, img)
		}
		if err := errors.Join(tree.Close(), img.Close()); err != nil {
			t.Error(err)
		}
	}
	if got, err := c.UnverifiedDigest(t.Context(), p.name("acme/cat:v1")); err != nil || got != want {
		t.Errorf("digest %s, %v", got, err)
	}
	if got, err := c.UnverifiedDigest(t.Context(), p.name("acme/other:v1")); err != nil || got != "" {
		t.Errorf("digest of nothing: %q, %v", got, err)
	}
	// The image can be copied from there to other places.
	if _, err := load(t, imagetest.Opened(t, c, p.name("acme/cat:v1")), nil, "dir:"+dir+"/dir",
		"oci:"+dir+"/again:v1"); err != nil {
		t.Error(err)
	}
	if names, n, layers := p.content(t); n != 1 || layers != 2 || len(names) != 2 {
		t.Errorf("%v, %d images, %d layers", names, n, layers)
	}
}

// Of an index the store gets the image of this machine or of the requested platform, and an event names it.
func TestIndexIsTheImageOfOnePlatform(t *testing.T) {
	r := testregistry.New(t)
	mine, other := small, small
	mine.Platform = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	other.Platform = v1.Platform{OS: "linux", Architecture: "riscv64"}
	r.AddIndex(t, "acme/cat", "v1", nil, []testregistry.Image{other, mine})
	var index v1.Index
	if err := json.Unmarshal(r.Manifest("acme/cat", "v1"), &index); err != nil {
		t.Fatal(err)
	}
	skip := true
	c, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Transports: transports, PolicyFile: policyFile(t),
		Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	from := imagetest.Opened(t, c, r.Host()+"/acme/cat:v1")
	for n, of := range []struct{ wanted, got v1.Platform }{{got: mine.Platform}, {other.Platform, other.Platform}} {
		p := newPlace(t)
		d, err := transports.Parse(p.name("localhost/cat:v1"))
		if err != nil {
			t.Fatal(err)
		}
		var warnings []string
		results, err := images.Copy(t.Context(), from, from.Top, []transport.Destination{d}, images.CopyOptions{
			Transports: transports, Platform: of.wanted,
			Options: registries.Options{Temp: t.TempDir(), Events: func(e store.Event) {
				if e.Kind == store.EventWarning {
					warnings = append(warnings, e.Err.Error())
				}
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if results[0].Digest != index.Manifests[1-n].Digest {
			t.Errorf("got %s of %+v", results[0].Digest, index.Manifests)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], "linux/"+of.got.Architecture) {
			t.Errorf("told %q", warnings)
		}
	}
	lacking := newPlace(t).name("localhost/cat:v1")
	d, err := transports.Parse(lacking)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Copy(t.Context(), from, from.Top, []transport.Destination{d}, images.CopyOptions{
		Transports: transports,
		Options:    registries.Options{Temp: t.TempDir()}, Platform: v1.Platform{OS: "linux", Architecture: "s390x"},
	}); err == nil || !strings.Contains(err.Error(), "s390x") {
		t.Error(err)
	}
}

// A failed copy leaves the store unchanged: the name refers to the old image, and nothing was added.
func TestFailureLeavesTheStoreAsItWas(t *testing.T) {
	dir := t.TempDir()
	small.WriteLayout(t, filepath.Join(dir, "layout"), "v1")
	p, c := newPlace(t), newClient(t)
	if _, err := load(t, imagetest.Opened(t, c, "oci:"+dir+"/layout:v1"), nil, p.name("localhost/cat:v1")); err != nil {
		t.Fatal(err)
	}
	changed := small
	changed.Layers = append(changed.Layers[:1:1], map[string]string{"new": "1"},
		map[string]string{"lost": strings.Repeat("x", 1000)})
	r := testregistry.New(t)
	r.AddImage(t, "acme/cat", "v2", changed)
	var m v1.Manifest
	if err := json.Unmarshal(r.Manifest("acme/cat", "v2"), &m); err != nil {
		t.Fatal(err)
	}
	r.DeleteBlob(m.Layers[2].Digest)
	skip := true
	remote, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Transports: transports, PolicyFile: policyFile(t),
		Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	if _, err := load(t, imagetest.Opened(t, remote, r.Host()+"/acme/cat:v2"), nil, p.name("localhost/cat:v1")); err == nil {
		t.Fatal("an image without one of its layers was loaded")
	}
	// If a later destination fails, the earlier ones do not get their names.
	whole := changed
	whole.Layers = whole.Layers[:2]
	r.AddImage(t, "acme/cat", "v3", whole)
	blocked := filepath.Join(dir, "blocked")
	if err := os.WriteFile(blocked, []byte("somebody's file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t, imagetest.Opened(t, remote, r.Host()+"/acme/cat:v3"), nil, p.name("localhost/cat:v1"),
		"oci-archive:"+blocked); err == nil {
		t.Fatal("a file that is no archive was replaced")
	}
	names, n, layers := p.content(t)
	if fmt.Sprint(names) != "[localhost/cat:v1]" || n != 1 || layers != 2 {
		t.Errorf("%v, %d images, %d layers", names, n, layers)
	}
	left, err := filepath.Glob(filepath.Join(p.root, ".bindery*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Unnamed layers that a killed run added are removed by the next run; layers in use stay, whatever the journal
// contains.
func TestJournalOfAKilledRunIsUsed(t *testing.T) {
	dir := t.TempDir()
	small.WriteLayout(t, filepath.Join(dir, "layout"), "v1")
	p, c := newPlace(t), newClient(t)
	from := imagetest.Opened(t, c, "oci:"+dir+"/layout:v1")
	if _, err := load(t, from, nil, p.name("localhost/cat:v1")); err != nil {
		t.Fatal(err)
	}
	var ids []string
	p.look(t, func(store storage.Store) {
		layer, err := store.CreateLayer(digest.FromString("left").Encoded(), "", nil, "", false, nil)
		if err != nil {
			t.Fatal(err)
		}
		all, err := store.Layers()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, "../../etc", layer.ID)
		for _, l := range all {
			ids = append(ids, l.ID)
		}
	})
	text, err := json.Marshal(map[string]any{"layers": ids})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{".bindery-stage-1": text, ".bindery-stage-2": []byte("{"),
		".bindery-stage-3": nil} {
		if err := os.Mkdir(filepath.Join(p.root, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if content != nil {
			if err := os.WriteFile(filepath.Join(p.root, name, "added.json"), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := load(t, from, nil, p.name("localhost/cat:v2")); err != nil {
		t.Fatal(err)
	}
	names, n, layers := p.content(t)
	if len(names) != 2 || n != 1 || layers != 2 {
		t.Errorf("%v, %d images, %d layers", names, n, layers)
	}
	if left, err := filepath.Glob(filepath.Join(p.root, ".bindery*")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A damaged store gives errors and never a different image.
func TestChangedLayerIsNoticed(t *testing.T) {
	dir := t.TempDir()
	small.WriteLayout(t, filepath.Join(dir, "layout"), "v1")
	p, c := newPlace(t), newClient(t)
	if _, err := load(t, imagetest.Opened(t, c, "oci:"+dir+"/layout:v1"), nil, p.name("localhost/cat:v1")); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(p.root, "vfs/dir/*/configs/b/x.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if err := os.WriteFile(found[0], []byte(strings.Repeat("y", 100_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	img, err := c.Image(t.Context(), p.name("localhost/cat:v1"), v1.Platform{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if tree, err := img.Extract(t.Context(), []string{"/configs"}, images.ExtractOptions{}); err == nil {
		tree.Close()
		t.Error("a changed layer was read")
	}
}
