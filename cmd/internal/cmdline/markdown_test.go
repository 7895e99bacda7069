package cmdline

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestWriteMarkdown(t *testing.T) {
	app := &cli.App{Name: "prog", HelpName: "prog", Version: "v1", Usage: "do things", Description: "Needs <nothing>.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "quiet", Usage: "print less"}},
		Commands: []*cli.Command{
			{Name: "run", Usage: "run a|b", Subcommands: []*cli.Command{{Name: "now", Usage: "run at once",
				ArgsUsage: "FILE", Description: "Runs.\n\nExamples:\n  prog run now x\n",
				Flags: []cli.Flag{&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "write to `FILE`"},
					&cli.BoolFlag{Name: "secret", Hidden: true}}}}},
			{Name: "hidden", Hidden: true},
		}}
	for _, c := range []struct {
		line Line
		want string
	}{
		{Line{}, "# Commands\n\nThese pages are generated from the help of prog v1.\n\nNeeds &lt;nothing>.\n\n" +
			"| command | |\n|---|---|\n| [run](prog-run.md) | run a\\|b |\n\n" +
			"| global flags | |\n|---|---|\n| `--quiet` | print less |\n\n" +
			"## Exit status\n\n| | |\n|---|---|\n| `0` | Done. |\n"},
		{Line{Path: app.Commands[:1]}, "# prog run\n\nRun a\\|b.\n\n```text\nprog run COMMAND\n```\n\n" +
			"## prog run now\n\nRun at once.\n\n```text\nprog run now [flags] FILE\n```\n\nRuns.\n\nExamples:\n\n" +
			"```sh\nprog run now x\n```\n\n| flags | |\n|---|---|\n| `-o, --out FILE` | write to FILE |\n"},
	} {
		var b strings.Builder
		if err := WriteMarkdown(&b, app, c.line, ManSection{Title: "EXIT STATUS",
			Items: [][2]string{{"0", "Done."}}}); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("got\n%s\nwant\n%s", b.String(), c.want)
		}
	}
}
