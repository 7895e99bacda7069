package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// The pages about upgrades say of a real catalog what "diff --manifests" says of its bundles: the same definitions, and
// the same refusals of OLM v1.
func TestPagesAboutUpgrades(t *testing.T) {
	t.Parallel()
	dir := clitest.WorkDir(t)
	var text bytes.Buffer
	files := recorded.Archive(t, "../../../testdata/real/catalog-v4.13.tar.zst")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text.WriteString("---\n")
		text.Write(files[name])
	}
	clitest.WriteFile(t, filepath.Join(dir, "real", "catalog.yaml"), text.String())
	c, err := declcfg.Load(t.Context(), os.DirFS(filepath.Join(dir, "real")), declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(b *declcfg.Bundle) string {
		at := filepath.Join(dir, "bundles", b.Name)
		objects, err := b.Objects()
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range objects {
			clitest.WriteFile(t, filepath.Join(at, "manifests", fmt.Sprint(i, ".json")), string(o))
		}
		clitest.WriteFile(t, filepath.Join(at, "metadata", "annotations.yaml"), "annotations:\n"+
			"  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n"+
			"  operators.operatorframework.io.bundle.manifests.v1: manifests/\n"+
			"  operators.operatorframework.io.bundle.metadata.v1: metadata/\n"+
			"  operators.operatorframework.io.bundle.package.v1: "+b.Package+"\n"+
			"  operators.operatorframework.io.bundle.channels.v1: stable\n")
		return at
	}
	grpc, pages := clitest.FreePort(t), clitest.FreePort(t)
	defer clitest.ServeUntilStopped(t, dir, grpc, "serve", "real", "-p", grpc, "--http-addr", "127.0.0.1:"+pages)()
	bundles := map[string]*declcfg.Bundle{}
	for i := range c.Bundles {
		bundles[c.Bundles[i].Name] = &c.Bundles[i]
	}
	pairs, refused := 0, 0
	for _, ch := range c.Channels {
		for _, e := range ch.Entries {
			from, to := bundles[e.Replaces], bundles[e.Name]
			if from == nil || to == nil || pairs == 12 {
				continue
			}
			answer := clitest.RunProgram(t, dir, "bindery", "diff", "--manifests", "-o", "json", write(from), write(to))
			var report upgrade.Report
			if json.Unmarshal([]byte(answer.Stdout), &report) != nil || len(report.Definitions) == 0 {
				continue // bundles that OLM v1 does not install, or without changes of definitions
			}
			pairs++
			got, err := http.Get("http://127.0.0.1:" + pages + "/changes?" + url.Values{"package": {ch.Package}, "from": {from.Name},
				"to": {to.Name}}.Encode())
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(got.Body)
			got.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			page := html.UnescapeString(string(body))
			for _, d := range report.Definitions {
				if !strings.Contains(page, "<h3>"+d.Name+"</h3>") {
					t.Errorf("%s to %s: the page lacks %s", from.Name, to.Name, d.Name)
				}
				for _, r := range d.Refusals[:min(len(d.Refusals), 40)] {
					refused++
					if !strings.Contains(page, r.String()) {
						t.Errorf("%s to %s: the page lacks %q", from.Name, to.Name, r)
					}
				}
				if len(d.Refusals) == 0 && strings.Contains(page, "refuses the changes of") && len(report.Definitions) == 1 {
					t.Errorf("%s to %s: the page says that OLM v1 refuses it", from.Name, to.Name)
				}
			}
		}
	}
	if t.Logf("%d upgrades, %d refused changes", pairs, refused); pairs < 10 || refused < 10 {
		t.Errorf("%d upgrades with %d refused changes are compared", pairs, refused)
	}
}
