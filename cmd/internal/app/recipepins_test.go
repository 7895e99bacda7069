package app_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

var (
	imageLine  = regexp.MustCompile(`^(- |- \{?)?(image|bindery-image): |^FROM |^ARG BASE=|ghcr\.io/`)
	pinned     = regexp.MustCompile(`[a-z0-9.]+(/[a-z0-9-]+)+:v\d+\.\d+\.\d+[A-Za-z0-9.-]*@sha256:[0-9a-f]{64}$`)
	pinnedUses = regexp.MustCompile(`^(- )?uses: [A-Za-z-]+/[A-Za-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	ownVersion = regexp.MustCompile(`(bindery:|@|bindery_|version: |default: )v?(\d+\.\d+\.\d+)\b`)
)

// recipeFiles are the files of recipes, without their pages.
func recipeFiles(t *testing.T) (files []string) {
	t.Helper()
	files = []string{"../../../action.yml"}
	for _, dir := range []string{"../../../deploy", "../../../templates"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".md") {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Every image in a recipe has a version and a digest, every action a commit; no recipe names what may change.
func TestRecipesArePinned(t *testing.T) {
	images, uses, versions := 0, 0, map[string][]string{}
	for _, file := range recipeFiles(t) {
		for n, line := range strings.Split(clitest.ReadFile(t, file), "\n") {
			line = strings.TrimSpace(line)
			comment := strings.HasPrefix(line, "#") || strings.HasPrefix(line, "//")
			switch {
			case strings.Contains(line, "latest"):
				t.Errorf("%s:%d: %s", file, n+1, line)
			case comment:
			case strings.Contains(line, "uses: "):
				if uses++; !pinnedUses.MatchString(line) {
					t.Errorf("%s:%d: %s", file, n+1, line)
				}
			case imageLine.MatchString(line) && !strings.Contains(line, "$"):
				value, _, _ := strings.Cut(line, " AS ")
				if images++; !pinned.MatchString(value) && line != "image:" && !strings.Contains(line, "acme/") {
					t.Errorf("%s:%d: %s", file, n+1, line)
				}
			}
			own := strings.Contains(line, "operator-bindery/bindery") || strings.Contains(line, "bindery_") ||
				strings.Contains(file, "action.yml") || strings.HasPrefix(line, "version: ")
			for _, m := range ownVersion.FindAllStringSubmatch(line, -1) {
				if own && !slices.Contains(versions[m[2]], file) {
					versions[m[2]] = append(versions[m[2]], file)
				}
			}
		}
	}
	if images < 20 || uses < 8 {
		t.Errorf("only %d images and %d actions", images, uses)
	}
	if len(versions) != 1 {
		t.Errorf("the recipes are of several versions: %v", versions)
	}
}
