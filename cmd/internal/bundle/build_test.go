package bundle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testbundles"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A bundle image renders to the same blob as the bundle's directory, and building it does not change the directory.
func TestBuildBundle(t *testing.T) {
	dir := clitest.BundleDir(t)
	before := clitest.Snapshot(t, filepath.Join(dir, "bundle"))
	out := clitest.Done(t, dir, "bindery", "build", "bundle", "bundle", "-t", "example.com/acme/etcd:v1", "--digest-file",
		"digest")
	if want := "oci:etcd.oci:v1\nexample.com/acme/etcd@" + clitest.ReadFile(t,
		filepath.Join(dir, "digest")) + "\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if after := clitest.Snapshot(t, filepath.Join(dir, "bundle")); after != before {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
	for _, label := range []string{"operators.operatorframework.io.bundle.manifests.v1=other/",
		clitest.TestConfigsLabel + "=/configs"} {
		if got := clitest.RunProgram(t, dir, "bindery", "build", "bundle", "bundle", "-t", "a/b:v1", "--dry-run", "--label",
			label); got.Status != 1 || !strings.Contains(got.Stderr, "the label contradicts the image: "+label[:40]) {
			t.Errorf("--label %s: %+v", label, got)
		}
	}
	if fromImage, fromDir := clitest.Done(t, dir, "bindery", "render", "oci:etcd.oci:v1"), clitest.Done(t, dir, "bindery", "render",
		"bundle"); fromImage != fromDir {
		t.Errorf("the image renders as\n%s\nthe directory as\n%s", fromImage, fromDir)
	}
	img, files := clitest.ImageFiles(t, "oci:"+dir+"/etcd.oci:v1")
	if len(files) != 5 || img.Config.Config.Labels["operators.operatorframework.io.bundle.package.v1"] != "etcd" {
		t.Errorf("labels %q, files %v", img.Config.Config.Labels, files)
	}
	for name, text := range files {
		if text != clitest.ReadFile(t, filepath.Join(dir, "bundle", name)) {
			t.Errorf("%s is another", name)
		}
	}
}

// Every valid recorded bundle renders from its image as from its directory.
func TestBuildRecordedBundles(t *testing.T) {
	built := 0
	for _, name := range testbundles.Names(t) {
		if !strings.Contains(name, "synth") && !strings.Contains(name, "skupper") && !strings.Contains(name,
			"pelorus") {
			continue // the others are similar
		}
		dir := t.TempDir()
		testbundles.Write(t, dir, name)
		args := []string{"build", "bundle", name, "-t", "example.com/x:v1", "--output", "oci:out"}
		if got := clitest.RunProgram(t, dir, "bindery", args...); got.Status != 0 {
			if !strings.Contains(got.Stderr, "the bundle has ") {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		built++
		if fromImage, fromDir := clitest.Done(t, dir, "bindery", "render", "oci:out:v1"), clitest.Done(t, dir, "bindery", "render",
			name); fromImage != fromDir {
			t.Errorf("%s: the image renders otherwise than the directory", name)
		}
	}
	if built < 20 {
		t.Errorf("only %d bundles were built", built)
	}
}

// The digest does not depend on umask, user, time zone, locale or directory.
func TestBundleDigestIsThatOfTheContent(t *testing.T) {
	var digests []string
	for i, prefix := range []string{"umask 022; ", "umask 077; TZ=Asia/Tokyo ",
		"umask 000; LANG=de_DE.UTF-8 setpriv --reuid 65534 --clear-groups ", "TMPDIR=/nosuch "} {
		if strings.Contains(prefix,
			"setpriv") && (os.Getuid() != 0 || exec.Command("setpriv", "--version").Run() != nil) {
			prefix = "umask 000; LANG=de_DE.UTF-8 "
		}
		dir := clitest.BundleDir(t)
		if strings.Contains(prefix, "setpriv") {
			// The other user must be able to read the program and the bundle, and to write the image.
			for _, path := range []string{dir, filepath.Dir(dir), clitest.BinDir} {
				if err := os.Chmod(path, 0o777); err != nil {
					t.Fatal(err)
				}
			}
		}
		script := prefix + filepath.Join(clitest.BinDir,
			"bindery") + " build bundle bundle -t x:v1 --output oci:out" + fmt.Sprint(i)
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = dir
		got := clitest.Finish(t, cmd)
		if got.Status != 0 {
			t.Fatalf("%s: %+v", script, got)
		}
		_, digest, _ := strings.Cut(got.Stdout, "@")
		digests = append(digests, digest)
	}
	for _, d := range digests {
		if d != digests[0] {
			t.Errorf("digests %q", digests)
		}
	}
}

// Started as opm: opm's flags work, metadata is generated in memory, and no container tool is needed.
func TestBundleBuildAsOpm(t *testing.T) {
	dir := clitest.BundleDir(t)
	if err := os.RemoveAll(filepath.Join(dir, "bundle", "metadata")); err != nil {
		t.Fatal(err)
	}
	before := clitest.Snapshot(t, filepath.Join(dir, "bundle"))
	clitest.Done(t, dir, "opm", "alpha", "bundle", "build", "-d", "bundle/manifests", "-t", "example.com/etcd:v1", "-p", "etcd",
		"-c", "stable,beta", "-e", "stable", "-b", "podman")
	if after := clitest.Snapshot(t, filepath.Join(dir, "bundle")); after != before {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
	img, files := clitest.ImageFiles(t, "oci:"+dir+"/etcd.oci:v1")
	want := clitest.ReadFile(t, "../../../bundle/generate/testdata/etcd/annotations.yaml")
	if files["metadata/annotations.yaml"] != want ||
		img.Config.Config.Labels["operators.operatorframework.io.bundle.channels.v1"] != "stable,beta" {
		t.Errorf("annotations\n%s\nlabels %q", files["metadata/annotations.yaml"], img.Config.Config.Labels)
	}
	// With -o the files are also written to disk, with -u to a copy.
	clitest.Done(t, dir, "opm", "alpha", "bundle", "build", "-d", "bundle/manifests", "-t", "example.com/etcd:v1", "-p", "etcd",
		"-c", "stable,beta", "-e", "stable", "-o")
	if got := clitest.ReadFile(t, filepath.Join(dir, "bundle/metadata/annotations.yaml")); got != want {
		t.Errorf("got\n%s", got)
	}
	clitest.Done(t, dir, "opm", "alpha", "bundle", "build", "-d", "bundle/manifests", "-t", "example.com/etcd:v1", "-u", "copy",
		"-o", "-c", "alpha")
	for file, text := range map[string]string{
		"copy/metadata/annotations.yaml": clitest.ReadFile(t, "../../../bundle/generate/testdata/etcd/outdir-annotations.yaml"),
		"bundle.Dockerfile": strings.ReplaceAll(
			clitest.ReadFile(t, "../../../bundle/generate/testdata/etcd/outdir-bundle.Dockerfile"), "gen2/", "copy/"),
	} {
		if got := clitest.ReadFile(t, filepath.Join(dir, file)); got != text {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, text)
		}
	}
}

func TestBuildPlainBundle(t *testing.T) {
	dir := t.TempDir()
	text := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n---\napiVersion: v1\nkind: " +
		"ServiceAccount\nmetadata:\n  name: b\n  namespace: a\n"
	if err := os.MkdirAll(filepath.Join(dir, "p", "manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "p", "manifests", "all.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	clitest.Done(t, dir, "bindery", "build", "bundle", "p", "--plain", "-p", "acme", "-t", "example.com/p:v1")
	img, files := clitest.ImageFiles(t, "oci:"+dir+"/p.oci:v1")
	if files["manifests/all.yaml"] != text || !strings.Contains(files["metadata/annotations.yaml"],
		"mediatype.v1: plain+v0\n") || len(files) != 2 {
		t.Errorf("files %q", files)
	}
	if l := img.Config.Config.Labels; l["operators.operatorframework.io.bundle.mediatype.v1"] != "plain+v0" ||
		l["operators.operatorframework.io.bundle.package.v1"] != "acme" || len(l) != 4 {
		t.Errorf("labels %q", l)
	}
	// Neither a package nor channels are required.
	clitest.Done(t, dir, "bindery", "build", "bundle", "p/manifests", "--plain", "-t", "example.com/p:v1", "--output",
		"oci:none:v1")
	if got := clitest.RunProgram(t, dir, "bindery", "bundle", "validate", "oci:none:v1"); got.Status != 0 {
		t.Errorf("%+v", got)
	}
	if text := clitest.Done(t, dir, "bindery", "inspect", "oci:none:v1") + clitest.Done(t, dir, "bindery", "verify",
		"oci:none:v1"); !strings.Contains(text, "bundle manifests/") {
		t.Errorf("a plain bundle is inspected as\n%s", text)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "bundle", "validate", "--plain", "p/manifests"); got.Status != 0 {
		t.Errorf("a flat directory: %+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "bundle", "validate", "--plain", "p"); got.Status != 0 {
		t.Errorf("manifests without metadata: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "p", "manifests", "bad.yaml"), []byte("a: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "build", "bundle", "p", "--plain", "-t",
		"example.com/p:v2"); got.Status != 1 || !strings.Contains(got.Stderr, "manifests/bad.yaml") {
		t.Errorf("%+v", got)
	}
}

func TestPushBundle(t *testing.T) {
	registry := testregistry.New(t)
	dir := clitest.BundleDir(t)
	name := registry.Host() + "/acme/etcd:v1"
	for _, format := range []string{"oci", "docker"} {
		out := clitest.Done(t, dir, "bindery", "build", "bundle", "bundle", "-t", name, "--push", "--use-http", "--format",
			format)
		_, digest, _ := strings.Cut(strings.TrimSpace(out), "@")
		rendered := clitest.Done(t, dir, "bindery", "render", registry.Host()+"/acme/etcd:v1", "--use-http", "--no-cache")
		var blob struct{ Image string }
		if err := json.Unmarshal([]byte(rendered), &blob); err != nil || blob.Image != name {
			t.Errorf("%s (%s): rendered as %.200s: %v", format, digest, rendered, err)
		}
	}
}

// Archives are created with the permissions of ordinary files, following the umask.
func TestArchivesHonourUmask(t *testing.T) {
	dir := clitest.BundleDir(t)
	for umask, want := range map[string]os.FileMode{"022": 0o644, "077": 0o600, "002": 0o664} {
		cmd := clitest.Command(dir, "bindery", "build", "bundle", "bundle", "-t", "x:v1", "--output",
			"oci-archive:o"+umask+".tar", "--output", "docker-archive:d"+umask+".tar")
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", "umask " + umask + `; exec "$@"`, "sh"},
			append([]string{cmd.Path}, cmd.Args[1:]...)...)
		if got := clitest.Finish(t, cmd); got.Status != 0 {
			t.Fatal(got)
		}
		for _, name := range []string{"o", "d"} {
			info, err := os.Stat(filepath.Join(dir, name+umask+".tar"))
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("umask %s: %v, %v; want %v", umask, info.Mode(), err, want)
			}
		}
	}
}
