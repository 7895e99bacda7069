package checkup_test

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/check/checkup"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// stricter are the images that catalogd stored, and the rule that the check finds, or "error" if it does not read them.
var stricter = map[string]string{
	"hardlink-in":                  "olmv1.link",
	"label-dotdot":                 "error",
	"label-empty":                  "error",
	"label-no-slash":               "error",
	"label-root":                   "error",
	"layer-nondistributable":       "error",
	"layer-plain-tar-as-gzip-type": "error",
	"layer-unknown-type":           "error",
	"layer-wrong-diffid":           "error",
	"layer-xz-as-gzip-type":        "error",
	"layer-zstd-as-gzip-type":      "error",
	"name-absolute":                "error",
	"name-dotdot":                  "error",
	"opq-root":                     "olmv1.image-view",
	"symlink-file-in":              "olmv1.link",
	"wh-ancestor":                  "olmv1.image-view",
	"wh-dir-after":                 "olmv1.image-view",
	"wh-root":                      "olmv1.image-view",
	"wh-root-after":                "olmv1.image-view",
	"wh-root-only":                 "olmv1.image-view",
}

// unseen are the images that catalogd refused for what the check does not look at.
var unseen = map[string]string{"content-schema-collision": "the gate of GraphQL"}

// The check refuses the images that catalogd refused, and no others but those that it should not take.
func TestRecordedImages(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links")
	}
	layout := t.TempDir()
	const from = "../../olmv1/catalogdtest/testdata/"
	for name, text := range recorded.Archive(t, from+"images.tar.zst") {
		at := filepath.Join(layout, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range recorded.Archive(t, from+"answers.tar.zst") {
		dir, name := filepath.Split(strings.TrimSuffix(file, ".txt"))
		if dir == "unpack-bundle/" || strings.HasPrefix(name, "ref-") || strings.HasPrefix(name, "zz-") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			report, err := checkup.Check(t.Context(), "oci:"+layout+":"+name,
				checkup.Options{Options: rules.Options{Profiles: []rules.Profile{rules.OLMv1}}})
			refused := strings.Contains(string(text), "error: ")
			got := "stored"
			switch {
			case err != nil:
				got = "error"
			case !report.Passed:
				i := slices.IndexFunc(report.Findings, func(f rules.Finding) bool { return f.Severity == rules.Error })
				got = report.Findings[i].Rule
			}
			switch {
			case refused && got == "stored" && unseen[name] == "":
				t.Errorf("accepted, and catalogd says %s", text)
			case refused && got != "stored" && unseen[name] != "":
				t.Errorf("refused for %s, which the test does not expect", got)
			case !refused && got != cmp.Or(stricter[name], "stored"):
				t.Errorf("got %s (%v), want %q", got, err, stricter[name])
			}
		})
	}
}
