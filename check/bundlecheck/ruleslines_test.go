package bundlecheck_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// countedFS counts how often files are opened.
type countedFS struct {
	fstest.MapFS
	opened map[string]int
}

func (c countedFS) Open(name string) (fs.File, error) {
	c.opened[name]++
	return c.MapFS.Open(name)
}

// ReadFile hides the one of MapFS.
func (c countedFS) ReadFile(name string) ([]byte, error) {
	c.opened[name]++
	return c.MapFS.ReadFile(name)
}

// A bundle with many findings in a file has it read a few times, not once for each.
func TestManyFindingsReadFilesOnce(t *testing.T) {
	var images strings.Builder
	for i := range 500 {
		fmt.Fprintf(&images, "  - {name: i%d, image: registry.redhat.io/acme/operator:v%d}\n", i, i)
	}
	fsys := countedFS{goodBundle("  relatedImages:\n", "  relatedImages:\n"+images.String()), map[string]int{}}
	report := checkRules(t, fsys, nil, rules.Options{Profiles: []rules.Profile{rules.Conforma},
		Data: conformaData(t, "")}, manifests.CertManager)
	lines := map[int]bool{}
	for _, f := range report.Findings {
		lines[f.Line] = true
	}
	if len(report.Findings) != 500 || len(lines) != 500 {
		t.Errorf("%d findings on %d lines", len(report.Findings), len(lines))
	}
	if n := fsys.opened["manifests/acme.clusterserviceversion.yaml"]; n == 0 || n > 5 {
		t.Errorf("opened %d times", n)
	}
}
