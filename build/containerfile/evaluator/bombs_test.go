//go:build !nobuildah && unix

package evaluator

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// repeat concatenates a text for each number below n.
func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(format, "{i}", fmt.Sprint(i)), "{next}", fmt.Sprint(i+1)))
	}
	return b.String()
}

// Short files that expand to huge values are refused before the expansion.
func TestBombsAreRefused(t *testing.T) {
	tens := func(name string) string { return repeat(12, name+"{next}="+strings.Repeat("${A{i}}", 10)+"\n") }
	for rule, test := range map[string]struct{ text, ignore string }{
		"text":                   {text: "FROM scratch\n" + strings.Repeat("#", MaxText)},
		"lines":                  {text: "FROM scratch\nLABEL a=b" + strings.Repeat("\\\nx", maxLines)},
		"an open heredoc":        {text: "FROM scratch\nCOPY <<E /x\n" + strings.Repeat("x\n", maxLines)},
		"stages":                 {text: repeat(maxStages+1, "FROM scratch\n")},
		"arguments before FROM":  {text: "ARG A0=0123456789\n" + tens("ARG A") + "FROM scratch\n"},
		"arguments of a stage":   {text: "FROM scratch\nARG A0=0123456789\n" + tens("ARG A")},
		"environment":            {text: "FROM scratch\nENV A0=0123456789\n" + tens("ENV A")},
		"replaced in a variable": {text: "ARG A=" + strings.Repeat("a", 4000) + "\nFROM scratch:${A//a/$A}\n"},
		"patterns for a variable": {text: "FROM scratch\nARG A=" + strings.Repeat("a",
			4000) + "\nLABEL a=${A/*a*b/c}\n"},
		"variables of a heredoc": {text: "FROM scratch\nENV A=" + strings.Repeat("a",
			20_000) + "\nCOPY <<E /x\n" + strings.Repeat("$A", 1000) + "\nE\n"},
		"a word": {text: "FROM scratch\nWORKDIR /" + strings.Repeat("a/", 50_000)},
		"stages that double": {text: "FROM scratch AS s0\nCOPY a /a\n" + repeat(40,
			"FROM scratch AS s{next}\nCOPY --from=s{i} / /1/\nCOPY --from=s{i} / /2/\n")},
		"patterns":  {text: "FROM scratch\nCOPY . /\n", ignore: repeat(maxPatterns+1, "a{i}\n")},
		"a pattern": {text: "FROM scratch\nCOPY . /\n", ignore: strings.Repeat("**/", 1000)},
		"exclusions for sources": {text: "FROM scratch\nCOPY" + strings.Repeat(" --exclude=x",
			200) + strings.Repeat(" a", 200) + " /x/\n"},
		"patterns for many places": {text: "FROM scratch\nCOPY " + strings.Repeat("**/*/", 20) + "x /x/\n"},
	} {
		t.Run(rule, func(t *testing.T) {
			files := map[string]string{"a": "A"}
			if test.ignore != "" {
				files[".containerignore"] = test.ignore
			}
			_, _, err := evaluate(t, test.text, Options{Context: contextDir(t, files)})
			if rule == "patterns for many places" {
				if err == nil || !strings.Contains(err.Error(), "nothing matches") {
					t.Error(err)
				}
			} else if !errors.Is(err, errLimit) {
				t.Errorf("%.300v", err)
			} else if len(err.Error()) > 10_000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// A Containerfile with many variables, as real ones have, stays within the limits.
func TestManyVariablesAreAccepted(t *testing.T) {
	text := "FROM scratch\nENV PATH=/usr/bin:/bin\n" + repeat(100, "ENV K{i}=/opt/{i}:${PATH}\n") + repeat(200,
		"LABEL l{i}=${K7}/${PATH#/usr}\n")
	if _, _, err := evaluate(t, text, Options{}); err != nil {
		t.Error(err)
	}
}

// The size limit applies to the unpacked files: holes and hard links count.
func TestArchiveBombsAreRefused(t *testing.T) {
	zip := func(write func(*tar.Writer) error) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		if err := write(w); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Close(), z.Close()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for rule, archive := range map[string]string{
		"hard links": zip(func(w *tar.Writer) error {
			const size = 8 << 20
			err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "z", Size: size})
			if err == nil {
				_, err = w.Write(make([]byte, size))
			}
			for i := 0; i < 2000 && err == nil; i++ {
				err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: fmt.Sprint(i), Linkname: "z"})
			}
			return err
		}),
		"holes": sparse(t),
		"names": zip(func(w *tar.Writer) error {
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("x", maxPath+1)})
		}),
		"extended attributes": zip(func(w *tar.Writer) (err error) {
			for i := 0; i < 20 && err == nil; i++ {
				err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint(i),
					PAXRecords: map[string]string{"SCHILY.xattr.user.a": strings.Repeat("a", 900<<10)}})
			}
			return err
		}),
	} {
		t.Run(rule, func(t *testing.T) {
			_, _, err := evaluate(t, "FROM scratch\nADD a /x/\n",
				Options{Context: contextDir(t, map[string]string{"a": archive})})
			if !errors.Is(err, errLimit) {
				t.Errorf("%.300v", err)
			}
		})
	}
}

// sparse writes an archive with a 1 TiB sparse file. archive/tar does not write PAX records for sparse files, so the
// test writes a comment record and renames it.
func sparse(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	content := make([]byte, 1024)
	copy(content, "1\n1099511627775\n1\n")
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "s", Size: int64(len(content)),
		PAXRecords: map[string]string{
			"GNA.sparse.major": "1", "GNA.sparse.minor": "0", "GNA.sparse.name": "s",
			"GNA.sparse.realsize": "1099511627776"}})
	if err == nil {
		_, err = io.Copy(w, bytes.NewReader(content))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), "GNA.sparse", "GNU.sparse")
}

func TestIgnoreFilesAreRegularFiles(t *testing.T) {
	dir := contextDir(t, map[string]string{"a": "A", "b/c": ""})
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, ".containerignore"), 0o644),
		syscall.Mkfifo(filepath.Join(dir, "b", "F.dockerignore"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, beside := range []string{"", filepath.Join(dir, "b", "F")} {
		if _, _, err := evaluate(t, "FROM scratch\nCOPY a /\n",
			Options{Context: dir, IgnoreBeside: beside}); err == nil || !strings.Contains(err.Error(),
			"not a regular file") {
			t.Error(err)
		}
	}
}
