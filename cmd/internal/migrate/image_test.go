package migrate_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// described returns the description of an image in a layout or in a registry with plain HTTP.
func described(t *testing.T, name string) *images.Description {
	t.Helper()
	skip := true
	c, err := images.NewClient(images.ClientOptions{Policy: policy.Read,
		Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	d, err := c.Describe(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A multi-platform index image becomes a catalog image for the same platforms: with the catalog that the way through a
// directory gives, the labels and annotations of each platform without outdated ones, and a reproducible digest.
func TestMigrateImageToImage(t *testing.T) {
	dir := clitest.WorkDir(t)
	reg := testregistry.New(t)
	small := filepath.Join(dir, "small.db")
	reg.AddIndex(t, "acme/index", "v1", map[string]string{"com.example.index": "yes", v1.AnnotationRefName: "v1"},
		[]testregistry.Image{clitest.DatabaseImage(t, small, "s390x"), clitest.DatabaseImage(t, small, "ppc64le")},
		v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: "sha256:" + v1ZeroDigest, Size: 2,
			Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}})
	src, to := reg.Host()+"/acme/index:v1", reg.Host()+"/acme/catalog:v1"
	run := func(args ...string) clitest.Result {
		t.Helper()
		got := clitest.RunProgram(t, dir, "bindery", append(append([]string{"migrate"}, args...), "--use-http")...)
		if got.Status != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
		return got
	}
	got := run(src, "out", "-t", to, "--push", "--output", "oci:l:v1", "-o", "yaml", "--verify", "--server", "none",
		"--report", "r.json", "--label", "maintainer=me")
	lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
	if len(lines) != 3 || lines[0] != "oci:l:v1" || !strings.HasPrefix(lines[2], reg.Host()+"/acme/catalog@sha256:") {
		t.Errorf("%+v", got)
	}
	_, digest, _ := strings.Cut(lines[2], "@")
	for _, image := range []string{"oci:" + filepath.Join(dir, "l") + ":v1", to} {
		d := described(t, image)
		if d.Top.String() != digest || !d.Index || !maps.Equal(d.Annotations,
			map[string]string{"com.example.index": "yes"}) || len(d.Variants) != 2 {
			t.Fatalf("%s: %+v", image, d)
		}
		for i, arch := range []string{"s390x", "ppc64le"} {
			v := d.Variants[i]
			labels := map[string]string{build.ConfigsLabel: "/configs", "com.example.arch": arch, "maintainer": "me"}
			if v.Platform.Architecture != arch || !maps.Equal(v.Config.Config.Labels, labels) ||
				!maps.Equal(v.Annotations, map[string]string{"com.example.note": arch}) {
				t.Errorf("%s: %+v", arch, v)
			}
		}
	}
	var report struct {
		Source, Output, Image string
		Images                []string
		Verification          struct{ Same bool }
	}
	if err := json.Unmarshal([]byte(clitest.ReadFile(t, filepath.Join(dir, "r.json"))), &report); err != nil {
		t.Fatal(err)
	}
	if !report.Verification.Same || report.Output != "out" || len(report.Images) != 1 || report.Images[0] != lines[2] ||
		!strings.HasPrefix(report.Image, reg.Host()+"/acme/index@sha256:") {
		t.Errorf("%+v", report)
	}
	render := func(ref string) string {
		t.Helper()
		got := clitest.RunProgram(t, dir, "bindery", "render", ref, "--use-http", "--platform", "linux/s390x")
		if got.Status != 0 {
			t.Fatal(got.Stderr)
		}
		return got.Stdout
	}
	want := render("small.db")
	for _, ref := range []string{"out", "oci:l:v1", to, src} {
		if render(ref) != want {
			t.Errorf("%s renders otherwise", ref)
		}
	}
	// The same image without the directory.
	again := run(src, "-t", to, "--output", "oci-archive:a.tar", "-o", "yaml", "--server", "none", "--label",
		"maintainer=me")
	if !strings.HasSuffix(strings.TrimSpace(again.Stdout), digest) || strings.Contains(again.Stderr, dir) {
		t.Errorf("%+v, want the digest %s", again, digest)
	}
	// Additional platforms get the labels of the source's first one.
	run(src, "--output", "oci:l:arm", "--platform", "linux/arm64", "--server", "none")
	if d := described(t, "oci:"+filepath.Join(dir, "l")+":arm"); d.Index ||
		d.Variants[0].Platform.Architecture != "arm64" ||
		d.Variants[0].Config.Config.Labels["com.example.arch"] != "s390x" {
		t.Errorf("%+v", d)
	}
	// Without an image destination, --platform selects the platform to read, and a missing one is an error.
	if got := clitest.RunProgram(t, dir, "bindery", "migrate", src, "x", "--platform", "linux/arm64",
		"--use-http"); got.Status != 1 || !strings.Contains(got.Stderr, "no image for linux/arm64") {
		t.Errorf("%+v", got)
	}
	run(src, "x", "--platform", "linux/s390x")
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

const v1ZeroDigest = "0000000000000000000000000000000000000000000000000000000000000000"

// The server and all layers below it come from the binary image and are reused unchanged.
func TestMigrateOntoABinaryImage(t *testing.T) {
	dir := clitest.WorkDir(t)
	reg := testregistry.New(t)
	base := testregistry.Image{
		Labels: map[string]string{"base": "yes", "maintainer": "base"}, Cmd: []string{"/bin/opm", "registry", "serve"},
		Layers: []map[string]string{{"bin/opm": "#!/bin/sh\n"}},
	}
	reg.AddImage(t, "acme/opm", "v1", base)
	reg.AddImage(t, "acme/index", "v1", clitest.DatabaseImage(t, filepath.Join(dir, "small.db"), "amd64"))
	got := clitest.RunProgram(t, dir, "bindery", "migrate", reg.Host()+"/acme/index:v1", "-t", "acme/c:v1", "--output", "oci:l",
		"--binary-image", reg.Host()+"/acme/opm:v1", "--use-http", "--verify")
	if got.Status != 0 {
		t.Fatal(got.Stderr)
	}
	d, below := described(t, "oci:"+filepath.Join(dir, "l")+":v1"), described(t, reg.Host()+"/acme/opm:v1")
	config := d.Variants[0].Config
	if config.RootFS.DiffIDs[0] != below.Variants[0].Config.RootFS.DiffIDs[0] || strings.Join(config.Config.Entrypoint,
		" ") != "/bin/opm" || strings.Join(config.Config.Cmd, " ") != "serve /configs" {
		t.Errorf("%+v", config)
	}
	if l := config.Config.Labels; l["base"] != "yes" || l["maintainer"] != "acme" || l[build.DatabaseLabel] != "" ||
		l[build.ConfigsLabel] != "/configs" {
		t.Errorf("labels %v", l)
	}
}

// If one output cannot be written, all outputs are unchanged.
func TestMigrateToImageAllOrNothing(t *testing.T) {
	dir := clitest.WorkDir(t)
	reg := testregistry.New(t)
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := clitest.Snapshot(t, dir)
	for args, want := range map[string]string{
		"small.db out -t 127.0.0.1:1/x:v1 --push --server none --retries 0":     "connection refused",
		"small.db out -t x:v1 --output oci:file --server none":                  "file",
		"small.db out --output oci:l:v1 --server none --format docker":          "holds OCI images only",
		"small.db out --output oci:out/l:v1 --server none":                      "or inside it",
		"small.db out/x --output oci:out:v1 --server none":                      "or inside it",
		"small.db --output dir:small.db --server none":                          "is the input",
		"small.db out -t x:v1 --report -":                                       "name a file",
		"small.db --push":                                                       `required flag(s) "tag" not set`,
		"small.db":                                                              "accepts 2 arg(s), received 1",
		"small.db out -o toml":                                                  "expected (json|yaml)",
		"small.db out --platform linux/amd64 --platform linux/arm64":            "require an image as output",
		"small.db out --sign-key k":                                             "--sign-key requires an image as output",
		"small.db out --metadata-file m":                                        "--metadata-file requires an image as output",
		"small.db out --label a=b":                                              "--label requires an image as output",
		"small.db out --results x":                                              "--results requires --from-file",
		"small.db -t x:v1 --server base":                                        "requires --binary-image",
		"small.db out -t x:v1 --digest-file nosuch/digest --server none":        "--digest-file",
		"nosuch.db -t x:v1 --server none":                                       "no such file",
		"small.db out --dry-run --verify --server none -t x:v1 --max-layers 0x": "max-layers",
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"migrate", "--use-http"}, strings.Fields(args)...)...)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
		if after := clitest.Snapshot(t, dir); after != before {
			t.Fatalf("%s: files before\n%s\nafter\n%s", args, before, after)
		}
	}
	if len(reg.Requests()) > 0 {
		t.Errorf("%v", reg.Requests())
	}
	got := clitest.RunProgram(t, dir, "bindery", "migrate", "small.db", "out", "-t", "example.com/x:v1", "--dry-run",
		"--verify", "--server", "none")
	if got.Status != 0 || !strings.HasPrefix(got.Stdout, "example.com/x@sha256:") || !strings.Contains(got.Stderr,
		"would write 2 packages; verified") {
		t.Errorf("%+v", got)
	}
	if after := clitest.Snapshot(t, dir); after != before {
		t.Errorf("a dry run: files before\n%s\nafter\n%s", before, after)
	}
}

// The image has the valid packages too.
func TestMigrateKeepGoingToImage(t *testing.T) {
	dir := clitest.WorkDir(t)
	breakDatabase(t, filepath.Join(dir, "small.db"))
	if got := clitest.RunProgram(t, dir, "bindery", "migrate", "small.db", "--output", "oci:l:v1", "--server",
		"none"); got.Status != 1 || clitest.Exists(t, filepath.Join(dir, "l")) {
		t.Errorf("%+v", got)
	}
	got := clitest.RunProgram(t, dir, "bindery", "migrate", "small.db", "--output", "oci:l:v1", "--server", "none",
		"--keep-going", "--verify")
	if got.Status != 4 || !strings.Contains(got.Stdout, "oci:l:v1\nsha256:") || !strings.Contains(got.Stderr,
		"silicom") {
		t.Errorf("%+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "list", "packages", "oci:l:v1"); !strings.Contains(got.Stdout, "etcd") ||
		strings.Contains(got.Stdout, "silicom") {
		t.Errorf("%+v", got)
	}
}

// Images of every transport give the same migration as their database, with verification and findings.
func TestMigrateFromEveryTransport(t *testing.T) {
	dir := clitest.WorkDir(t)
	db := unpackedDatabase(t, dir, "schema-3")
	reg := testregistry.New(t)
	src := reg.Host() + "/acme/index:v1"
	reg.AddImage(t, "acme/index", "v1", clitest.DatabaseImage(t, db, "amd64"))
	clitest.DatabaseImage(t, db, "amd64").WriteLayout(t, filepath.Join(dir, "layout"), "v1")
	if got := clitest.RunProgram(t, dir, "bindery", "migrate", filepath.Base(db), "want", "--report",
		"want.json"); got.Status != 0 {
		t.Fatal(got.Stderr)
	}
	// A catalog image in every transport, too.
	for _, outputs := range []string{"oci:fbc oci-archive:fbc.oci.tar:v1 dir:fbc.dir",
		"docker-archive:fbc.docker.tar --format docker"} {
		outputs = strings.NewReplacer(" oci", " --output oci", " dir", " --output dir").Replace(outputs)
		args := append([]string{"migrate", filepath.Base(db), "-t", "x:v1", "--server", "none", "--output"},
			strings.Fields(outputs)...)
		if got := clitest.RunProgram(t, dir, "bindery", args...); got.Status != 0 {
			t.Fatal(got.Stderr)
		}
	}
	want := clitest.RunProgram(t, dir, "bindery", "render", "want").Stdout
	for i, ref := range []string{src, "docker://" + src, "oci:layout:v1", "oci:fbc:v1", "oci-archive:fbc.oci.tar:v1",
		"docker-archive:fbc.docker.tar", "dir:fbc.dir"} {
		out := "out" + string(rune('a'+i))
		got := clitest.RunProgram(t, dir, "bindery", "migrate", ref, out, "--verify", "--report", out+".json", "--use-http")
		if got.Status != 0 || !strings.Contains(got.Stderr, "verified") {
			t.Errorf("%s: %+v", ref, got)
			continue
		}
		if clitest.RunProgram(t, dir, "bindery", "render", out).Stdout != want {
			t.Errorf("%s: another catalog", ref)
		}
		if database := !strings.Contains(ref, "fbc"); database != strings.Contains(got.Stderr,
			"derived data that the database does not store (4") {
			t.Errorf("%s: findings: %s", ref, got.Stderr)
		}
	}
}

// One catalog may be used for all platforms only if they hold the same; --verify checks that for the platforms of the
// new image.
func TestMigratePlatformsThatDiffer(t *testing.T) {
	dir := clitest.WorkDir(t)
	reg := testregistry.New(t)
	subs := unpackedDatabase(t, dir, "subs")
	same := clitest.DatabaseImage(t, filepath.Join(dir, "small.db"), "arm64")
	same.Layers = append(same.Layers, map[string]string{"etc/other": "layers"})
	reg.AddIndex(t, "acme/index", "v1", nil, []testregistry.Image{
		clitest.DatabaseImage(t, filepath.Join(dir, "small.db"), "amd64"), same, clitest.DatabaseImage(t, subs, "s390x"),
	})
	src := reg.Host() + "/acme/index:v1"
	got := clitest.RunProgram(t, dir, "bindery", "migrate", src, "--output", "oci:l:v1", "--server", "none", "--verify",
		"--use-http")
	if got.Status != 1 || !strings.Contains(got.Stderr, "have different catalogs: linux/amd64 and linux/s390x") ||
		clitest.Exists(t, filepath.Join(dir, "l")) {
		t.Errorf("%+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "migrate", src, "--output", "oci:l:v1", "--server", "none", "--verify",
		"--use-http", "--platform", "linux/arm64,linux/amd64"); got.Status != 0 {
		t.Errorf("%+v", got)
	}
}
