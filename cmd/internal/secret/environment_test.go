package secret

import (
	"os"
	"testing"

	"github.com/urfave/cli/v2"
)

// Secrets leave the environment, however a flag names them, and nothing else does.
func TestTakeEnvironment(t *testing.T) {
	flags := []cli.Flag{
		&cli.StringSliceFlag{Name: "key", Aliases: []string{"k"}, Usage: "the `FILE`, or " + InVariable},
		&cli.StringFlag{Name: "label", Usage: "a label"},
	}
	for _, c := range []struct {
		rule string
		args []string
		env  string // the value of BINDERY_TEST_KEY
		gone []string
	}{
		{"no flag", nil, "", nil},
		{"a value after the flag", []string{"sign", "--key", "env://A"}, "", []string{"A"}},
		{"a value with the flag", []string{"--key=env://A", "x"}, "", []string{"A"}},
		{"a short name", []string{"-k", "env://A"}, "", []string{"A"}},
		{"a list", []string{"--key=file,env://A, env://B"}, "", []string{"A", "B"}},
		{"the variable of the flag", nil, "env://B", []string{"B"}},
		{"both", []string{"--key", "env://A"}, "env://B", []string{"A", "B"}},
		{"a flag that takes no secret", []string{"--label", "env://A", "--label=env://B"}, "", nil},
		{"an argument", []string{"env://A"}, "", nil},
		{"nothing after the flag", []string{"--key"}, "", nil},
	} {
		t.Run(c.rule, func(t *testing.T) {
			always := []string{PassphraseVariable, TokenVariable, GitHubVariable}
			for _, name := range append([]string{"A", "B", "C"}, always...) {
				t.Setenv(name, "secret of "+name)
			}
			t.Setenv("BINDERY_TEST_KEY", c.env)
			taken := TakeEnvironment(c.args, flags)
			gone := map[string]bool{}
			for _, name := range append(always, c.gone...) {
				gone[name] = true
			}
			for _, name := range append([]string{"A", "B", "C"}, always...) {
				value, was := taken.Lookup(name)
				if _, is := os.LookupEnv(name); is == gone[name] || was != gone[name] || was && value != "secret of "+name {
					t.Errorf("%s: in the environment %v, taken %v: %q", name, is, was, value)
				}
			}
		})
	}
}
