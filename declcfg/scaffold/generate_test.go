package scaffold

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDockerfileIsByteEqualToOpms(t *testing.T) {
	const builder, base = "example.test/builder:2", "example.test/base:1"
	for name, d := range map[string]Dockerfile{
		"default": {Dir: "cat", BaseImage: DefaultImage, BuilderImage: DefaultImage},
		"opts": {Dir: "cat", BaseImage: base, BuilderImage: builder,
			Labels: map[string]string{"a": "z", "c": "d", "e": "f g"}},
		"scratch": {Dir: "cat", BaseImage: "scratch", BuilderImage: builder},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile("testdata/dockerfile-" + name + ".Dockerfile")
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Text()
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestDockerfileRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		d    Dockerfile
		want string
	}{
		"no base image": {Dockerfile{Dir: "c", BuilderImage: "b"}, "base image is unset"},
		"no directory":  {Dockerfile{BaseImage: "b", BuilderImage: "b"}, "index directory is unset"},
		"a builder without a server": {Dockerfile{Dir: "c", BaseImage: "b", BuilderImage: "scratch"},
			`invalid builder image: "scratch"`},
		"a builder of two words": {Dockerfile{Dir: "c", BaseImage: "b", BuilderImage: "b\nRUN evil"},
			`invalid builder image: "b\nRUN evil"`},
		"a base of two words": {Dockerfile{Dir: "c", BaseImage: "b as x", BuilderImage: "b"},
			`invalid base image: "b as x"`},
		"a label with a newline": {Dockerfile{Dir: "c", BaseImage: "b", BuilderImage: "b",
			Labels: map[string]string{"k": "v\nRUN evil"}},
			`invalid label "k=v\nRUN evil"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.d.Text(); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestDockerfileQuotes(t *testing.T) {
	text, err := Dockerfile{Dir: "my cat", BaseImage: "b", BuilderImage: "b",
		Labels: map[string]string{"k": `a "b" $c \`}}.Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`ADD ["my cat","/configs"]`, `LABEL "k"="a \"b\" \$c \\"`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}
}

func TestWriteDockerfile(t *testing.T) {
	dir := t.TempDir()
	cat := filepath.Join(dir, "cat")
	if err := os.Mkdir(cat, 0o755); err != nil {
		t.Fatal(err)
	}
	d := Dockerfile{BaseImage: "b", BuilderImage: "b"}
	path, err := d.Write(cat + "/")
	if err != nil || path != cat+".Dockerfile" {
		t.Fatalf("wrote %q, %v", path, err)
	}
	before, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(before), "ADD cat /configs\n") {
		t.Fatalf("wrote %q, %v", before, err)
	}
	d.BaseImage = "other"
	if _, err := d.Write(cat); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(),
		"file already exists") {
		t.Errorf("a file that exists: got %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file that existed was changed (%v)", err)
	}
	t.Chdir(cat)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Write("."); err != nil || filepath.Base(got) != "cat.Dockerfile" {
		t.Errorf("for the working directory: %q, %v", got, err)
	}
	if _, err := d.Write(path); err == nil || !strings.HasSuffix(err.Error(), "is not a directory") {
		t.Errorf("for a file: %v", err)
	}
}

func TestImageType(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"png":               {"\x89PNG\r\n\x1a\nrest", "image/png"},
		"jpeg":              {"\xff\xd8\xff\xe0", "image/jpeg"},
		"gif":               {"GIF89a", "image/gif"},
		"webp":              {"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"},
		"wav is no picture": {"RIFF\x01\x02\x03\x04WAVEfmt ", ""},
		"avif":              {"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00avifmif1miaf", "image/avif"},
		"heif":              {"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00heicmif1", "image/heif"},
		"svg":               {`<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>`, "image/svg+xml"},
		"svg after a prologue": {"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<!-- <svg> " +
			"-->\n<!DOCTYPE svg>\n<svg>", "image/svg+xml"},
		"svg with a prefix":      {`<s:svg xmlns:s="http://www.w3.org/2000/svg"/>`, "image/svg+xml"},
		"html with a picture":    {"<html><svg/></html>", ""},
		"text that mentions svg": {"not an image <svg>", ""},
		"text":                   {"not an image", ""},
		"a cut file type box":    {"\x00\x00\x00\x1cftyp", ""},
		"nothing":                {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := imageType([]byte(c.data)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPackageRefusesFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int64) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		o    PackageOptions
		want string
	}{
		"no description file": {PackageOptions{DescriptionFile: "nosuch.md"},
			"open description file: open nosuch.md: no such file or directory"},
		"an empty icon": {PackageOptions{IconFile: write("empty", 0)}, "detect icon mediatype: "},
		"an icon of zeros": {PackageOptions{IconFile: write("zeros", 100)},
			`detected invalid type "": not an image`},
		"a huge icon": {PackageOptions{IconFile: write("huge", 1<<40)}, "longer than 4194304 bytes"},
		"a directory": {PackageOptions{IconFile: dir}, "is a directory, expected a file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.o.NewPackage(t.Context(), "p"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
