package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/layers"
)

var bundleLabels = map[string]string{
	"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
	"operators.operatorframework.io.bundle.manifests.v1": "manifests/",
	"operators.operatorframework.io.bundle.metadata.v1":  "metadata/",
	"operators.operatorframework.io.bundle.package.v1":   "p",
}

// sampleBundle returns a bundle with everything that its directories may contain.
func sampleBundle(fsys fs.FS) BundleInput {
	return BundleInput{FS: fsys, ManifestsDir: "manifests", MetadataDir: "metadata", Annotations: bundleLabels}
}

func sampleBundleFS() fstest.MapFS {
	return fstest.MapFS{
		"manifests/csv.yaml":        {Data: []byte("kind: ClusterServiceVersion\n"), Mode: 0o755},
		"manifests/crd.yaml":        {Data: []byte("kind: CustomResourceDefinition\n"), Mode: 0o600},
		"metadata/annotations.yaml": {Data: []byte("annotations: {}\n"), Mode: 0o444},
		"tests/scorecard/c.yaml":    {Data: []byte("kind: Configuration\n")},
		"Dockerfile":                {Data: []byte("FROM scratch\n")},
	}
}

func bundleImage(t testing.TB, in BundleInput, o Options) *Image {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	img, err := Bundle(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	return img
}

func TestBundleImage(t *testing.T) {
	in := sampleBundle(sampleBundleFS())
	in.TestsDir = "tests/scorecard"
	img := bundleImage(t, in, Options{Labels: map[string]string{"more": "x"}, Created: time.Unix(86400, 5)})
	dir := filepath.Join(t.TempDir(), "out")
	push(t, img, "oci:"+dir)
	opened, tr := tree(t, "oci:"+dir, v1.Platform{}, ".")
	if got, want := fmt.Sprint(names(t, tr)),
		"[manifests/crd.yaml manifests/csv.yaml metadata/annotations.yaml tests/scorecard/c.yaml]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	labels := maps.Clone(bundleLabels)
	labels["more"] = "x"
	want := fmt.Sprintf("%+v", v1.ImageConfig{WorkingDir: "/", Labels: labels})
	if got := fmt.Sprintf("%+v", opened.Config.Config); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if opened.Config.OS != "linux" || opened.Config.Architecture != "amd64" ||
		!opened.Config.Created.Equal(time.Unix(86400, 0)) {
		t.Errorf("config %+v", opened.Config)
	}
	kinds := ""
	for i, l := range img.Layers {
		kinds += string(l.Kind) + " "
		if h := opened.Config.History[i]; h.CreatedBy != "bindery build bundle" || h.Comment != "/"+l.dir {
			t.Errorf("history %+v", h)
		}
	}
	if kinds != "manifests metadata tests " {
		t.Errorf("layers %s", kinds)
	}
}

// Different modes, times, time zone and umask of the source, and another directory, give the same digest. All files are
// readable by everyone and not executable.
func TestTwoBundleBuildsOneDigest(t *testing.T) {
	var digests []digest.Digest
	for i, mode := range []fs.FileMode{0o644, 0o600, 0o777} {
		t.Setenv("TZ", []string{"UTC", "Asia/Tokyo", "America/Lima"}[i])
		old := syscall.Umask([]int{0, 0o22, 0o77}[i])
		defer syscall.Umask(old)
		dir := t.TempDir()
		for name, f := range sampleBundleFS() {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700|mode), os.WriteFile(path, f.Data, mode),
				os.Chtimes(path, time.Time{}, time.Unix(int64(i)*1e8, 7))); err != nil {
				t.Fatal(err)
			}
		}
		digests = append(digests, bundleImage(t, sampleBundle(os.DirFS(dir)), Options{Jobs: i}).Digest)
	}
	if digests[0] != digests[1] || digests[0] != digests[2] {
		t.Errorf("digests: %v", digests)
	}
}

func TestChangedManifestsLeaveTheMetadata(t *testing.T) {
	in := sampleBundleFS()
	before := bundleImage(t, sampleBundle(in), Options{})
	in["manifests/csv.yaml"] = &fstest.MapFile{Data: []byte("kind: ClusterServiceVersion\nspec: {}\n")}
	after := bundleImage(t, sampleBundle(in), Options{})
	if before.Layers[0].Digest == after.Layers[0].Digest || before.Layers[1].Digest != after.Layers[1].Digest {
		t.Errorf("before %+v, after %+v", before.Layers, after.Layers)
	}
}

func TestRefusedBundles(t *testing.T) {
	many := sampleBundleFS()
	for i := range bundlefs.MaxFiles + 1 {
		many[fmt.Sprintf("manifests/%d", i)] = &fstest.MapFile{}
	}
	link := sampleBundleFS()
	link["manifests/dev"] = &fstest.MapFile{Mode: fs.ModeDevice}
	big := sampleBundleFS()
	big["manifests/big"] = &fstest.MapFile{Data: make([]byte, bundlefs.MaxFile+1)}
	white := sampleBundleFS()
	white["manifests/.wh.csv.yaml"] = &fstest.MapFile{}
	set := func(f func(*BundleInput)) BundleInput {
		in := sampleBundle(sampleBundleFS())
		f(&in)
		return in
	}
	for name, c := range map[string]struct {
		in   BundleInput
		want string
	}{
		"nothing":           {BundleInput{}, "needs a directory"},
		"no manifests":      {set(func(in *BundleInput) { in.ManifestsDir = "nosuch" }), "nosuch"},
		"outside":           {set(func(in *BundleInput) { in.ManifestsDir = "../x" }), "not a directory of the bundle"},
		"the root":          {set(func(in *BundleInput) { in.MetadataDir = "." }), "not a directory of the bundle"},
		"in each other":     {set(func(in *BundleInput) { in.TestsDir = "metadata/tests" }), "lies in the other"},
		"the same":          {set(func(in *BundleInput) { in.MetadataDir = "manifests" }), "lies in the other"},
		"many files":        {sampleBundle(many), "limit exceeded"},
		"a device":          {sampleBundle(link), "not a regular file"},
		"a large file":      {sampleBundle(big), "limit exceeded"},
		"a name that hides": {sampleBundle(white), "would hide other files"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := Bundle(t.Context(), c.in, Options{Dir: dir})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 1 { // a finished layer may be in the caller's directory
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A base keeps its layers and its command; its bundle is hidden.
func TestBundleBase(t *testing.T) {
	old := sampleBundleFS()
	old["manifests/old.yaml"] = &fstest.MapFile{Data: []byte("old")}
	base := filepath.Join(t.TempDir(), "base")
	push(t, bundleImage(t, sampleBundle(old), Options{Labels: map[string]string{"base": "1"}}), "oci:"+base)
	ref, err := NamedBase(imagetest.Client(t), "oci:"+base)
	if err != nil {
		t.Fatal(err)
	}
	img := bundleImage(t, sampleBundle(sampleBundleFS()), Options{Base: ref})
	out := filepath.Join(t.TempDir(), "out")
	push(t, img, "oci:"+out)
	opened, tr := tree(t, "oci:"+out, v1.Platform{}, "manifests", "metadata")
	if got := fmt.Sprint(names(t, tr)); strings.Contains(got, "old.yaml") || !strings.Contains(got, "csv.yaml") {
		t.Errorf("got %s", got)
	}
	if opened.Config.Config.Labels["base"] != "1" || len(opened.Layers) != 5 || len(opened.Config.History) != 5 {
		t.Errorf("got %+v", opened.Config)
	}
	if _, err := Bundle(t.Context(), sampleBundle(sampleBundleFS()),
		Options{Dir: t.TempDir(), Base: ref, MaxLayers: 4}); err == nil || !strings.Contains(err.Error(),
		"5 layers (limit 4)") {
		t.Errorf("too many layers: %v", err)
	}
}

// Other programs can read the image: skopeo, umoci, podman, a registry.
func TestOthersReadTheBundle(t *testing.T) {
	for _, f := range []Format{FormatOCI, FormatDocker} {
		img := bundleImage(t, sampleBundle(sampleBundleFS()), Options{Format: f})
		name, kind := "oci:"+filepath.Join(t.TempDir(), "out")+":v1", "application/vnd.oci.image.manifest.v1+json"
		if f == FormatDocker {
			name, kind = "dir:"+filepath.Join(t.TempDir(),
				"out"), "application/vnd.docker.distribution.manifest.v2+json"
		}
		push(t, img, name)
		var seen struct {
			Digest, Architecture, Os string
			Labels                   map[string]string
			Layers                   []string
		}
		if err := json.Unmarshal([]byte(client(t, "skopeo", "inspect", name)), &seen); err != nil {
			t.Fatal(err)
		}
		if seen.Digest != img.Digest.String() || !maps.Equal(seen.Labels, bundleLabels) || len(seen.Layers) != 2 ||
			seen.Os+"/"+seen.Architecture != "linux/amd64" {
			t.Errorf("%s: skopeo sees %+v", f, seen)
		}
		copied := filepath.Join(t.TempDir(), "copied")
		client(t, "skopeo", "--insecure-policy", "copy", "--preserve-digests", name, "dir:"+copied)
		text, err := os.ReadFile(filepath.Join(copied, "manifest.json"))
		if err != nil || string(text) != string(img.Manifest()) || img.MediaType != kind {
			t.Errorf("%s: skopeo's copy has another manifest, or it is no %s: %v", f, kind, err)
		}
	}
}

func TestUmociUnpacksTheBundle(t *testing.T) {
	img := bundleImage(t, sampleBundle(sampleBundleFS()), Options{Compression: layers.Gzip})
	dir := t.TempDir()
	push(t, img, "oci:"+dir+"/out:v1")
	client(t, "umoci", "unpack", "--rootless", "--image", dir+"/out:v1", dir+"/bundle")
	for path, mode := range map[string]fs.FileMode{
		"manifests": fs.ModeDir | 0o755, "manifests/csv.yaml": 0o644, "manifests/crd.yaml": 0o644,
		"metadata": fs.ModeDir | 0o755, "metadata/annotations.yaml": 0o644,
	} {
		info, err := os.Lstat(filepath.Join(dir, "bundle", "rootfs", path))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, want %v: %v", path, info.Mode(), mode, err)
		}
	}
}

func TestPodmanLoadsTheBundle(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("podman's store needs root here")
	}
	dir := t.TempDir()
	img := bundleImage(t, sampleBundle(sampleBundleFS()), Options{})
	push(t, img, "docker-archive:"+dir+"/docker.tar:localhost/bundle:v1",
		"oci-archive:"+dir+"/oci.tar:localhost/bundle:v2")
	store := []string{"--root", dir + "/root", "--runroot", dir + "/run", "--storage-driver", "vfs"}
	for archive, tag := range map[string]string{"docker.tar": "v1", "oci.tar": "v2"} {
		client(t, "podman", append(store, "load", "-q", "-i", dir+"/"+archive)...)
		id := strings.TrimSpace(client(t, "podman", append(store, "create", "localhost/bundle:"+tag, "/none")...))
		client(t, "podman", append(store, "cp", id+":/manifests/csv.yaml", dir+"/"+tag)...)
		if text, err := os.ReadFile(dir + "/" + tag); err != nil || string(text) != "kind: ClusterServiceVersion\n" {
			t.Errorf("%s: %q, %v", archive, text, err)
		}
	}
}

func TestRegistryTakesTheBundle(t *testing.T) {
	host, requests := debianRegistry(t)
	yes := true
	to := func(img *Image, name string) images.Result {
		t.Helper()
		d, err := images.BuiltIn().Parse("docker://" + host + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := images.Copy(t.Context(), img.Store(), img.Top(), []transport.Destination{d},
			images.CopyOptions{Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &yes, PlainHTTP: true}, Temp: t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		return r[0]
	}
	in := sampleBundleFS()
	for _, f := range []Format{FormatOCI, FormatDocker} {
		img := bundleImage(t, sampleBundle(in), Options{Format: f})
		if r := to(img, "a/bundle:"+string(f)); r.Digest != img.Digest {
			t.Errorf("%s: digest %s, announced %s", f, r.Digest, img.Digest)
		}
	}
	// With other manifests, the metadata layer is already in the registry.
	in["manifests/csv.yaml"] = &fstest.MapFile{Data: []byte("kind: ClusterServiceVersion\nspec: {}\n")}
	requests()
	if r := to(bundleImage(t, sampleBundle(in), Options{}), "a/bundle:v2"); len(r.Written) != 2 || len(r.Reused) != 1 {
		t.Errorf("written %v, reused %v", r.Written, r.Reused)
	}
}
