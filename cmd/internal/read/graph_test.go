package read_test

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// Drawings in opm's format, under both names of the program.
func TestRenderGraph(t *testing.T) {
	for _, c := range []struct{ args, golden string }{
		{"alpha render-graph small.db", "../../../testdata/indexes/golden/small/render-graph.mmd"},
		// a repeated reference counts once
		{"alpha render-graph small.db small.db", "../../../testdata/indexes/golden/small/render-graph.mmd"},
		{"alpha render-graph small.db --draw-v0-semantics", "../../../testdata/indexes/golden/small/render-graph-v0.mmd"},
		{"alpha render-graph small.db -p etcd", "../clitest/testdata/opm/alpha-render-graph-pkg.mmd"},
		{"alpha render-graph small.db --package-name silicom-sts-operator --minimum-edge silicom-sts-operator.v0.0.3",
			"../clitest/testdata/opm/alpha-render-graph-min.mmd"},
		{"alpha render-graph cat", "../../../testdata/oracle/golden-fbc-cases/ok-base/graph.mmd"},
	} {
		for _, name := range []string{"bindery", "opm"} {
			t.Run(name+" "+c.args, func(t *testing.T) {
				got := clitest.RunProgram(t, clitest.WorkDir(t), name, strings.Fields(c.args)...)
				if want := clitest.ReadFile(t, c.golden); got.Status != 0 || got.Stdout != want || got.Stderr != "" {
					t.Errorf("status %d, standard error %q, got\n%s\nwant\n%s", got.Status, got.Stderr, got.Stdout,
						want)
				}
			})
		}
	}
}
