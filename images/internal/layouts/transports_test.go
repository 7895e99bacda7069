package layouts_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
	trusted "github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// everything copies what is attached too, where it can be kept.
var everything = referrers.Kinds{Tags: true, Referrers: true}

func newClient(t testing.TB) *images.Client {
	t.Helper()
	return newClientWith(t, `{"default":[{"type":"insecureAcceptAnything"}]}`)
}

// newClientWith returns a client with a policy.
func newClientWith(t testing.TB, text string) *images.Client {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := images.NewClient(images.ClientOptions{Policy: trusted.Read, Transports: library.Transports(images.BuiltIn()), PolicyFile: policy, Options: registries.Options{Temp: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// copyTo copies an image, and returns its digest at the source.
func copyTo(t testing.TB, c *images.Client, from, to string, what referrers.Kinds) (digest.Digest, error) {
	t.Helper()
	d, err := c.Transports().Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Copy(t.Context(), from, d, what, images.CopyOptions{Options: registries.Options{Temp: t.TempDir()}})
	return r.Digest, err
}

func mustCopy(t testing.TB, c *images.Client, from, to string, what referrers.Kinds) digest.Digest {
	t.Helper()
	d, err := copyTo(t, c, from, to, what)
	if err != nil {
		t.Fatalf("%s to %s: %v", from, to, err)
	}
	return d
}

// textOf returns the text of a file of an image, as a container sees it.
func textOf(t testing.TB, c *images.Client, name string) string {
	t.Helper()
	img, err := c.Image(t.Context(), name, v1.Platform{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer img.Close()
	tree, err := img.Extract(t.Context(), []string{"a"}, images.ExtractOptions{Temp: t.TempDir()})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer tree.Close()
	text, err := fs.ReadFile(tree, "a/b")
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return string(text)
}

// An image is written to each format, over an older one, and is there what it was; no file but the image is left.
func TestTransports(t *testing.T) {
	c, dir := newClient(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	var sources []string
	for _, text := range []string{"old", "new"} {
		testregistry.Image{Layers: []map[string]string{{"a/b": text}, {"x": "y"}}}.WriteLayout(t, at(text), "v1")
		sources = append(sources, "oci:"+at(text)+":v1")
	}
	for _, to := range []string{"oci:" + at("layout") + ":v1", "oci-archive:" + at("image.oci") + ":v1",
		"docker-archive:" + at("image.docker") + ":example.test/a/b:v1", "dir:" + at("directory")} {
		transport, rest, _ := strings.Cut(to, ":")
		path, _, _ := strings.Cut(rest, ":")
		for i, from := range sources {
			what := referrers.Kinds{}
			if strings.HasPrefix(transport, "oci") {
				what = everything
			}
			d := mustCopy(t, c, from, to, what)
			if got := textOf(t, c, to); got != []string{"old", "new"}[i] {
				t.Errorf("%s: %q", to, got)
			}
			img, err := c.Image(t.Context(), to, v1.Platform{})
			if err != nil {
				t.Fatal(err)
			}
			if err := img.Close(); err != nil || transport != "docker-archive" && (img.Top != d || d == "") {
				t.Errorf("%s: %s instead of %s: %v", to, img.Top, d, err)
			}
		}
		// Back again, and from an archive that is compressed.
		names := []string{to, transport + ":" + path}
		if transport != "dir" {
			names = append(names, transport+":"+path+":@0")
		}
		if strings.HasSuffix(transport, "archive") {
			names = append(names, transport+":"+compressed(t, path)+to[len(transport)+1+len(path):])
		}
		for _, name := range names {
			back := name
			if transport != "docker-archive" { // whose manifests layouts do not hold
				back = "oci:" + filepath.Join(t.TempDir(), "back") + ":v1"
				mustCopy(t, c, name, back, referrers.Kinds{})
			}
			if got := textOf(t, c, back); got != "new" {
				t.Errorf("%s: %q", name, got)
			}
		}
		for _, bad := range []string{transport + ":" + path + ":@7", transport + ":" + path + ":other.test/x:none",
			transport + ":" + at("nowhere")} {
			if img, err := c.Image(t.Context(), bad, v1.Platform{}); err == nil {
				t.Errorf("%s: no error", bad)
				img.Close()
			}
		}
	}
	left, err := os.ReadDir(dir)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if want := []string{"directory", "image.docker", "image.docker.gz", "image.oci", "image.oci.gz", "layout", "new",
		"old"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q instead of %q: %v", names, want, err)
	}
}

// compressed writes a file compressed beside it, and returns its path.
func compressed(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(f)
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// What is not an image is never replaced, and what is beside an image stays.
func TestOutputsOfOthersAreRefused(t *testing.T) {
	c, dir := newClient(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	testregistry.Image{Layers: []map[string]string{{"a/b": "text"}}}.WriteLayout(t, at("source"), "v1")
	for _, mine := range []string{"folder/mine", "file"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(mine)), 0o755),
			os.WriteFile(at(mine), []byte("mine, and no archive"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("folder", at("link")), os.Mkdir(at("empty"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"oci:" + at("folder"), "dir:" + at("folder"), "oci-archive:" + at("folder"),
		"docker-archive:" + at("folder"), "oci:" + at("file"), "dir:" + at("file"), "oci-archive:" + at("file"),
		"docker-archive:" + at("file"), "oci:" + at("link"), "dir:" + at("link"), "oci:" + at("file/x"),
		"oci-archive:" + at("link")} {
		if _, err := copyTo(t, c, "oci:"+at("source")+":v1", to, referrers.Kinds{}); err == nil {
			t.Errorf("%s: no error", to)
		}
	}
	for _, mine := range []string{"folder/mine", "file"} {
		if text, err := os.ReadFile(at(mine)); err != nil || string(text) != "mine, and no archive" {
			t.Errorf("%s: %q, %v", mine, text, err)
		}
	}
	for _, to := range []string{"oci:" + at("empty") + ":v1", "dir:" + at("new/deep/directory"),
		"oci:" + at("new/layout") + ":v1", "oci:" + at("new/layout") + ":v2"} {
		mustCopy(t, c, "oci:"+at("source")+":v1", to, referrers.Kinds{})
		if got := textOf(t, c, to); got != "text" {
			t.Errorf("%s: %q", to, got)
		}
	}
}

// What is attached goes with an image from a layout to an archive and back, also beside what is there.
func TestAttachmentsBetweenLayouts(t *testing.T) {
	c, dir := newClient(t), t.TempDir()
	from := "oci:" + supplytest.Unpack(t, "bundle-attested-all") + ":v1"
	archive, back := "oci-archive:"+filepath.Join(dir, "image.tar")+":v1", "oci:"+filepath.Join(dir, "back")+":v1"
	listed := func(name string) int {
		r, err := c.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		found, err := r.Referrers(t.Context(), r.Top.Digest, nil)
		if err != nil {
			t.Error(err)
		}
		return len(found)
	}
	want := listed(from)
	for range 2 {
		mustCopy(t, c, from, archive, everything)
		mustCopy(t, c, archive, back, everything)
		if a, b := listed(archive), listed(back); a != want || b != want || want == 0 {
			t.Errorf("%d are listed in the archive and %d in the layout, instead of %d", a, b, want)
		}
	}
}

// The signatures of an image are read where they are kept: in a layout and an archive as in a registry, and in a
// directory that has none there is none.
func TestSignaturesInFiles(t *testing.T) {
	dir := t.TempDir()
	policy := fmt.Sprintf(`{"default":[{"type":"sigstoreSigned","keyPath":%q,"signedIdentity":`+
		`{"type":"exactRepository","dockerRepository":%q}}]}`, filepath.Join(supplytest.Policies(t), "p256.pub"),
		supplytest.Repository)
	demanding := newClientWith(t, policy)
	c := newClient(t)
	for vector, accepted := range map[string]bool{"sig-cimage-p256": true, "unsigned": false,
		"neg-sig-other-key": false, "neg-sig-blob-corrupt": false} {
		layout := "oci:" + supplytest.Unpack(t, vector) + ":v1"
		archive, directory := "oci-archive:"+filepath.Join(dir, vector+".tar")+":v1", "dir:"+filepath.Join(dir, vector)
		names := map[string]bool{layout: accepted, directory: false}
		mustCopy(t, c, layout, directory, referrers.Kinds{})
		if vector != "neg-sig-blob-corrupt" {
			mustCopy(t, c, layout, archive, everything)
			names[archive] = accepted
		}
		for name, want := range names {
			img, err := demanding.Image(t.Context(), name, v1.Platform{})
			if (err == nil) != want {
				t.Errorf("%s: accepted is %v: %v", name, err == nil, err)
			}
			if err == nil {
				img.Close()
			}
		}
	}
}

// A blob of a layout that has been damaged is replaced by the next image that has it, and so is one that is missing.
func TestDamagedBlobsAreMended(t *testing.T) {
	c, dir := newClient(t), t.TempDir()
	source, layout := filepath.Join(dir, "source"), filepath.Join(dir, "layout")
	testregistry.Image{Layers: []map[string]string{{"a/b": "text"}}}.WriteLayout(t, source, "v1")
	mustCopy(t, c, "oci:"+source+":v1", "oci:"+layout+":v1", referrers.Kinds{})
	blobs, err := filepath.Glob(filepath.Join(layout, "blobs", "sha256", "*"))
	if err != nil || len(blobs) != 3 {
		t.Fatalf("%q, %v", blobs, err)
	}
	for n, damage := range []func(path string) error{
		func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("damaged"), 0o600))
		},
		os.Remove,
	} {
		for _, b := range blobs {
			if err := damage(b); err != nil {
				t.Fatal(err)
			}
			mustCopy(t, c, "oci:"+source+":v1", "oci:"+layout+":again", referrers.Kinds{})
			if got := textOf(t, c, "oci:"+layout+":v1"); got != "text" {
				t.Errorf("%d: %q", n, got)
			}
		}
	}
}
