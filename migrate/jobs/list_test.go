package jobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/problem"
)

// transports are those of the lists.
var transports = library.Transports(images.BuiltIn())

// pushed returns the destinations of an image in these tests: the registry of its name.
func pushed(names []string, given []transport.Destination) ([]string, []transport.Destination, error) {
	for _, n := range names {
		d, err := transports.Parse("docker://" + n)
		if err != nil {
			return nil, nil, err
		}
		given = append(given, d)
	}
	return names, given, nil
}

func parse(t *testing.T, text, outDir string) ([]Line, error) {
	t.Helper()
	return Parse(strings.NewReader(text), "list", ListOptions{OutDir: outDir, Transports: transports, Image: pushed})
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, line, source, outputs string }{
		{"a directory", "a.db out/a", "a.db", "out/a"},
		{"tabs and blanks", "\t a.db \t  out  ", "a.db", "out"},
		{"a comment behind it", "a.db out # yes", "a.db", "out"},
		{"no comment within a word", "a#b out#c", "a#b", "out#c"},
		{"a quoted number sign", `"#a" '#b'`, "#a", "#b"},
		{"double quotes", `"a b.db" "o\"u\\t"`, "a b.db", `o"u\t`},
		{"single quotes", `'a "b".db' 'o\ut'`, `a "b".db`, `o\ut`},
		{"quotes within a word", `a' 'b o"u"t`, "a b", "out"},
		{"backslashes outside of quotes are themselves", `C:\a.db out`, `C:\a.db`, "out"},
		{"carriage return", "a.db out\r", "a.db", "out"},
		{"a name", "a.db -> example.com/a:v1", "a.db", "docker://example.com/a:v1"},
		{"names", "a.db -> example.com/a:v1 example.com/b:v2", "a.db",
			"docker://example.com/a:v1 docker://example.com/b:v2"},
		{"a directory and a name", "a.db out -> example.com/a:v1", "a.db", "out docker://example.com/a:v1"},
		{"a transport", "a.db oci:x:v1", "a.db", "oci:x:v1"},
		{"transports behind the arrow", "a.db -> oci:x:v1 oci-archive:y.tar", "a.db", "oci:x:v1 oci-archive:y.tar"},
		{"a quoted arrow is a directory", "a.db '->'", "a.db", "->"},
		{"an image", "docker://example.com/a@sha256:" + strings.Repeat("a", 64) + " out",
			"docker://example.com/a@sha256:" + strings.Repeat("a", 64), "out"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines, err := parse(t, "\ufeff# head\n\n  # more\n"+tt.line+"\n", "")
			if err != nil || len(lines) != 1 {
				t.Fatalf("%+v, %v", lines, err)
			}
			if l := lines[0]; l.Source != tt.source || strings.Join(l.Outputs(), " ") != tt.outputs || l.Number != 4 {
				t.Errorf("%+v", l)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, d := range []string{"src/sub", "elsewhere", "inside"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("elsewhere", "link"), os.Symlink("../elsewhere", "inside/link"),
		os.WriteFile("a.db", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, outDir, want string }{
		{"no output", "a.db", "", "list:1: invalid list: no output for"},
		{"missing source", "-> x", "", "missing source"},
		{"an empty source", `"" out`, "", "missing source"},
		{"an empty output", `a ""`, "", "empty output"},
		{"two directories", "a b c", "", "two directories"},
		{"two arrows", "a -> example.com/b -> example.com/c", "", "duplicate"},
		{"nothing behind the arrow", "a out ->", "", "no image"},
		{"a quote that stays open", `a "out`, "", "not closed"},
		{"a control character", "a out\x1b[2J", "", "control character"},
		{"a NUL", "a out\x00", "", "control character"},
		{"not UTF-8", "a out\xff", "", "not UTF-8"},
		{"a long line", "a " + strings.Repeat("x", maxLine), "", "longer than"},
		{"a bad transport", "a oci:", "", "path is empty"},
		{"the same directory", "a out\nb ./out/", "", `list:2: invalid list: the output "out" is also that of line 1`},
		{"the same directory through a link", "a elsewhere/x\nb link/x", "", "also that of line 1"},
		{"the same image", "a -> example.com/a:v1\nb docker://example.com/a:v1", "", "also that of line 1"},
		{"the same image in a layout", "a oci:l:v1\nb oci:l:v1", "", "also that of line 1"},
		{"a directory that is a layout", "a l\nb oci:l:v1", "", "also that of line 1"},
		{"an archive that is a directory", "a l oci-archive:l", "", "also that of line 1"},
		{"in each other", "a out/x\nb out", "", `the output "out/x" is inside that of line 2`},
		{"a layout in a directory", "a out\nb oci:out/l:v1", "", "is inside that of line 1"},
		{"in a source", "src src/sub/out", "", "is inside the source"},
		{"is another's source", "src x\nb src", "", "is or is inside the source of line 1"},
		{"holds a source", "src/sub x\nb src", "", "contains the source of line 1"},
		{"replaces its source", "oci-archive:a.db oci-archive:a.db", "", "is or is inside the source"},
		{"out of the directory", "a ../x", "inside", "is outside of the output directory"},
		{"out of the directory, absolute", "a /x", "inside", "is outside of the output directory"},
		{"out of the directory, in the middle", "a y/../../x", "inside", "is outside of the output directory"},
		{"the directory itself", "a .", "inside", "is outside of the output directory"},
		{"out of the directory by an image", "a oci:../x:v1", "inside", "is outside of the output directory"},
		{"out of the directory through a link", "a link/x", "inside", "through a link"},
		{"the same source twice", "a.db\n./a.db\na.db", "inside", "also that of line 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parse(t, tt.text, tt.outDir)
			if err == nil || !errors.Is(err, ErrList) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := parse(t, strings.Repeat("x\n", maxList/2+1), ""); !errors.Is(err, ErrList) {
		t.Errorf("a list that is too long: %v", err)
	}
	var all *problem.List[problem.Problem]
	if _, err := parse(t, strings.Repeat("x\n", problem.Most+30), ""); !errors.As(err, &all) || len(all.Problems) != problem.Most ||
		all.More != 30 {
		t.Errorf("many problems: %v", err)
	}
	var many strings.Builder
	for i := range maxLines + 2 {
		fmt.Fprintf(&many, "a o%d\n", i)
	}
	if _, err := parse(t, many.String(), ""); err == nil || !strings.Contains(err.Error(), "more than 100000") {
		t.Errorf("many lines: %v", err)
	}
}

// Several images in one layout do not conflict.
func TestLayoutOfSeveral(t *testing.T) {
	t.Chdir(t.TempDir())
	if lines, err := parse(t, "a oci:l:v1\nb oci:l:v2 docker://example.com/a:v1", ""); err != nil || len(lines) != 2 {
		t.Errorf("%v, %v", lines, err)
	}
}

// Names derived from sources are readable, stay within the directory, differ for different sources, and do not depend
// on the rest of the list.
func TestDerivedNames(t *testing.T) {
	t.Chdir(t.TempDir())
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for source, want := range map[string]string{
		"v4.16.db":                       "v4.16",
		"./indexes/v4.16/index.db":       "indexes_v4.16_index",
		"/data/index.db":                 "data_index",
		"example.com/acme/catalog:v1":    "example.com_acme_catalog_v1",
		"docker://example.com/acme/x:v1": "example.com_acme_x_v1",
		"oci:layout:v1":                  "oci_layout_v1",
		"example.com/a@" + digest:        "example.com_a_sha256_" + strings.TrimPrefix(digest, "sha256:"),
	} {
		if got := nameOf(source, !transports.Has(source)); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
	seen := map[string]string{}
	for _, source := range []string{
		"../x.db", "../../x.db", "x.db", "..", ".", "...", ".hidden", "-flag", "a b", "a_b", "a\\b", "a*b", "é", "ê",
		"CON", "con.db", "aux", "lpt1.x", "nul",
		strings.Repeat("y", 300), strings.Repeat("y", 301), "Ä/ß", "a\u202eb", "trailing.", "~root", "$HOME", "`id`",
		";", "|",
	} {
		name := nameOf(source, !transports.Has(source))
		if !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\ :$`;|*") || name == "." || name == "" ||
			strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || len(name) > 200 || reserved(name) {
			t.Errorf("%q: the name is %q", source, name)
		}
		if other, ok := seen[name]; ok && filepath.Clean(source) != filepath.Clean(other) {
			t.Errorf("%q and %q have the name %q", source, other, name)
		}
		seen[name] = source
	}
	lines, err := parse(t, "a/b.db\na:b\nA/b.db\na/b\nc.db", "out")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, l := range lines {
		names[strings.ToLower(l.Directory)] = true
	}
	if len(names) != 5 || lines[4].Directory != filepath.Join("out", "c") {
		t.Errorf("%v", lines)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a b", "a -> b", `"a\"" 'b' # c`, "a oci:x:y\nb ../x", "\xff", "a \x00"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, text string, below bool) {
		o := ListOptions{Transports: transports, Image: pushed}
		if below {
			o.OutDir = "out"
		}
		lines, err := Parse(strings.NewReader(text), "list", o)
		if err != nil {
			return
		}
		for _, l := range lines {
			if l.Source == "" || len(l.Outputs()) == 0 {
				t.Fatalf("%q: %+v", text, l)
			}
			for _, out := range l.Outputs() {
				if below && !strings.HasPrefix(out, "docker://") {
					path := out
					if d, err := transports.Parse(out); err == nil {
						path = d.Path
					}
					if rel, err := filepath.Rel("out", path); err != nil || !filepath.IsLocal(rel) || rel == "." {
						t.Fatalf("%q leads to %q", text, out)
					}
				}
			}
			if name := recordName(&l); !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\") || len(name) > 255 {
				t.Fatalf("%q: the record is %q", text, name)
			}
		}
	})
}
