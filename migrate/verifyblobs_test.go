package migrate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/migrate"
)

// odd is a catalog with blobs that a conversion could easily change: numbers, strings that look like other types, blobs
// without a package.
const odd = `{"schema":"olm.package","name":"a","defaultChannel":"1.0","x":{"big":12345678901234567890,"float":1.0,"exp":1e3,"yes":"yes","null":null,"date":"2001-01-01","lines":"a\n  b\n\n"}}
{"schema":"olm.channel","package":"a","name":"1.0","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"r/a@sha256:1","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}},{"type":"z","value":1.10},{"type":"olm.bundle.object","value":{"data":"e30="}}]}
{"schema":"example.com/x","package":"a","n":0.30000000000000004}
{"schema":"example.com/x","package":"a","n":0.30000000000000004}
{"schema":"example.com/free","name":"free","list":[1,"1",true,"true"]}
`

func TestVerifyOfACatalog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cat")
	if err := errors.Join(os.Mkdir(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "all.json"), []byte(odd), 0o644)); err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{"odd": dir, "recorded": filepath.Join("..", "testdata", "fbc", "mini")}
	for name, src := range sources {
		for _, format := range []declcfg.Format{declcfg.FormatJSON, declcfg.FormatYAML} {
			r, err := migrate.Options{Verify: true, Format: format}.Run(context.Background(), src, filepath.Join(t.TempDir(), "out"))
			if err != nil || r.Verification == nil || !r.Verification.Same {
				t.Errorf("%s as %s: %v %+v", name, format, err, r)
			}
		}
	}
}

// The smallest change after writing is detected, and the output does not get its final name.
func TestVerifyOfACatalogFindsChanges(t *testing.T) {
	src := filepath.Join(t.TempDir(), "cat")
	if err := errors.Join(os.Mkdir(src, 0o755),
		os.WriteFile(filepath.Join(src, "all.json"), []byte(odd), 0o644)); err != nil {
		t.Fatal(err)
	}
	edits := map[string]func(dir string) error{
		"a number": func(dir string) error {
			return replace(filepath.Join(dir, "a", "catalog.json"), "0.30000000000000004", "0.3")
		},
		"one of two": func(dir string) error {
			return replace(filepath.Join(dir, "a", "catalog.json"), `"schema": "example.com/x"`,
				`"schema": "example.com/y"`)
		},
		"of no package": func(dir string) error {
			return replace(filepath.Join(dir, "catalog.json"), `"free"`, `"fred"`)
		},
		"no package": func(dir string) error { return os.Remove(filepath.Join(dir, "catalog.json")) },
		"a package":  func(dir string) error { return os.RemoveAll(filepath.Join(dir, "a")) },
		"one more": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "a", "more.json"), []byte(`{"schema":"x"}`), 0o644)
		},
		"a package elsewhere": func(dir string) error {
			return replace(filepath.Join(dir, "a", "catalog.json"), `"package": "a"`, `"package": "b"`)
		},
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			edited := false
			o := migrate.Options{Verify: true}
			o.Progress = func(step migrate.Step, n, _ int, pkg string) {
				if step != migrate.StepVerify || edited {
					return
				}
				edited = true
				// The output still has its temporary name.
				left := names(t, parent)
				if len(left) != 1 {
					t.Fatalf("beside the output: %v", left)
				}
				if err := edit(filepath.Join(parent, left[0])); err != nil {
					t.Error(err)
				}
			}
			_, err := o.Run(context.Background(), src, filepath.Join(parent, "out"))
			if err == nil || !edited {
				t.Errorf("got %v, edited %v", err, edited)
			}
			if left := names(t, parent); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

func replace(file, old, now string) error {
	text, err := os.ReadFile(file)
	if err == nil && !strings.Contains(string(text), old) {
		err = errors.New("nothing to change in " + file)
	}
	return errors.Join(err, os.WriteFile(file, []byte(strings.Replace(string(text), old, now, 1)), 0o644))
}

// A prepared migration is complete and verified but not at its final name; discarding it leaves nothing.
func TestPrepare(t *testing.T) {
	src := recorded.Part(t).Database(t, "small")
	parent := t.TempDir()
	out := filepath.Join(parent, "made", "out")
	for _, commit := range []bool{false, true} {
		p, err := migrate.Options{Verify: true}.Prepare(t.Context(), src, out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the output is there already: %v", err)
		}
		if got := names(t, p.Dir()); strings.Join(got, " ") != "etcd silicom-sts-operator" ||
			!p.Report.Verification.Same || len(p.Report.Packages) != 2 {
			t.Errorf("got %v, %+v", got, p.Report)
		}
		if commit {
			if err := p.Commit(); err != nil || p.Partial() != nil {
				t.Error(err, p.Partial())
			}
		}
		if err := p.Discard(); err != nil {
			t.Error(err)
		}
		if !commit {
			if left := names(t, parent); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		} else if got := names(t, out); len(got) != 2 {
			t.Errorf("got %v", got)
		}
	}
}

// With Replace an older output is replaced, and stays if the new one fails.
func TestReplaceAnOutput(t *testing.T) {
	part := recorded.Part(t)
	out := filepath.Join(t.TempDir(), "out")
	o := migrate.Options{}
	if _, err := o.Run(context.Background(), part.Database(t, "small"), out); err != nil {
		t.Fatal(err)
	}
	o.Replace = true
	broken := altered(t, "small",
		"UPDATE operatorbundle SET version = 'latest' WHERE name = 'silicom-sts-operator.v0.0.6'")
	if _, err := o.Run(context.Background(), broken, out); err == nil || len(names(t, out)) != 2 {
		t.Errorf("a broken one: %v, %v", err, names(t, out))
	}
	if _, err := o.Run(context.Background(), part.Database(t, "subs"), out); err != nil ||
		strings.Join(names(t, out), " ") == "etcd silicom-sts-operator" {
		t.Errorf("another one: %v, %v", err, names(t, out))
	}
	if left := names(t, filepath.Dir(out)); len(left) != 1 {
		t.Errorf("beside it: %v", left)
	}
}
