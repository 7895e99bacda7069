package bundle_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// Started as opm, the command has opm's flags, messages and files, and overwrites existing files.
func TestBundleGenerateAsOpm(t *testing.T) {
	dir := clitest.BundleDir(t)
	recorded, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := clitest.RunProgram(t, dir, "opm", "alpha", "bundle", "generate", "-d", "bundle/manifests", "-p", "etcd", "-c",
		"stable,beta", "-e", "stable")
	stamp := regexp.MustCompile(`(?m)^time="[^"]*" `)
	want := strings.ReplaceAll("level=info msg=\"Building annotations.yaml\"\nlevel=info msg=\"Writing "+
		"annotations.yaml in DIR/bundle/metadata\"\n"+
		"level=info msg=\"Building Dockerfile\"\nlevel=info msg=\"Writing bundle.Dockerfile in DIR\"\n", "DIR",
		recorded)
	if text := stamp.ReplaceAllString(got.Stderr, ""); got.Status != 0 || got.Stdout != "" || text != want {
		t.Errorf("status %d, %q\n%s\nwant\n%s", got.Status, got.Stdout, text, want)
	}
	if is, want := clitest.ReadFile(t, filepath.Join(dir, "bundle/metadata/annotations.yaml")), clitest.ReadFile(t,
		"../../../bundle/generate/testdata/etcd/annotations.yaml"); is != want {
		t.Errorf("got\n%s\nwant\n%s", is, want)
	}
	dockerfile := strings.ReplaceAll(clitest.ReadFile(t, "../../../bundle/generate/testdata/etcd/bundle.Dockerfile"), "COPY ",
		"COPY bundle/")
	if is := clitest.ReadFile(t, filepath.Join(dir, "bundle.Dockerfile")); is != dockerfile {
		t.Errorf("got\n%s\nwant\n%s", is, dockerfile)
	}
}

// The bundle's root is taken as by "bundle validate" and "build bundle". A default channel that the bundle is not in is a
// warning, and nothing to opm; "check" calls it an error.
func TestBundleGenerateOfARoot(t *testing.T) {
	for _, c := range []struct{ name, program, args, warning string }{
		{"the manifests", "bindery", "bundle generate bundle/manifests -p etcd -c alpha,stable -e stable --overwrite", ""},
		{"the root", "bindery", "bundle generate bundle -p etcd -c alpha,stable -e stable --overwrite", ""},
		{"the root in the flag", "bindery", "bundle generate -d bundle/ -p etcd -c alpha,stable -e stable --overwrite", ""},
		{"a misspelled default", "bindery", "bundle generate bundle -p etcd -c alpha,stable -e stabel --overwrite",
			`["alpha" "stable"], did you mean "stable"?`},
		{"another default", "bindery", "bundle generate bundle -p etcd -c alpha -e stable --overwrite",
			`["alpha"]: another bundle of the package must bring it`},
		{"for opm", "opm", "alpha bundle generate -d bundle/manifests -p etcd -c alpha,stable -e stabel", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.BundleDir(t)
			got := clitest.RunProgram(t, dir, c.program, strings.Fields(c.args)...)
			if got.Status != 0 || strings.Contains(got.Stderr, "default channel") != (c.warning != "") ||
				!strings.Contains(got.Stderr, c.warning) {
				t.Errorf("want %q in %+v", c.warning, got)
			}
			annotations := clitest.ReadFile(t, filepath.Join(dir, "bundle/metadata/annotations.yaml"))
			dockerfile := clitest.ReadFile(t, filepath.Join(dir, "bundle.Dockerfile"))
			if !strings.Contains(annotations, "manifests.v1: manifests/") ||
				!strings.Contains(dockerfile, "COPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\n") {
				t.Errorf("%s\n%s", annotations, dockerfile)
			}
			validate := clitest.RunProgram(t, dir, "bindery", "bundle", "validate", "bundle")
			check := clitest.RunProgram(t, dir, "bindery", "check", "bundle", "--profile", "opm")
			misplaced := c.warning != "" || c.program == "opm"
			if validate.Status != 0 || (check.Status == 1) != misplaced ||
				strings.Contains(validate.Stderr, "is none of the bundle's channels") != misplaced ||
				strings.Contains(check.Stdout, "error   bundle.default-channel\n") != misplaced {
				t.Errorf("%+v\n%+v", validate, check)
			}
		})
	}
}
