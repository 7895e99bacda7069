package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// The scripts in testdata/script run the program as users do. Each has a separate registry with plain HTTP at $REGISTRY
// and finds the project's testdata at $TESTDATA.
func TestScripts(t *testing.T) {
	data, err := filepath.Abs("../../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			registry := testregistry.New(e.T().(testing.TB))
			e.Setenv("PATH", clitest.BinDir+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("REGISTRY", registry.Host())
			e.Setenv("TESTDATA", data)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("BINDERY_USE_HTTP", "true")
			return nil
		},
	})
}
