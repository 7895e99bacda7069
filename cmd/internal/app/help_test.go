package app_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// flagLines counts the flags that a help text shows.
func flagLines(help string) int {
	n := 0
	_, flags, _ := strings.Cut(help, "lags:")
	if at := strings.Index(help, "\nFlags: "); at >= 0 && len(help)-at > len(flags) {
		flags = help[at:]
	}
	for line := range strings.SplitSeq(flags, "\n") {
		rest, ok := strings.CutPrefix(line, "  ")
		if ok && (strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "    --")) {
			n++
		}
	}
	return n
}

// Every help text fits a terminal of 100 columns, its short form shows at most 15 flags and names the long form, which
// shows all.
func TestHelpFits(t *testing.T) {
	app := app.New(&option.Session{Program: &program.Program{Name: "bindery"}})
	for _, l := range cmdline.Lines(app) {
		args := strings.Fields(l.Name(app.HelpName))[1:]
		texts := map[string]string{}
		for _, ask := range []string{"--help", "--help-all"} {
			help := clitest.Done(t, t.TempDir(), "bindery", append(args, ask)...)
			texts[ask] = help
			for line := range strings.SplitSeq(help, "\n") {
				if utf8.RuneCountInString(line) > 100 {
					t.Errorf("%v %s: over 100 columns: %s", args, ask, line)
				}
				for _, words := range []string{"SIZE  SIZE", "FILE  FILE", "DIR  DIR", "NAME  NAME"} {
					if strings.Contains(line, words) {
						t.Errorf("%v %s repeats the value: %s", args, ask, line)
					}
				}
			}
		}
		if len(l.Path) == 0 || l.Leaf().SkipFlagParsing {
			continue
		}
		want := 0
		for _, f := range l.Leaf().Flags {
			if v, ok := f.(cli.VisibleFlag); !ok || v.IsVisible() {
				want++
			}
		}
		short, long := flagLines(texts["--help"]), flagLines(texts["--help-all"])
		if short > 15 || long != want || (short < long) != strings.Contains(texts["--help"], "--help-all") {
			t.Errorf("%v: --help shows %d flags, --help-all %d of %d", args, short, long, want)
		}
	}
}

// A long example is continued on the next line in a way that a shell reads.
func TestHelpOfLongExamples(t *testing.T) {
	help := clitest.Done(t, t.TempDir(), "bindery", "build", "catalog", "--help")
	if !strings.Contains(help, " --push \\\n      --digest-file digest --dry-run\n") {
		t.Errorf("no continued example in\n%s", help)
	}
}

func TestHelpOfProbe(t *testing.T) {
	help := clitest.Done(t, t.TempDir(), "bindery", "probe", "--help")
	if !strings.Contains(help, "Usage:\n  bindery probe ") || !strings.Contains(help, "\n      --rpc-timeout VALUE ") {
		t.Errorf("got\n%s", help)
	}
	own := clitest.RunProgram(t, t.TempDir(), "grpc_health_probe", "--help")
	if own.Status != 0 || !strings.HasPrefix(own.Stderr, "Usage of grpc_health_probe:\n") {
		t.Errorf("under its own name: %+v", own)
	}
}
