package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/manual"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/releasetest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// pagesOfMirrors are the pages whose commands run in order with the image sets that they show. The registry of the
// examples has the operators and releases of the fixtures, and a proxy stands in for the vendor's hosts.
var pagesOfMirrors = []string{"docs/guides/mirror.md", "docs/reference/releases.md"}

// The commands of the pages about mirrors succeed one after the other, and print what stands below them.
func TestMirrorPagesRun(t *testing.T) {
	for _, name := range pagesOfMirrors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runMirrorPage(t, name)
		})
	}
}

func runMirrorPage(t *testing.T, name string) {
	t.Helper()
	page, err := manual.Read(os.DirFS("../../.."), name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, target := releasetest.Source(t), testregistry.New(t)
	mirrortest.Fill(t, source)
	servers := releasetest.Servers(t)
	proxy, ca := servers.Proxy(t, source)
	conf := filepath.Join(dir, "registries.conf")
	text := clitest.ReadFile(t, source.RegistriesConf(t, mirrortest.Host))
	clitest.WriteFile(t, conf, text+strings.ReplaceAll(text, mirrortest.Host, "registry.access.redhat.com"))
	env := []string{"BINDERY_USE_HTTP=true", "CONTAINERS_REGISTRIES_CONF=" + conf, "HTTPS_PROXY=" + proxy, "SSL_CERT_FILE=" + ca,
		"OCP_SIGNATURE_VERIFICATION_PK=" + servers.KeyFile}
	for kind, file := range map[string]string{"ImageSetConfiguration": "imageset.yaml", "DeleteImageSetConfiguration": "delete.yaml"} {
		for _, b := range page.Blocks {
			if _, set, ok := strings.Cut(b.Text, "kind: "+kind+"\n"); ok {
				set, _, _ = strings.Cut(set, "\n$ ")
				clitest.WriteFile(t, filepath.Join(dir, file), "kind: "+kind+"\n"+set+"\n")
				break
			}
		}
	}
	ran := 0
	for _, s := range steps(page) {
		for line := range strings.Lines(strings.ReplaceAll(s.command, "\\\n", " ")) {
			args := shellWords(strings.ReplaceAll(strings.TrimSpace(line), "mirror.example.com", target.Host()))
			if len(args) < 2 || args[0] != "bindery" && args[0] != "oc-mirror" {
				continue
			}
			ran++
			if args[0] == "oc-mirror" && args[1] != "list" {
				args = append(args, "--dest-tls-verify=false", "--src-tls-verify=false")
			}
			cmd := clitest.Command(dir, args[0], args[1:]...)
			cmd.Env = append(cmd.Env, env...)
			if got := clitest.Finish(t, cmd); got.Status != 0 || s.shown && !asShown(s.prints, got.Stdout) {
				t.Errorf("%s:%d: %s\nstatus %d\n%s%s", name, s.line, line, got.Status, got.Stdout, got.Stderr)
			}
		}
	}
	t.Logf("%d commands", ran)
	if ran == 0 {
		t.Errorf("%s has no commands", name)
	}
}
