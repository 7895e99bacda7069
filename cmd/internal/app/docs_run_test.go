package app_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/manual"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// pagesThatRun are the pages whose blocks of the languages sh and console run as they stand, in order and in one shell.
// A console block has commands behind "$ ", each followed by what it prints on both streams.
var pagesThatRun = []string{"README.md", "docs/guides/moving-from-opm.md", "docs/quickstart/air-gap.md", "docs/quickstart/ci.md",
	"docs/quickstart/migration.md", "docs/quickstart/submission.md"}

// pageStep is a piece of a page that runs.
type pageStep struct {
	line    int
	command string
	prints  string // what a console block says that it prints; "..." stands for any text
	shown   bool   // prints counts
}

// steps returns the commands of a page.
func steps(p *manual.Page) (out []pageStep) {
	for _, b := range p.Blocks {
		switch b.Language {
		case "sh":
			out = append(out, pageStep{line: b.Line, command: b.Text})
		case "console":
			out = append(out, shellSession(b)...)
		}
	}
	return out
}

// shellSession divides a console block into its commands and what they print.
func shellSession(b manual.Block) (out []pageStep) {
	for i, line := range strings.SplitAfter(strings.TrimSuffix(b.Text, "\n"), "\n") {
		line = strings.TrimSuffix(line, "\n") + "\n"
		command, ok := strings.CutPrefix(line, "$ ")
		switch last := len(out) - 1; {
		case ok:
			out = append(out, pageStep{line: b.Line + i, command: command, shown: true})
		case last < 0:
			out = append(out, pageStep{line: b.Line + i, command: "false # the block begins with no command\n"})
		case strings.HasSuffix(out[last].command, "\\\n") && out[last].prints == "":
			out[last].command += line
		default:
			out[last].prints += line
		}
	}
	return out
}

// withoutServer is what the program of the tests says, and one that "make build" made does not.
var withoutServer = regexp.MustCompile(`(?m)^warning: this program was built without the embedded server .*\n`)

// The pages do what they say: each of their commands succeeds in a directory that looks like a clone, with a registry
// at $REGISTRY and an unused port in $PORT, and prints what stands below it.
func TestPagesRun(t *testing.T) {
	for _, name := range pagesThatRun {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runPage(t, name, cloneDir(t), testregistry.New(t).Host(), t.TempDir())
		})
	}
}

// The README and the quickstarts do what they say one after the other in the same directory, with the same registry and
// cache, in the order in which the list of pages has them.
func TestQuickstartsInOneDirectory(t *testing.T) {
	t.Parallel()
	clone, registry, cache := cloneDir(t), testregistry.New(t).Host(), t.TempDir()
	index, err := manual.Read(os.DirFS("../../.."), "docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"README.md"}
	for _, l := range index.Links {
		if strings.HasPrefix(l.Target, "quickstart/") {
			names = append(names, "docs/"+l.Target)
		}
	}
	if len(names) < 4 {
		t.Fatalf("only %q", names)
	}
	for _, name := range append(names, "docs/guides/moving-from-opm.md") {
		runPage(t, name, clone, registry, cache)
	}
}

// cloneDir makes a directory that looks like a clone in which nothing was built.
func cloneDir(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	clone := t.TempDir()
	if err := os.Mkdir(filepath.Join(clone, "dist"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "testdata"), filepath.Join(clone, "testdata")); err != nil {
		t.Fatal(err)
	}
	return clone
}

// cachedLayers is how many layers an image has out of the cache, which depends on what was built before.
var cachedLayers = regexp.MustCompile(` \(\d+ cached\)`)

// runPage types a page into a new shell in a clone.
func runPage(t *testing.T, name, clone, registry, cache string) {
	t.Helper()
	page, err := manual.Read(os.DirFS("../../.."), name)
	if err != nil {
		t.Fatal(err)
	}
	built, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	out, all := t.TempDir(), steps(page)
	if len(all) == 0 {
		t.Fatal("no commands")
	}
	var script strings.Builder
	for i, s := range all {
		fmt.Fprintf(&script, "exec >%s/%d 2>&1\n%s", out, i, s.command)
	}
	cmd := exec.Command("sh", "-eu")
	cmd.Dir = clone
	cmd.Stdin = strings.NewReader(script.String())
	cmd.Env = append(os.Environ(), "REGISTRY="+registry, "PORT="+clitest.FreePort(t),
		"PATH="+clitest.BinDir+string(os.PathListSeparator)+os.Getenv("PATH"), "XDG_CACHE_HOME="+cache)
	failed := cmd.Run()
	for i, s := range all {
		printed, err := os.ReadFile(filepath.Join(out, fmt.Sprint(i)))
		if err != nil {
			t.Fatalf("%s:%d: did not run, as what is before it failed: %v", name, s.line, failed)
		}
		printed = []byte(strings.ReplaceAll(withoutServer.ReplaceAllString(string(printed), ""), registry,
			"localhost:5000"))
		prints := s.prints
		if len(built) > 0 {
			prints, printed = cachedLayers.ReplaceAllString(prints, ""), cachedLayers.ReplaceAll(printed, nil)
		}
		if s.shown && !asShown(prints, string(printed)) || failed != nil && i == lastRun(out, len(all)) {
			t.Errorf("%s:%d: %s (%v)\n--- printed\n%s--- the page\n%s", name, s.line, s.command, failed,
				printed, s.prints)
		}
	}
}

// lastRun returns the last of n steps that began.
func lastRun(dir string, n int) int {
	for i := n - 1; i > 0; i-- {
		if _, err := os.Stat(filepath.Join(dir, fmt.Sprint(i))); err == nil {
			return i
		}
	}
	return 0
}

// asShown compares what a command printed with what a page shows: "..." in a line is any text of a line, and a line of
// it any number of lines. Spaces at the ends of lines do not count.
func asShown(shown, printed string) bool {
	var b strings.Builder
	b.WriteString(`^`)
	for _, line := range strings.SplitAfter(shown, "\n") {
		switch {
		case line == "...\n":
			b.WriteString(`(?:.*\n)*?`)
		case line != "":
			b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " \n")), `\.\.\.`, `.*`) + " *\n")
		}
	}
	b.WriteString(`$`)
	return regexp.MustCompile(b.String()).MatchString(printed)
}

func TestAsShown(t *testing.T) {
	for _, c := range []struct {
		shown, printed string
		want           bool
	}{
		{"", "", true}, {"a\n", "a\n", true}, {"a\n", "a  \n", true}, {"a\n", "ab\n", false}, {"", "a\n", false},
		{"a...c\n", "abbc\n", true}, {"a...c\n", "a\nc\n", false}, {"...\nc\n", "a\nb\nc\n", true},
		{"a\n...\n", "a\n", true}, {"a.c\n", "abc\n", false}, {"a\nb\n", "a\n", false},
	} {
		if got := asShown(c.shown, c.printed); got != c.want {
			t.Errorf("%q shown, %q printed: %t", c.shown, c.printed, got)
		}
	}
}
