package clitest

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/operator-bindery/bindery/internal/testing/releasetest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// ReleaseWorld has releases at a registry with their servers, and a registry to mirror to.
type ReleaseWorld struct {
	*testing.T
	Dir            string
	Source, Target *testregistry.Registry
	Servers        *releasetest.World
	conf           string
	key            string
	data           string
}

// NewReleaseWorld starts the registries and the servers.
func NewReleaseWorld(t *testing.T) *ReleaseWorld {
	t.Helper()
	w := &ReleaseWorld{T: t, Dir: t.TempDir(), Source: releasetest.Source(t), Target: testregistry.New(t),
		Servers: releasetest.Servers(t)}
	w.conf = w.Source.RegistriesConf(t, releasetest.Host)
	for name, at := range map[string]*string{"keys/release.asc": &w.key, "graph-data.tar.gz": &w.data} {
		text, err := fs.ReadFile(releasetest.Files(t), name)
		if err != nil {
			t.Fatal(err)
		}
		*at = filepath.Join(w.Dir, filepath.Base(name))
		WriteFile(t, *at, string(text))
	}
	return w
}

// Set writes an image set with a platform, and what stands beside it.
func (w *ReleaseWorld) Set(name, platform string, beside ...string) {
	w.Helper()
	kind, stanza := "ImageSetConfiguration", "mirror"
	if strings.HasPrefix(name, "delete") {
		kind, stanza = "DeleteImageSetConfiguration", "delete"
	}
	WriteFile(w.T, filepath.Join(w.Dir, name), "kind: "+kind+"\napiVersion: mirror.openshift.io/v2alpha1\n"+stanza+
		":\n  platform: {"+platform+"}\n"+strings.Join(beside, ""))
}

// Run runs a command line, see [ReleaseWorld.Command].
func (w *ReleaseWorld) Run(line string) Result {
	w.Helper()
	return Finish(w.T, w.Command(line))
}

// Command prepares a command line. The flags about registries and servers are added to commands that have them.
func (w *ReleaseWorld) Command(line string) *exec.Cmd {
	args := strings.Fields(strings.ReplaceAll(line, "TARGET", "docker://"+w.Target.Host()+"/m"))
	args = append(args, "--use-http", "--registries-conf", w.conf)
	switch args[1] {
	case "run", "publish", "plan", "resources":
		args = append(args, "--update-url", w.Servers.GraphURL, "--release-signature-url", w.Servers.SignatureURL,
			"--release-key", w.key, "--graph-data", w.data, "--graph-base", releasetest.Host+"/ubi9/ubi:latest",
			"--retries", "0")
	case "verify":
		args = append(args, "--release-key", w.key)
	}
	return Command(w.Dir, "bindery", args...)
}

// Expect runs a command line, and fails the test unless it ends with a status and says what is given.
func (w *ReleaseWorld) Expect(line string, status int, parts ...string) Result {
	w.Helper()
	return expect(w.T, line, w.Run(line), status, parts)
}

// Offline takes away the sources: registry and servers.
func (w *ReleaseWorld) Offline() {
	w.Source.Clear()
	w.Servers.Down(true)
}

// Tags are the tags of a repository at the target that are no signatures.
func (w *ReleaseWorld) Tags(repository string) []string {
	return slices.DeleteFunc(w.Target.Tags("m/openshift/"+repository), func(tag string) bool {
		return strings.HasPrefix(tag, "sha256-")
	})
}

// ReleaseServers gives a script the servers of graphs and signatures, in the variables that oc-mirror reads.
func ReleaseServers(script testing.TB, e *testscript.Env) {
	w := releasetest.Servers(script)
	e.Setenv("UPDATE_URL_OVERRIDE", w.GraphURL)
	e.Setenv("OCP_SIGNATURE_URL", w.SignatureURL)
	e.Setenv("OCP_SIGNATURE_VERIFICATION_PK", w.KeyFile)
}
