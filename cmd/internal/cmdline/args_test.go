package cmdline

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// testApp returns a small command tree with flags at every level, groups, and a command that parses its own flags.
func testApp() *cli.App {
	app := &cli.App{
		Name: "prog", HelpName: "prog",
		Flags: []cli.Flag{&cli.StringFlag{Name: "log", Usage: "`LEVEL` (low|high)"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}}},
		Commands: []*cli.Command{
			{Name: "render", ArgsUsage: "REF...", Flags: []cli.Flag{
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` (json|yaml)"},
				&cli.StringSliceFlag{Name: "label", Aliases: []string{"l"}},
				&cli.BoolFlag{Name: "all", Aliases: []string{"a"}},
				&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}},
			}},
			{Name: "list", Subcommands: []*cli.Command{
				{Name: "packages", Flags: []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}}}},
				{Name: "channels"},
			}},
			{Name: "probe", SkipFlagParsing: true},
			{Name: "hidden", Hidden: true},
		},
	}
	Prepare(app)
	return app
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"flags before the argument":        {"render -o yaml dir", "render --output=yaml -- dir"},
		"flags after the argument":         {"render dir -o yaml", "render --output=yaml -- dir"},
		"flags between arguments":          {"render a -o yaml b --all c", "render --output=yaml --all -- a b c"},
		"short flag with equals sign":      {"render dir -o=yaml", "render --output=yaml -- dir"},
		"short flag with its value":        {"render dir -oyaml", "render --output=yaml -- dir"},
		"long flag with equals sign":       {"render --output=a=b dir", "render --output=a=b -- dir"},
		"an empty value":                   {"render --output= dir", "render --output= -- dir"},
		"long flag with one dash":          {"render -output yaml dir", "render --output=yaml -- dir"},
		"combined short flags":             {"render -avo yaml dir", "render --all --verbose --output=yaml -- dir"},
		"bool flag with value":             {"render --all=false dir", "render --all=false -- dir"},
		"a bool flag takes no next word":   {"render --all dir", "render --all -- dir"},
		"repeated flags keep their order":  {"render -l a=1 x -l b=2,c=3", "render --label=a=1 --label=b=2,c=3 -- x"},
		"a value that looks like a flag":   {"render -o -x dir", "render --output=-x -- dir"},
		"a value that is a command":        {"render -o list dir", "render --output=list -- dir"},
		"two dashes end the flags":         {"render -a -- -o yaml", "render --all -- -o yaml"},
		"one dash is an argument":          {"render - -a", "render --all -- -"},
		"program flags anywhere":           {"render dir --log high -q", "--log=high --quiet render -- dir"},
		"flags before the command":         {"-o yaml --log=high render dir", "--log=high render --output=yaml -- dir"},
		"flags before the sub-command":     {"list -o json packages ref", "list packages --output=json -- ref"},
		"a command's name as an argument":  {"list packages packages", "list packages -- packages"},
		"a command that reads its flags":   {"-q probe -addr x -- --log", "--quiet probe -addr x -- --log"},
		"no arguments":                     {"", ""},
		"an argument that starts as blank": {"render ''", "render -- ''"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Parse(testApp(), append([]string{"prog"}, strings.Fields(c.line)...))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(l.Args[1:], " "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ line, want, hint string }{
		"unknown command": {"rendr x", `unknown command "rendr" for "prog"`, `did you mean "render"?`},
		"unknown sub-command": {"list pakages", `unknown command "pakages" for "prog list"`,
			`did you mean "packages"?`},
		"nothing like it":         {"xyzzy", `unknown command "xyzzy" for "prog"`, ""},
		"hidden is not suggested": {"hiden", `unknown command "hiden" for "prog"`, ""},
		"a command of another place": {"packages x", `unknown command "packages" for "prog"`,
			`did you mean "prog list packages"?`},
		"nothing like it in a group": {"list xyzzy", `unknown command "xyzzy" for "prog list"`,
			`its commands are packages, channels`},
		"a longer flag's name": {"render --output-format yaml", `unknown flag: --output-format`,
			`did you mean "--output"?`},
		"unknown flag":                {"render --ouptut yaml", `unknown flag: --ouptut`, `did you mean "--output"?`},
		"unknown flag with value":     {"render x --nosuch=1", `unknown flag: --nosuch`, ""},
		"unknown short flag":          {"render -z", `unknown shorthand flag: 'z' in -z`, ""},
		"unknown among combined":      {"render -az", `unknown shorthand flag: 'z' in -az`, ""},
		"long with one dash":          {"render -ouptut yaml -aptut", `unknown shorthand flag: 'p' in -aptut`, ""},
		"flag of another command":     {"list channels -o json", `unknown shorthand flag: 'o' in -o`, ""},
		"no value":                    {"render dir -o", `flag needs an argument: -o`, ""},
		"no value for a long one":     {"render dir --output", `flag needs an argument: --output`, ""},
		"short name with two dashes":  {"render --o x", `unknown flag: --o`, ""},
		"arguments without a command": {"-- render", `unknown command "render" for "prog"`, `did you mean "render"?`},
		"help for an unknown command": {"help rendr", `unknown command "rendr" for "prog"`, `did you mean "render"?`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(testApp(), append([]string{"prog"}, strings.Fields(c.line)...))
			var e *Error
			if !errors.As(err, &e) || e.Class != ClassUsage {
				t.Fatalf("got %v, not a usage error", err)
			}
			if e.Error() != c.want || e.Hint != c.hint {
				t.Errorf("got  %s (%s)\nwant %s (%s)", e, e.Hint, c.want, c.hint)
			}
		})
	}
}

func TestParseHelp(t *testing.T) {
	for line, want := range map[string]string{
		"--help": "prog", "-h": "prog", "help": "prog", "help list": "prog list", "list --help": "prog list",
		"render x -o yaml -h": "prog render", "help list packages": "prog list packages", "render -ah": "prog render",
		"list help": "prog list",
	} {
		l, err := Parse(testApp(), append([]string{"prog"}, strings.Fields(line)...))
		if err != nil || !l.Help || l.Name("prog") != want {
			t.Errorf("%s: help %v for %q (%v), want %q", line, l.Help, l.Name("prog"), err, want)
		}
	}
}

// The command library parses the line that Parse returns with the same result.
func TestParseAgreesWithTheLibrary(t *testing.T) {
	app := testApp()
	var output string
	var labels, args []string
	var all, quiet bool
	app.Commands[0].Action = func(c *cli.Context) error {
		output, labels, all, quiet, args = c.String("output"), c.StringSlice("label"), c.Bool("all"), c.Bool("quiet"),
			c.Args().Slice()
		return nil
	}
	l, err := Parse(app, []string{"prog", "render", "--q-is-an-argument-after-this", "-l"})
	if err == nil {
		t.Fatalf("an unknown flag was accepted: %v", l.Args)
	}
	l, err = Parse(app, []string{"prog", "a b", "render"})
	if err == nil {
		t.Fatalf("an unknown command was accepted: %v", l.Args)
	}
	l, err = Parse(app,
		[]string{"prog", "render", "one", "-l", "k=v,w", "-aq", "--label=x", "--output", "", "--", "-two", "help"})
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Run(l.Args); err != nil {
		t.Fatal(err)
	}
	if output != "" || !all || !quiet || !slices.Equal(labels, []string{"k=v,w", "x"}) || !slices.Equal(args,
		[]string{"one", "-two", "help"}) {
		t.Errorf("output %q, all %v, quiet %v, labels %q, args %q", output, all, quiet, labels, args)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"render\x00-o\x00yaml\x00dir", "list\x00packages\x00--", "-qh", "probe\x00-addr",
		"render\x00-avo", "--\x00-", "-q=", "--quiet=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		app := testApp()
		nothing := func(*cli.Context) error { return nil }
		app.Action = nothing
		var walk func([]*cli.Command)
		walk = func(cmds []*cli.Command) {
			for _, c := range cmds {
				c.Action = nothing
				walk(c.Subcommands)
			}
		}
		walk(app.Commands)
		l, err := Parse(app, append([]string{"prog"}, strings.Split(s, "\x00")...))
		if err != nil || l.Help {
			return
		}
		// The library must accept every line that Parse accepts; only values of bool flags may be invalid.
		if err := app.Run(l.Args); err != nil && !strings.Contains(err.Error(), "expected true or false") {
			t.Errorf("%q became %q: %v", s, l.Args, err)
		}
	})
}
