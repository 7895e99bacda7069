package app_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	checkcmd "github.com/operator-bindery/bindery/cmd/internal/check"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/version"
)

// Each case was recorded with opm in a directory like that of workDir; as opm, the program must give the same standard
// output, exit status and error.
func TestOpmAnswers(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		stdout string // a file with the whole standard output; empty if there is none
		stderr string // a file that contains the error
	}{
		{args: "version"},
		{args: "init foo", stdout: "init-json.json"},
		{args: "init foo -o yaml -c stable", stdout: "init-yaml.yaml"},
		{args: "init foo -c stable -d README.md -i icon.png -o yaml", stdout: "init-full.yaml"},
		{args: "init Bad|Name!", stdout: "init-badname.json"},
		{args: "init foo -i icon.txt", status: 1, stderr: "init-badicon.stderr"},
		{args: "init foo -o xml", status: 1, stderr: "init-badout.stderr"},
		{args: "init foo -d nosuch.md", status: 1, stderr: "init-missing.stderr"},
		{args: "init", status: 1, stderr: "init-noname.stderr"},
		{args: "generate dockerfile cat -l novalue", status: 1, stderr: "dockerfile-badlabel.stderr"},
		{args: "generate dockerfile cat/catalog.json", status: 1, stderr: "dockerfile-file.stderr"},
		{args: "generate dockerfile nosuch", status: 1, stderr: "dockerfile-nodir.stderr"},
		{args: "generate dockerfile cat -b scratch", status: 1, stderr: "dockerfile-scratch-builder.stderr"},
		{args: "nosuchcmd", status: 1, stderr: "cli/nosuchcmd.stderr"},
		{args: "validate", status: 1, stderr: "cli/validate.stderr"},
		{args: "validate nosuch", status: 1, stderr: "cli/validate_nosuch.stderr"},
		{args: "validate small.db", status: 1, stderr: "cli/validate_small.db.stderr"},
		{args: "validate cat"},
		{args: "render --nosuchflag", status: 1, stderr: "cli/render_--nosuchflag.stderr"},
		{args: "render small.db -o xml", status: 1, stderr: "cli/render_small.db_-o_xml.stderr"},
		{args: "render", status: 1, stderr: "render-none.stderr"},
		{args: "render small.db --migrate-level nosuch", status: 1, stderr: "render-badlevel.stderr"},
		{args: "render small.db --migrate --migrate-level none", status: 1, stderr: "render-bothmigrate.stderr"},
		{args: "migrate small.db", status: 1, stderr: "cli/migrate_small.db.stderr"},
		{args: "migrate small.db cat", status: 1, stderr: "migrate-nonempty.stderr"},
		{args: "serve", status: 1, stderr: "cli/serve.stderr"},
		{args: "registry serve -d nosuch.db -p 50999", status: 1, stderr: "cli/registry_serve_nosuch.stderr"},
		{args: "alpha list packages", status: 1, stderr: "cli/alpha_list_packages.stderr"},
		{args: "alpha list bundles small.db nosuchpkg", status: 1,
			stderr: "cli/alpha_list_bundles_small.db_nosuchpkg.stderr"},
		{args: ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			dir := clitest.WorkDir(t)
			before := clitest.Snapshot(t, dir)
			args := strings.Fields(c.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "|", " ")
			}
			got := clitest.RunProgram(t, dir, "opm", args...)
			if got.Status != c.status {
				t.Errorf("status %d, want %d; %s", got.Status, c.status, got.Stderr)
			}
			switch {
			case c.stdout != "":
				if want := clitest.ReadFile(t, "../clitest/testdata/opm/"+c.stdout); got.Stdout != want {
					t.Errorf("got\n%s\nwant\n%s", got.Stdout, want)
				}
			case c.args != "version" && got.Stdout != "":
				t.Errorf("standard output has %q", got.Stdout)
			}
			if c.stderr != "" {
				if want := clitest.RecordedError(t, "../clitest/testdata/opm/"+c.stderr); !strings.Contains(got.Stderr, want) {
					t.Errorf("got\n%s\nwithout %s", got.Stderr, want)
				}
			}
			if after := clitest.Snapshot(t, dir); after != before {
				t.Errorf("files before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

func TestOpmVersionLine(t *testing.T) {
	got := clitest.RunProgram(t, ".", "opm", "version")
	want := strings.Replace(clitest.ReadFile(t, "../clitest/testdata/opm/version.txt"), `OpmVersion:"unknown"`, fmt.Sprintf("OpmVersion:%q", version.Compatible), 1)
	// The recording is from amd64 and lacks the field with the program's own version.
	own := fmt.Sprintf(", Bindery:%q}\n", version.Release())
	if i := strings.Index(want, "GoArch"); got.Status != 0 || !strings.HasPrefix(got.Stdout, want[:i]) ||
		!strings.HasSuffix(got.Stdout, own) {
		t.Errorf("got %q, want %q", got.Stdout, want)
	}
}

func TestOpmDockerfiles(t *testing.T) {
	for name, args := range map[string][]string{
		"default": nil,
		"opts": {"-i", "example.test/base:1", "-b", "example.test/builder:2", "-l", "a=b,c=d", "-l", "e=f g", "-l",
			"a=z"},
		"scratch": {"-i", "scratch", "-b", "example.test/builder:2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := clitest.WorkDir(t)
			args := append([]string{"generate", "dockerfile", "cat"}, args...)
			if got := clitest.RunProgram(t, dir, "opm", args...); got.Status != 0 || got.Stdout+got.Stderr != "" {
				t.Fatalf("%+v", got)
			}
			file := filepath.Join(dir, "cat.Dockerfile")
			text := clitest.ReadFile(t, file)
			if want := clitest.ReadFile(t, "../clitest/testdata/opm/dockerfile-"+name+".Dockerfile"); text != want {
				t.Errorf("got\n%s\nwant\n%s", text, want)
			}
			again := clitest.RunProgram(t, dir, "opm", "generate", "dockerfile", "cat", "-i", "other")
			if want := clitest.RecordedError(t, "../clitest/testdata/opm/dockerfile-exists.stderr"); again.Status != 1 ||
				!strings.Contains(again.Stderr, want) {
				t.Errorf("a second time: %+v, want %s", again, want)
			}
			if clitest.ReadFile(t, file) != text {
				t.Error("the second run changed the file")
			}
		})
	}
}

// ownWords are the cases whose message differs from that of opm's libraries; declcfg's tests compare the common words.
var ownWords = map[string]bool{"bad-array": true, "bad-scalar": true, "bad-number-name": true, "bad-yaml": true,
	"bad-json": true, "ok-bom": true}

// emptyCases have no packages: valid to opm, with a warning here.
var emptyCases = map[string]bool{"bad-empty-dir": true, "bad-empty-file": true}

func TestOpmValidate(t *testing.T) {
	all := string(recorded.All(t))
	cases, golden := filepath.Join(all, "fbc-cases"), filepath.Join(all, "golden-fbc-cases")
	answers, err := filepath.Glob(golden + "/*/validate-json.json")
	if err != nil || len(answers) == 0 {
		t.Fatalf("no recorded answers in %s (%v)", golden, err)
	}
	for _, file := range answers {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			var want, got checkcmd.Verdict
			text := clitest.ReadFile(t, file)
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			status := 1
			if want.Passed {
				status = 0
			}
			dir := filepath.Join(cases, name)
			if name == "bad-empty-dir" { // the collection is a list of files and has no empty directories
				dir = t.TempDir()
			}
			answer := clitest.RunProgram(t, ".", "opm", "validate", dir, "-o", "json")
			if err := json.Unmarshal([]byte(answer.Stdout), &got); err != nil {
				t.Fatalf("%s: %v", answer.Stdout, err)
			}
			if answer.Status != status || got.Passed != want.Passed {
				t.Errorf("got %+v, want status %d and\n%s", answer, status, text)
			}
			warned := emptyCases[name] // opm prints nothing
			if plain := clitest.RunProgram(t, ".", "opm", "validate", dir); plain.Status != status || plain.Stdout != "" ||
				want.Passed && (plain.Stderr != "") != warned {
				t.Errorf("without -o: %+v", plain)
			}
			if !ownWords[name] && answer.Stdout != text {
				t.Errorf("got\n%s\nwant\n%s", answer.Stdout, text)
			}
		})
	}
}
