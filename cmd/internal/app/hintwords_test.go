package app_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	ocmirrorcmd "github.com/operator-bindery/bindery/cmd/internal/ocmirror"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// sourceTexts returns the texts in Go files that are advice: those in a place that is a hint, or with all, every text
// that names a flag. Texts that are put together are one.
func sourceTexts(t *testing.T, dir string, all bool) (texts []string) {
	t.Helper()
	var text func(ast.Expr) string
	text = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			if e.Kind == token.STRING {
				s, _ := strconv.Unquote(e.Value)
				return s
			}
		case *ast.BinaryExpr:
			return text(e.X) + text(e.Y)
		case *ast.CallExpr:
			if len(e.Args) > 0 {
				return text(e.Args[0])
			}
		}
		return ""
	}
	add := func(e ast.Expr) {
		if s := text(e); s != "" {
			texts = append(texts, s)
		}
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			advises := ok && strings.HasSuffix(strings.ToLower(f.Name.Name), "hint")
			all := all || file.Name.Name == "hint" && ok
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BinaryExpr:
					if all {
						add(n)
						return false
					}
				case *ast.BasicLit:
					if all {
						add(n)
					}
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Hint" && !all {
						add(n.Value)
					}
				case *ast.AssignStmt:
					for i, to := range n.Lhs {
						s, hint := to.(*ast.SelectorExpr)
						hint = hint && s.Sel.Name == "Hint"
						id, named := to.(*ast.Ident)
						hint = hint || named && (id.Name == "hint" || advises && id.Name == "text")
						if hint && i < len(n.Rhs) && !all {
							add(n.Rhs[i])
						} else if hint && !all {
							add(n.Rhs[len(n.Rhs)-1])
						}
					}
				case *ast.ReturnStmt:
					if advises && !all {
						for _, r := range n.Results {
							add(r)
						}
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// allHints returns the hints of the command line, and of the only package beside it that gives some.
func allHints(t *testing.T) []string {
	t.Helper()
	return append(sourceTexts(t, "..", false), sourceTexts(t, "../../../build/containerfile/fullbuild", false)...)
}

// vocabulary has the flags and the commands of a program, these with their whole names.
type vocabulary struct{ flags, commands map[string]bool }

func vocabularyOf(app *cli.App) vocabulary {
	v := vocabulary{map[string]bool{}, map[string]bool{}}
	add := func(flags []cli.Flag) {
		for _, f := range flags {
			for _, n := range f.Names() {
				v.flags[n] = true
			}
		}
	}
	var walk func(prefix string, all []*cli.Command)
	walk = func(prefix string, all []*cli.Command) {
		for _, c := range all {
			if strings.HasPrefix(c.Name, "oc-mirror") {
				continue
			}
			name := strings.TrimSpace(prefix + " " + c.Name)
			v.commands[name] = true
			add(c.Flags)
			walk(name, c.Subcommands)
		}
	}
	add(app.Flags)
	walk("", app.Commands)
	return v
}

var (
	quotedText = regexp.MustCompile(`"[^"]*"`)
	longFlag   = regexp.MustCompile(`(?:^|[\s(,"])--([a-z][a-z0-9.-]*)`)
)

// No hint names a flag or a command that does not exist under the name that the program was started under. What another
// program has is in quotes, with its name.
func TestHintsAreInTheWordsOfTheName(t *testing.T) {
	hints := allHints(t)
	advice := sourceTexts(t, "../../../mirror", true)
	if len(hints) < 150 || len(advice) < 500 {
		t.Fatalf("%d hints and %d texts found", len(hints), len(advice))
	}
	foreign := []string{"podman ", "ulimit ", "make ", "opm serve ", "get", "update"}
	for name, prefix := range map[string]string{"bindery": "", "opm": "opm ", "kubectl-bindery": "kubectl bindery ",
		"oc-mirror": "oc-mirror"} {
		p := &option.Session{Program: &program.Program{Name: name, Opm: name == "opm", Stdout: &cmdline.Pipe{W: io.Discard}, Stderr: io.Discard}}
		v := vocabularyOf(app.New(p))
		own := v
		texts := hints
		if name == ocmirrorcmd.Name {
			own = vocabulary{map[string]bool{}, map[string]bool{}}
			for _, f := range ocmirrorcmd.Flags() {
				for _, n := range f.Names() {
					own.flags[n] = true
				}
			}
			// Of the package mirror the advice is among other texts.
			texts = slices.Concat(hints, slices.DeleteFunc(slices.Clone(advice),
				func(s string) bool { return !strings.Contains(s, "--") }))
		}
		for _, hint := range texts {
			if !strings.Contains(hint, "--") && !quotedText.MatchString(hint) {
				continue
			}
			said := p.Words(hint)
			check := func(part string, of vocabulary) {
				for _, f := range longFlag.FindAllStringSubmatch(part, -1) {
					if !of.flags[f[1]] {
						t.Errorf("%s: %q has no --%s", name, said, f[1])
					}
				}
			}
			check(quotedText.ReplaceAllStringFunc(said, func(quoted string) string {
				inner := strings.Trim(quoted, `"`)
				if slices.ContainsFunc(foreign, func(f string) bool { return strings.HasPrefix(inner, f) }) {
					return ""
				}
				command, isBindery := strings.CutPrefix(inner, "bindery ")
				switch {
				case isBindery && name != "bindery" && name != ocmirrorcmd.Name:
					t.Errorf("%s: %q names bindery", name, said)
				case isBindery:
					check(command, v)
					return ""
				case strings.HasPrefix(inner, "oc-mirror") && name != ocmirrorcmd.Name:
					return ""
				case prefix != "":
					command = strings.TrimPrefix(inner, prefix)
				}
				words := strings.Fields(command)
				known := len(words) > 1 && (v.commands[strings.Join(words[:2], " ")] || v.commands[words[0]]) ||
					len(words) == 1 && v.commands[words[0]] && name == ocmirrorcmd.Name
				if name == ocmirrorcmd.Name && known && !strings.HasPrefix(inner, prefix) {
					t.Errorf("%s: %q is a command that it has not: %q", name, said, inner)
				}
				return quoted
			}), own)
		}
	}
}

// No command names a flag that it does not have outside of quotes, whichever hint it prints, and each hint is whole under
// some command.
func TestHintsNameFlagsOfTheirCommand(t *testing.T) {
	hints := slices.DeleteFunc(allHints(t), func(s string) bool { return !strings.Contains(s, "--") })
	if len(hints) < 50 {
		t.Fatalf("%d hints found", len(hints))
	}
	for _, name := range []string{"bindery", "opm", "oc-mirror"} {
		p := &option.Session{Program: &program.Program{Name: name, Opm: name == "opm", Stdout: &cmdline.Pipe{W: io.Discard}, Stderr: io.Discard}}
		program := app.New(p)
		lost := map[string]bool{}
		for _, hint := range hints {
			lost[hint] = name == "bindery"
		}
		commands := 0
		var walk func(path []*cli.Command, all []*cli.Command)
		walk = func(path []*cli.Command, all []*cli.Command) {
			for _, c := range all {
				path := append(slices.Clone(path), c)
				walk(path, c.Subcommands)
				if strings.HasPrefix(c.Name, "oc-mirror") != (name == ocmirrorcmd.Name) {
					continue
				}
				commands++
				p.Line = cmdline.Line{Path: path}
				has := map[string]bool{}
				for _, f := range slices.Concat(program.Flags, path[0].Flags, c.Flags) {
					for _, n := range f.Names() {
						has[n] = true
					}
				}
				for _, hint := range hints {
					for _, end := range []string{"", "src", "dest"} {
						said := p.WordsFor(hint, end)
						if again := p.Words(said); again != said {
							t.Errorf("%s %s: words of words: %q, %q", name, c.Name, said, again)
						}
						var e *cmdline.Error
						errors.As(p.WithHintInWords(&cmdline.Error{Hint: said}), &e)
						for _, f := range longFlag.FindAllStringSubmatch(quotedText.ReplaceAllString(e.Hint, ""), -1) {
							if !has[f[1]] {
								t.Errorf("%s %s: %q names --%s, which it has not", name, c.Name, e.Hint, f[1])
							}
						}
						if e.Hint == said {
							delete(lost, hint)
						}
					}
				}
			}
		}
		walk(nil, program.Commands)
		if commands < 4 {
			t.Errorf("%s: %d commands", name, commands)
		}
		for hint, is := range lost {
			if is {
				t.Errorf("%q is whole under no command", hint)
			}
		}
	}
}

// The hints about registries help under the name oc-mirror: with the flag that is named the command goes on.
func TestHintsOfOCMirrorHelp(t *testing.T) {
	plain, secure := testregistry.New(t), testregistry.NewTLS(t)
	base := clitest.OpmFor("amd64")
	base.Labels = map[string]string{clitest.TestConfigsLabel: "/configs"}
	base.Layers = []map[string]string{{"configs/catalog.json": clitest.PackageText("etcd")}}
	for _, r := range []*testregistry.Registry{plain, secure} {
		r.AddImage(t, "acme/catalog", "v1", base)
	}
	dir := t.TempDir()
	for n, line := range map[string]string{
		"list": "list operators --catalog SOURCE/acme/catalog:v1",
		"copy": "-c isc.yaml --workspace file://DIR docker://TARGET",
	} {
		for kind, source := range map[string]*testregistry.Registry{"plain": plain, "secure": secure} {
			for to, target := range map[string]*testregistry.Registry{"plain": plain, "secure": secure} {
				clitest.WriteFile(t, filepath.Join(dir, "isc.yaml"), "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\n"+
					"mirror:\n  additionalImages:\n  - name: "+source.Host()+"/acme/catalog:v1\n")
				args := strings.Fields(strings.NewReplacer("SOURCE", source.Host(), "TARGET", target.Host()+"/m", "DIR",
					fmt.Sprintf("%s-%s-%s", n, kind, to)).Replace(line) + " --retry-times 0")
				var tried []string
				for {
					got := clitest.RunProgram(t, dir, "oc-mirror", append(args, tried...)...)
					if got.Status == 0 {
						break
					}
					if strings.Contains(got.Stderr, "--use-http") || strings.Contains(got.Stderr, "--ca-file") {
						t.Errorf("%q: %+v", args, got)
					}
					flag := ""
					for _, f := range []string{"--src-tls-verify=false", "--dest-tls-verify=false"} {
						if strings.Contains(got.Stderr, f) && !slices.Contains(tried, f) {
							flag = f
							break
						}
					}
					if flag == "" {
						t.Errorf("%q %q: no flag in %+v", args, tried, got)
						break
					}
					tried = append(tried, flag)
				}
			}
		}
	}
}

// What oc-mirror has and this program has not is said, and not something else.
func TestUnsupportedByOCMirror(t *testing.T) {
	for line, want := range map[string]string{
		"list --channel stable-4.14 updates":                   `"list updates" is not supported`,
		"list things --catalog x":                              `"list things" is not supported`,
		"list":                                                 `"list operators" needs --catalog NAME`,
		"list operators":                                       `"list operators" needs --catalog NAME`,
		"list operators --version 4.14":                        "--version is for --catalogs",
		"list operators --catalogs":                            "--catalogs needs --version X.Y",
		"list operators --catalogs --version 4.x":              `--version: "4.x" is no version of OpenShift`,
		"list operators --catalogs --version 4.14 --catalog x": "--catalog and --catalogs cannot be used together",
		"init --registry example.com/x":                        `"init" is not supported`,
		"describe archive.tar":                                 `"describe" is not supported`,
		"-c x --v1=false --src-no-creds=false file://y":        "x: no such file",
		"-c x --authfile -v file://y":                          "x: no such file",
		"--v1 -c x file://y":                                   "--v1 is not supported",
		"-c x --src-creds a:b file://y":                        `log in with "bindery login HOST", or name a file with --src-authfile`,
		"delete --generate --dest-creds a:b docker://y":        "--dest-creds is not supported",
		"list operators --catalog x --src-no-creds":            "--src-no-creds is not supported",
		"-c x --dest-compress-format zstd file://y":            "so that their digests stay",
		"-c x --dest-compress file://y":                        "--dest-compress is not supported",
		"-c x --dest-decompress file://y":                      "--dest-decompress is not supported",
		"-c x --dest-precompute-digests -q file://y":           "x: no such file", // it is heeded
		"-c init file://y":                                     "init: no such file",
	} {
		got := clitest.RunProgram(t, t.TempDir(), "oc-mirror", strings.Fields(line)...)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// Other names of the program are in what it advises.
func TestHintsNameTheProgram(t *testing.T) {
	dir := clitest.WorkDir(t)
	for name, want := range map[string]string{"bindery": ": bindery render REF | bindery template convert basic",
		"kubectl-bindery": ": kubectl bindery render REF | kubectl bindery template convert basic",
		"opm":             ": opm render REF | opm template convert basic"} {
		got := clitest.RunProgram(t, dir, name, "template", "convert", "basic", "example.com/acme/catalog:v1", "--error-format", "json")
		if !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
