package app_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

func TestScripts(t *testing.T) {
	clitest.RunScripts(t, func(script testing.TB, e *testscript.Env) {
		if strings.Contains(script.Name(), "keyless") {
			clitest.Sigstore(script, e)
		}
	})
}

// Every command has a script beside its package that says what it does for a user: "catalog rm" has catalog_rm.txtar in
// testdata/script of cmd/internal/catalog. A hidden command has one script for itself and all below it: "alpha" has
// other names of commands that have their scripts. Scripts that are named for no command are about the whole program,
// and beside this test.
func TestCommandsHaveScripts(t *testing.T) {
	wanted := map[string]bool{}
	var walk func(above string, commands []*cli.Command)
	walk = func(above string, commands []*cli.Command) {
		for _, c := range commands {
			if len(c.Subcommands) > 0 && !c.Hidden {
				walk(above+c.Name+"_", c.Subcommands)
			} else {
				wanted[above+c.Name] = true
			}
		}
	}
	walk("", app.New(&option.Session{Program: &program.Program{Name: "bindery"}}).Commands)
	files, err := filepath.Glob("../*/testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts (%v)", err)
	}
	found := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		family := strings.Split(filepath.ToSlash(file), "/")[1]
		switch {
		case found[name]:
			t.Errorf("%s has the name of another script", file)
		case !wanted[name] && family != "app":
			t.Errorf("%s is named for no command: scripts about the whole program are in testdata/script", file)
		}
		found[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !found[name] {
			t.Errorf("a command has no script: %s.txtar is not in testdata/script of its package", name)
		}
	}
}
