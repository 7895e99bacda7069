package sign_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// indexDigest is the digest of the index in the vectors of several platforms.
const indexDigest = "sha256:b73707abeff06f5228e11b7d1afa9666db98827502c454af0c2df79e4c641760"

// copyAnswer is the answer of "copy -o json".
type copyAnswer struct {
	Images []struct {
		Source, Destination, Reference, Digest string
		Attachments                            []struct {
			Digest, Subject, Tag, ArtifactType string
			There, Added                       bool
		}
		Problems []string
	}
}

func copyJSON(t *testing.T, dir string, args ...string) copyAnswer {
	t.Helper()
	var answer copyAnswer
	text := clitest.Done(t, dir, "bindery", append([]string{"copy", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return answer
}

// An image comes back from a registry, through an archive and another registry, with all that is attached to it.
func TestCopyImages(t *testing.T) {
	dir, one, two := t.TempDir(), testregistry.New(t), testregistry.New(t)
	two.SetReferrers(testregistry.Referrers{API: true, WrongTypes: true})
	layout := "oci:" + supplytest.Unpack(t, "sig-cimage-index-all") + ":multi"
	clitest.WriteFile(t, filepath.Join(dir, "sbom.json"), "{}")
	clitest.Done(t, dir, "bindery", "attach", layout, "sbom.json", "--type", "application/spdx+json")
	out := clitest.Done(t, dir, "bindery", "copy", "--use-http", layout, one.Host()+"/acme/etcd:multi")
	if want := "docker://" + one.Host() + "/acme/etcd:multi\n" + one.Host() + "/acme/etcd@" + indexDigest + "\n"; out !=
		want {
		t.Errorf("got %q, want %q", out, want)
	}
	clitest.Done(t, dir, "bindery", "copy", "--use-http", one.Host()+"/acme/etcd:multi", "oci-archive:x.tar:multi")
	answer := copyJSON(t, dir, "--use-http", "oci-archive:x.tar", "docker://"+two.Host()+"/b/etcd:v1")
	if len(answer.Images) != 1 || answer.Images[0].Digest != indexDigest || len(answer.Images[0].Attachments) != 4 {
		t.Errorf("%+v", answer)
	}
	tags := slices.DeleteFunc(one.Tags("acme/etcd"),
		func(tag string) bool { return !strings.HasPrefix(tag, "sha256-") })
	if len(tags) != 4 { // three of signatures, and the fallback tag
		t.Errorf("tags %v", tags)
	}
	for _, tag := range tags {
		if strings.HasSuffix(tag,
			".sig") && string(one.Manifest("acme/etcd", tag)) != string(two.Manifest("b/etcd", tag)) {
			t.Errorf("%s differs", tag)
		}
	}
	trees := map[string]string{}
	for _, name := range []string{layout, one.Host() + "/acme/etcd:multi", "oci-archive:x.tar",
		two.Host() + "/b/etcd:v1"} {
		_, below, _ := strings.Cut(clitest.Done(t, dir, "bindery", "tree", "--use-http", name), "\n")
		trees[below] = name
	}
	if len(trees) != 1 {
		t.Errorf("trees %v", trees)
	}
	again := copyJSON(t, dir, "--use-http", "oci-archive:x.tar", two.Host()+"/b/etcd:v1")
	for _, a := range again.Images[0].Attachments {
		if !a.There {
			t.Errorf("sent again: %+v", a)
		}
	}
}

// --with chooses what goes with an image.
func TestCopyWith(t *testing.T) {
	dir := t.TempDir()
	layout := "oci:" + supplytest.Unpack(t, "sig-cimage-p256") + ":v1"
	clitest.WriteFile(t, filepath.Join(dir, "sbom.json"), "{}")
	clitest.Done(t, dir, "bindery", "attach", layout, "sbom.json", "--type", "application/spdx+json")
	for with, want := range map[string]int{"none": 0, "signatures": 1, "referrers": 1, "signatures,referrers": 2} {
		answer := copyJSON(t, dir, layout, "oci:"+strings.ReplaceAll(with, ",", "-")+":v1", "--with", with)
		if got := len(answer.Images[0].Attachments); got != want {
			t.Errorf("--with %s: %d attachments instead of %d", with, got, want)
		}
	}
	for _, c := range []struct{ name, args, want string }{
		{"no place for attachments", "docker-archive:x.tar", "--with none"},
		{"no place for attachments", "dir:x", "--with none"},
		{"unknown kind", "oci:x --with everything", "(signatures|referrers|none)"},
		{"none and something", "oci:x --with none,referrers", "--with none excludes"},
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"copy", layout}, strings.Fields(c.args)...)...)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	of := clitest.Done(t, dir, "bindery", "copy", layout, "docker-archive:x.tar", "--with", "none")
	if !strings.HasSuffix(of, "\nsha256:00a8352e405c0289f552a59e94682534c793ffa121cd93de0d4c13b5de3f99a8\n") {
		t.Errorf("%q is not the digest of the image", of)
	}
	clitest.Done(t, dir, "bindery", "copy", "docker-archive:x.tar", "dir:x")
}

// Many images are copied by a file, in the form that "registry mirror" prints.
func TestCopyFromFile(t *testing.T) {
	dir := t.TempDir()
	one, two := "oci:"+supplytest.Unpack(t, "sig-cimage-p256")+":v1", "oci:"+supplytest.Unpack(t,
		"multi-unsigned")+":multi"
	clitest.WriteFile(t, filepath.Join(dir, "list"),
		"# images\n"+one+"  oci:mirror:one # the first\n\n"+two+"=oci:mirror:two\n")
	answer := copyJSON(t, dir, "--from-file", "list", "--jobs", "2")
	if len(answer.Images) != 2 || answer.Images[0].Destination != "oci:mirror:one" ||
		answer.Images[1].Destination != "oci:mirror:two" || len(answer.Images[0].Attachments) != 1 {
		t.Errorf("%+v", answer)
	}
	clitest.Done(t, dir, "bindery", "tree", "oci:mirror:one")
	clitest.Done(t, dir, "bindery", "tree", "oci:mirror:two")
	for text, want := range map[string]string{
		"oci:a":            "list:1: expected a source and a destination",
		"\noci:a nosuch:b": "list:2: ",
		"oci:a oci-archive:x\n oci:b=oci-archive:x:v2": "list:2: x is the destination of two images",
		"# nothing": "list names no image",
	} {
		clitest.WriteFile(t, filepath.Join(dir, "list"), text)
		got := clitest.RunProgram(t, dir, "bindery", "copy", "--from-file", "list")
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// A policy that refuses an image keeps it from being copied.
func TestCopyAsksThePolicy(t *testing.T) {
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "policy.json"), `{"default":[{"type":"reject"}]}`)
	got := clitest.RunProgram(t, dir, "bindery", "copy", "--policy", "policy.json",
		"oci:"+supplytest.Unpack(t, "unsigned")+":v1", "oci:x")
	if got.Status != 1 || !strings.Contains(got.Stderr, "policy") {
		t.Errorf("%+v", got)
	}
}

// The same file and flags give the same artifact, and what a manifest says of itself cannot write to the terminal.
func TestAttachAndTree(t *testing.T) {
	dir := t.TempDir()
	layout := supplytest.Unpack(t, "multi-unsigned")
	name := "oci:" + layout + ":multi"
	clitest.WriteFile(t, filepath.Join(dir, "a.txt"), "content")
	args := []string{"attach", name, "a.txt", "--type", "application/x-a", "--media-type", "text/plain", "--annotation",
		"k=v", "--annotation", "dev.sigstore.bundle.predicateType=\x1b[31mred\nnext line"}
	first := clitest.Done(t, dir, "bindery", args...)
	before := clitest.ReadFile(t, filepath.Join(layout, "index.json"))
	if again := clitest.Done(t, dir, "bindery", args...); again != first || clitest.ReadFile(t, filepath.Join(layout,
		"index.json")) != before {
		t.Errorf("%q, then %q", first, again)
	}
	digest := strings.TrimSpace(first)
	tree := clitest.Done(t, dir, "bindery", "tree", name)
	want := name + "\n" +
		"application/vnd.oci.image.index.v1+json  " + indexDigest + "\n" +
		"├── application/x-a  " + digest + `  \x1b[31mred\nnext line` + "\n" +
		"├── linux/amd64  sha256:a09b8c5ba40248e8c499db94c58ed6d5a6bef87bb85eef8b61e073d95276fc9d\n" +
		"└── linux/arm64  sha256:e0ea3f408c07bd6aa5f2fc7b41c4b0d4ff87b293e1690639ad1c01113ad19cbb\n"
	if tree != want {
		t.Errorf("got\n%s\nwant\n%s", tree, want)
	}
	var answer struct {
		Digest   string
		Attached []struct {
			Digest, ArtifactType string
			Annotations          map[string]string
		}
		Images []struct{ Platform string }
	}
	text := clitest.Done(t, dir, "bindery", "tree", name, "-o", "json")
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Images) != 2 ||
		len(answer.Attached) != 1 ||
		answer.Attached[0].Annotations["k"] != "v" || strings.Contains(text, "\x1b") {
		t.Errorf("%s", text)
	}
	for args, want := range map[string]string{
		"a.txt":                           `"type" not set`,
		"a.txt --type sbom":               "expected a media type",
		"nosuch --type a/b":               "nosuch",
		"a.txt --type a/b --annotation k": "key=value",
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"attach", name}, strings.Fields(args)...)...)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	got := clitest.RunProgram(t, dir, "bindery", "attach", "dir:x", "a.txt", "--type", "a/b")
	if got.Status != 1 || strings.Count(got.Stderr, "dir:x") != 1 ||
		!strings.Contains(got.Stderr, "keeps no signatures or other attachments") ||
		!strings.Contains(got.Stderr, "hint: copy the image") {
		t.Errorf("%+v", got)
	}
}

// An attachment that is listed and missing at the source is no reason to keep the image, and none for silence.
func TestCopyReportsWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	layout := supplytest.Unpack(t, "bundle-min-p256")
	const bundle = "2ff56fd22dd526d1067a351bb44bf6422bba1d798ac1e0dea7ea7c232f95518e"
	if err := os.Remove(filepath.Join(layout, "blobs", "sha256", bundle)); err != nil {
		t.Fatal(err)
	}
	got := clitest.RunProgram(t, dir, "bindery", "copy", "oci:"+layout+":v1", "oci:to:v1", "-o", "json")
	if got.Status != 4 || !strings.Contains(got.Stderr, "1 attachment not") || !strings.Contains(got.Stdout,
		"problems") {
		t.Errorf("%+v", got)
	}
	clitest.Done(t, dir, "bindery", "inspect", "oci:to:v1")
}
