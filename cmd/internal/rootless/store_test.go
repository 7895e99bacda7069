//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package rootless_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	rootlesscmd "github.com/operator-bindery/bindery/cmd/internal/rootless"
	"github.com/operator-bindery/bindery/images/library"
)

func TestCommandLineNamesAStore(t *testing.T) {
	for line, want := range map[string]bool{
		"build catalog c -t a/b:v1 --load":                   true,
		"build catalog c -t a/b:v1 -load=true":               true,
		"build catalog c -t a/b:v1 --load=false":             false,
		"build catalog c -t a/b:v1 --load=0":                 false,
		"build catalog c -t a/b:v1 --load=maybe":             false,
		"build catalog c --output containers-storage:a/b:v1": true,
		"inspect containers-storage:a/b@sha256:0000000000000000000000000000000000000000000000000000000000000000": true,
		"inspect --from=containers-storage:[overlay@/g+/r:a=b,c=d]a/b:v1":                                        true,
		"build containerfile . --build-arg=BASE=containers-storage:a/b:v1":                                       true,
		"build catalog c --label a=containers-storage:a/b:v1":                                                    false,
		"build catalog c --label=a=containers-storage:a/b:v1":                                                    false,
		"catalog deprecate c p --message containers-storage:a/b:v1":                                              false,
		"inspect containers-storage:":                                                                            false,
		"build catalog my-containers-storage:a":                                                                  false,
		"build catalog ./containers-storage:a/b:v1":                                                              false,
		"build catalog c --output=oci:x,containers-storage:[vfs@/g]a/b:v1":                                       true,
		"list packages containers-storage:a/b:v1":                                                                true,
		"BINDERY_BASE=containers-storage:a/b:v1 build catalog c -t a/b:v1":                                       true,
		"EDITOR=containers-storage: build catalog c -t a/b:v1":                                                   false,
		"build catalog load -t a/b:v1 --loader":                                                                  false,
		"build catalog c -t a/b:v1 --output oci:containers-storage --push -q":                                    false,
	} {
		var args, environ []string
		for _, word := range strings.Fields(line) {
			if name, _, ok := strings.Cut(word, "="); ok && name == strings.ToUpper(name) {
				environ = append(environ, word)
			} else {
				args = append(args, word)
			}
		}
		if got := rootlesscmd.NamesStore(args, environ); got != want {
			t.Errorf("%q: got %v", line, got)
		}
	}
}

// The program writes an image to a store and reads it back; --load uses the user's store and podman's name for the
// image.
func TestLoadedCatalogIsRead(t *testing.T) {
	dir := clitest.WorkDir(t)
	// directories of the image are read-only and must be made writable before an ordinary user can remove them
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(name, 0o700)
			}
			return err
		})
	})
	conf := filepath.Join(dir, "storage.conf")
	if err := os.WriteFile(conf,
		[]byte("[storage]\ndriver = \"vfs\"\ngraphroot = \""+dir+"/root\"\nrunroot = \""+dir+"/run\"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERS_STORAGE_CONF", conf)
	t.Setenv("STORAGE_DRIVER", "")
	os.Unsetenv("STORAGE_DRIVER")
	r := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "cat", "-t", "acme/cat:v1", "--load", "--server", "none",
		"--no-cache", "-q")
	if r.Status != 0 || !strings.HasPrefix(r.Stdout, "containers-storage:localhost/acme/cat:v1\nacme/cat@sha256:") {
		t.Fatalf("%+v", r)
	}
	_, digest, _ := strings.Cut(strings.TrimSpace(r.Stdout), "@")
	for _, name := range []string{"containers-storage:acme/cat:v1",
		"containers-storage:[vfs@" + dir + "/root+" + dir + "/run]localhost/acme/cat:v1"} {
		if r := clitest.RunProgram(t, dir, "bindery", "inspect", name, "-q"); r.Status != 0 || !strings.Contains(r.Stdout,
			digest) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := clitest.RunProgram(t, dir, "bindery", "list", "packages", "containers-storage:acme/none:v1", "-q"); r.Status != 1 ||
		!strings.Contains(r.Stderr, "no such image in the store "+dir+"/root (vfs)") {
		t.Errorf("%+v", r)
	}
}

func TestLoadIsTheStoreUnderEachName(t *testing.T) {
	for name, want := range map[string]string{
		"c:v1": "containers-storage:localhost/c:v1", "acme/c:v1": "containers-storage:localhost/acme/c:v1",
		"quay.io/acme/c:v1":   "containers-storage:quay.io/acme/c:v1",
		"localhost/c:v1":      "containers-storage:localhost/c:v1",
		"localhost:5000/c:v1": "containers-storage:localhost:5000/c:v1",
	} {
		if got := library.InStore(name).String(); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
