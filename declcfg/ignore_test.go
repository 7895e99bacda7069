package declcfg

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/internal/testing/cputime"
)

func TestIgnoreFile(t *testing.T) {
	files := []string{"a.json", "README.md", "x/README.md", "x/keep.md", "x/y/z.yaml", "x/y/deep/z.yaml", "docs/a.txt",
		"x/docs/b.txt", "docs.yaml"}
	tests := []struct {
		name    string
		ignores map[string]string // ignore file by directory
		loaded  []string
	}{
		{"no ignore file", nil, files},
		{"name at any depth", map[string]string{".": "README.md"}, without(files, "README.md", "x/README.md")},
		{"leading slash anchors", map[string]string{".": "/README.md"}, without(files, "README.md")},
		{"glob", map[string]string{".": "*.md"}, without(files, "README.md", "x/README.md", "x/keep.md")},
		{"negation brings back", map[string]string{".": "*.md\n!keep.md"}, without(files, "README.md", "x/README.md")},
		{"negation below an ignored directory", map[string]string{".": "x\n!x/y/z.yaml"},
			[]string{"a.json", "README.md", "x/y/z.yaml", "docs/a.txt", "docs.yaml"}},
		{"directory only", map[string]string{".": "docs/"}, without(files, "docs/a.txt", "x/docs/b.txt")},
		{"a directory pattern does not match a file", map[string]string{".": "docs.yaml/"}, files},
		{"in a sub-directory", map[string]string{"x": "*.md"}, without(files, "x/README.md", "x/keep.md")},
		{"double star in front", map[string]string{".": "**/z.yaml"}, without(files, "x/y/z.yaml", "x/y/deep/z.yaml")},
		{"double star within", map[string]string{".": "x/**/z.yaml"}, without(files, "x/y/z.yaml", "x/y/deep/z.yaml")},
		{"double star at the end", map[string]string{".": "x/y/**"}, without(files, "x/y/z.yaml", "x/y/deep/z.yaml")},
		{"star stays within one element", map[string]string{".": "x/*/z.yaml"}, without(files, "x/y/z.yaml")},
		{"comments and blank lines", map[string]string{".": "# README.md\n\n  a.json  \r\n"}, without(files, "a.json")},
		{"the later file decides", map[string]string{".": "README.md", "x": "!README.md"}, without(files, "README.md")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for _, f := range files {
				fsys[f] = &fstest.MapFile{}
			}
			for dir, content := range tt.ignores {
				fsys[strings.TrimPrefix(dir+"/"+IgnoreFile, "./")] = &fstest.MapFile{Data: []byte(content)}
			}
			got, err := catalogFiles(fsys)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				ignored, err := Ignored(fsys, f)
				if loaded := slices.Contains(got, f); err != nil || ignored == loaded {
					t.Errorf("%s: ignored is %v, %v, but the file is loaded: %v", f, ignored, err, loaded)
				}
			}
			want := slices.Sorted(slices.Values(tt.loaded))
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

func without(files []string, drop ...string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return slices.Contains(drop, f) })
}

func TestIgnoreFileIsBounded(t *testing.T) {
	for name, content := range map[string]string{
		"too many patterns": strings.Repeat("a\n", maxIgnorePatterns+1),
		"too large":         strings.Repeat("# comment\n", maxIgnoreFile/10+1),
		"a long pattern":    strings.Repeat("**/", 200) + "x",
		"binary":            "a\x00b",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := catalogFiles(fstest.MapFS{IgnoreFile: {Data: []byte(content)}}); err == nil {
				t.Error("no error")
			}
		})
	}
	t.Run("stars are matched in linear time", func(t *testing.T) {
		matched := func(stars int) func() {
			fsys := fstest.MapFS{
				IgnoreFile:                             {Data: []byte(strings.Repeat("**/", stars) + "nothing")},
				strings.Repeat("a/", maxDepth-1) + "b": {},
			}
			return func() {
				if _, err := catalogFiles(fsys); err != nil {
					t.Fatal(err)
				}
			}
		}
		// Backtracking over the stars would take thousands of times as long for five times as many.
		if ratio := cputime.Ratio(matched(12), matched(60)); ratio > 15 {
			t.Errorf("five times the stars take %.1f times as long", ratio)
		}
	})
}
