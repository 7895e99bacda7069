package mirror_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/mirror"
)

// counted counts what is read of a body.
type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// A dry run counts the catalogs, too: what it says is never less than what the run sends or the archive has, and not
// much more.
func TestMirrorDryRunCountsCatalogs(t *testing.T) {
	source := mirrortest.Source(t)
	server := clitest.OpmFor("amd64")
	server.Labels = map[string]string{clitest.TestConfigsLabel: "/configs"}
	server.Layers = append(server.Layers, map[string]string{"big": string(noise(2_000_000))}, map[string]string{
		"configs/etcd/catalog.json": strings.NewReplacer("NAME", "etcd", "IMAGE", mirrortest.Host+"/extra/tool:v1").
			Replace(clitest.OneBundle)})
	source.AddImage(t, "acme/large", "v1", server)
	conf := source.RegistriesConf(t, mirrortest.Host)
	for name, selection := range map[string]string{"filtered": "packages: [{name: etcd}]", "whole": "full: true"} {
		for _, more := range []string{"", " --catalog-base replace --server none --cache none", " --archive-format oc-mirror"} {
			t.Run(name+more, func(t *testing.T) {
				var received atomic.Int64
				w := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: conf}
				w.Write("set.yaml", "kind: ImageSetConfiguration\nmirror:\n  operators:\n  - catalog: registry.example.com/acme/large:v1\n"+
					"    "+selection+"\n")
				answer := func(line string) (a mirror.Account) {
					t.Helper()
					got := w.Run(line + " -o json")
					if err := json.Unmarshal([]byte(got.Stdout), &a); err != nil || got.Status != 0 {
						t.Fatalf("%v: %s: %+v", err, line, got)
					}
					return a
				}
				said := func(line string) (sum int64) {
					for _, r := range answer(line).Repositories {
						sum += r.Bytes
					}
					return sum
				}
				check := func(what string, said, is int64) {
					t.Helper()
					if said < is || said > is+is/10+40_000 {
						t.Errorf("%s: %d bytes, and it is %d", what, said, is)
					}
				}
				run := "mirror run -c set.yaml" + more
				archive := said(run + " file://media --dry-run")
				answer(run + " file://media")
				files, _ := filepath.Glob(filepath.Join(w.Dir, "media", "mirror_*.tar"))
				var size int64
				for _, file := range files {
					if info, err := os.Stat(file); err == nil {
						size += info.Size()
					}
				}
				check("archive", archive+40_000, size)
				if strings.Contains(more, "archive-format") {
					more = ""
					run = "mirror run -c set.yaml"
				}
				for _, way := range []string{" --workspace ws TARGET/direct", " --from media TARGET/disk"} {
					w.Registry = testregistry.New(t)
					w.Target = "docker://" + w.Registry.Host()
					w.Registry.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
						q.Body = counted{q.Body, &received}
						return false
					})
					before := received.Load()
					bound := said(run + way + " --dry-run")
					if received.Load() != before {
						t.Error("a dry run has sent something")
					}
					answer(run + way)
					check(way, bound+4000, received.Load()-before) // manifests are sent by digest and tag
					if again := said(run + way + " --dry-run"); again > 10_000 {
						t.Errorf("%s: %d bytes where all is there", way, again)
					}
				}
			})
		}
	}
	w := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: conf}
	w.Write("set.yaml", "kind: ImageSetConfiguration\nmirror:\n  operators:\n  - catalog: registry.example.com/acme/large:v1\n"+
		"    packages: [{name: etcd}]\n")
	if got := w.Run("mirror run -c set.yaml file://media --dry-run"); got.Status != 0 ||
		!strings.Contains(got.Stderr, "1 image: 0 are there, at most 1 MiB to copy with the catalogs, ") {
		t.Errorf("%+v", got)
	}
	if got := w.Run("mirror plan -c set.yaml --dry-run"); got.Status != 0 || !strings.Contains(got.Stdout, "acme/large") {
		t.Errorf("%+v", got)
	}
}
