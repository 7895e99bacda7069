package schema_test

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/docs/reference/schemas"
)

// Every command that answers in JSON is listed with the schema of its answer, and every schema exists.
func TestAnswersHaveSchemas(t *testing.T) {
	found := map[string]bool{}
	var walk func(path string, commands []*cli.Command)
	walk = func(path string, commands []*cli.Command) {
		for _, c := range commands {
			if c.Hidden {
				continue
			}
			name := strings.TrimSpace(path + " " + c.Name)
			walk(name, c.Subcommands)
			for _, f := range c.Flags {
				doc, ok := f.(cli.DocGenerationFlag)
				if ok && f.Names()[0] == "output" && strings.Contains(doc.GetUsage(), "json") {
					found[name] = true
					if clitest.AnswerSchemas[name] == nil {
						t.Errorf("%q answers in JSON, and no schema is named for it", name)
					}
				}
			}
		}
	}
	walk("", app.New(&option.Session{Program: &program.Program{Name: "bindery"}}).Commands)
	for name, list := range clitest.AnswerSchemas {
		if !found[name] {
			t.Errorf("%q has no --output with json", name)
		}
		for _, s := range list {
			if _, ok := schemas.Text(s); !ok && s != strings.ToUpper(s) {
				t.Errorf("%q: there is no schema %q", name, s)
			}
		}
	}
}
