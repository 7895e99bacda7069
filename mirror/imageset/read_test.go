package imageset_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

const head = "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n"

func parse(text string) (*imageset.Set, error) {
	return imageset.Parse([]byte(text), "f", imageset.Image, imageset.Options{})
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "isc.yaml")
	const config = `# comment
kind: ImageSetConfiguration
archiveSize: 4
mirror:
  operators:
  - &one
    catalog: docker://h:5000/a/b:v1
    platforms: [{os: linux, architecture: arm64}]
    skipDependencies: yes
    packages:
    - name: p
      defaultChannel: "4.10"
      channels: [{name: c, minVersion: v1.2}]
  - <<: *one
    targetTag: other
  additionalImages: [{name: h.io/x@sha256:b468140dc7d4999406e30cd502f483256febef5ff34f60c50a64e098828a0d5a, targetTag: t}]
  blockedImages: [{name: '^h[.]io/'}]
  platform: {graph: false, channels: []}
  helm:
`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := imageset.Read(t.Context(), file, imageset.Image, imageset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := s.Operators[0]
	if s.ArchiveSize != 4 || s.SegmentSize() != 4 || len(s.Operators) != 2 || o.Line != 6 ||
		o.Catalog.String() != "docker://h:5000/a/b:v1" || o.Written != "docker://h:5000/a/b:v1" ||
		!o.SkipDependencies ||
		o.Platforms[0].Architecture != "arm64" || o.Packages[0].DefaultChannel != "4.10" || o.Packages[0].Line != 11 ||
		o.Packages[0].Channels[0].MinVersion != "v1.2" || s.Operators[1].TargetTag != "other" ||
		s.Operators[1].Packages[0].Name != "p" || s.AdditionalImages[0].TargetTag != "t" || !s.Helm.IsZero() ||
		string(s.Text) != config {
		t.Errorf("%+v", s)
	}
	if _, _, blocked := s.Blocked(s.AdditionalImages[0].Name, "", imageset.Ref{}, imageset.Target{}); !blocked {
		t.Error("the rule does not match")
	}
	if _, err := imageset.Read(t.Context(), file+"x", imageset.Image, imageset.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// A catalog that is no name of an image has one problem: nothing is said of a directory that it does not name.
func TestACatalogThatIsNoNameIsOneProblem(t *testing.T) {
	for _, name := range []string{"1", "dir:///a/b", "h.io/c", "''"} {
		_, err := parse(head + "mirror: {operators: [{catalog: " + name + "}]}")
		if !errors.Is(err, fault.ErrInvalid) || strings.Contains(err.Error(), "directory") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A faulty file is refused with all its problems, each with its position.
func TestAllProblemsAreTold(t *testing.T) {
	op := head + "mirror:\n  operators:\n  - catalog: h.io/c:v1\n"
	for text, want := range map[string][]string{
		"":                           {"f: the file is empty"},
		"[]":                         {"f:1:1: not an object"},
		head + "mirror: {}\n---\na:": {"more than one document"},
		"\n\n--- \n" + head + "mirror:\n  operators:\n  - catalog: 1\n    fulll: true\n    full: x\n": {
			`f:8:14: mirror.operators[0].catalog: a number, expected a string (write it in quotes: "1")`,
			`f:9:5: mirror.operators[0]: unknown field "fulll" (perhaps full)`,
			`f:10:11: mirror.operators[0].full: a string, expected a boolean`},
		op + "    packages:\n    - name: a\n      minVersion: 1.10\n": {
			`packages[0].minVersion: a number, expected a string (write it in quotes: "1.10")`},
		op + "    packages:\n    - name: a\n      minVersion: one\n    - name: a\n    - maxVersion: 1.0.0-01\n": {
			`f:8:19: mirror.operators[0].packages[0].minVersion: must respect semantic versioning notation`,
			`f:9:13: mirror.operators[0].packages[1].name: duplicate package entry "a", as in line 7`,
			`packages[2].name: package without a name: name must be specified`,
			`packages[2].maxVersion: must respect semantic versioning notation: "1.0.0-01"`},
		op + "    full: true\n    packages:\n    - name: a\n      minVersion: 1.0.0\n      channels:\n" +
			"      - name: c\n        maxVersion: 2\n": {"a number, expected a string", "full: true cannot be mixed"},
		op + "    packages:\n    - name: a\n      minVersion: 1.0.0\n      channels:\n      - name: c\n" +
			"        maxVersion: '2'\n      - name: c\n": {"mixing both filtering", `duplicate channel entry "c"`},
		op + "    targetCatalog: a/../b\n    targetTag: a/b\n": {"targetCatalog: \"a/../b\" is no path",
			"targetTag: \"a/b\" is no tag"},
		op + "  - catalog: h.io/d:v1\n    targetCatalog: c\n": {"duplicate: catalog"},
		head + "archiveSize: -1\nmirror:\n":                   {"archiveSize: less than 0", "mirror: missing"},
		"kind: ImageSetConfiguration\napiVersion: v3\nmirror: {platform: {release: 'x:v1'}, helm: {url: y}}\n": {
			`apiVersion: unknown version "v3"`, `"x:v1" names no registry`, `mirror.helm: unknown field "url"`},
		head + "mirror: {blockedImages: [{name: ''}], additionalImages: [{name: h.io/x}, {name: 'h.io/X:v1'}]}": {
			"an empty expression", "tag and digest are empty", `"X" of "h.io/X:v1" is no name`},
		head + "mirror: {operators: [{catalog: 'oci:///a/B'}]}": {"set targetCatalog"},
		head + strings.Repeat("x", 4<<20) + ": 1":               {"limit"},
		head + strings.Repeat("[", 200):                         {"f"},
	} {
		_, err := parse(text)
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%.80q: got %v", text, err)
			continue
		}
		for _, want := range want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%.80q: no %s in\n%v", text, want, err)
			}
		}
	}
}

func TestNamesWithoutRegistry(t *testing.T) {
	for name, full := range map[string]string{"other/tool:v1": "docker.io/other/tool:v1", "tool:v1": "docker.io/library/tool:v1",
		"docker://a/b/c:v1": "docker.io/a/b/c:v1", "other/tool": "docker.io/other/tool",
		"r.io/tool:v1": "", "localhost/tool:v1": "", "r:5000/tool:v1": "", "'[::1]:5000/tool:v1'": "", "oci:///tool": ""} {
		for _, entry := range []string{"additionalImages:\n  - name: ", "operators:\n  - catalog: ", "platform:\n    release: "} {
			if strings.HasPrefix(entry, "platform") && (strings.HasPrefix(name, "oci:") || !strings.Contains(name, ":v")) {
				continue // a release is in a registry, with a tag
			}
			_, err := parse(head + "mirror:\n  " + entry + name + "\n")
			if full == "" && err != nil || full != "" && (err == nil || !strings.Contains(err.Error(), "such as "+full+": ") ||
				!strings.Contains(err.Error(), "f:5:")) {
				t.Errorf("%s: %s: %v", name, entry, err)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	lenient := imageset.Options{Compat: true}
	s, err := imageset.Parse([]byte("kind: ImageSetConfiguration\napiVersion: v3\narchiveSize: -2\nmirror:\n  samples:\n"+
		"  - name: x\n"), "f", imageset.Image, lenient)
	if err != nil || len(s.Warnings) != 3 || s.SegmentSize() != 500 || s.Warnings[2].Field != "mirror.samples" {
		t.Errorf("got %+v, %v", s, err)
	}
	_, err = parse(head + "mirror: {additionalImages: [{name: h.io/x}]}")
	var e *imageset.Error
	if !errors.As(err, &e) || !imageset.OnlyTagless(err) {
		t.Errorf("got %v", err)
	}
	_, err = parse(head + "mirror: {additionalImages: [{name: h.io/x}], blockedImages: [{}]}")
	if !errors.As(err, &e) || imageset.OnlyTagless(err) {
		t.Errorf("got %v", err)
	}
	_, err = parse(head + "mirror:\n" + strings.Repeat("  x1: 1\n", 30) + "  operators:\n" +
		strings.Repeat("  - {}\n", 150))
	if !errors.As(err, &e) || len(e.Problems) != 100 || e.More < 50 || !strings.Contains(err.Error(), "more problems") {
		t.Errorf("got %v", err)
	}
	for text, want := range map[string]string{"kind: ImageSetConfiguration\nmirror: {}\n": "is not Delete",
		"kind: DeleteImageSetConfiguration\nmirror: {}\n":                     "mirror: not allowed",
		"kind: DeleteImageSetConfiguration\ndelete: {blockedImages: []}\n":    `unknown field "blockedImages"`,
		"kind: DeleteImageSetConfiguration\narchiveSize: 1\ndelete: {}\n":     `unknown field "archiveSize"`,
		"kind: DeleteImageSetConfiguration\ndelete: {operators: [{full: 1}]}": "reference name is empty"} {
		if _, err := imageset.Parse([]byte(text), "f", imageset.Delete, imageset.Options{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(
		head + "mirror:\n  operators:\n  - catalog: h.io/c:v1\n    packages:\n    - name: a\n      minVersion: '1'\n"))
	f.Add([]byte(`{"kind":"ImageSetConfiguration","mirror":{"additionalImages":[{"name":"oci://x/y"}]}}`))
	f.Add([]byte("a: &a [1]\nb: *a\n<<: {kind: x}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []imageset.Kind{imageset.Image, imageset.Delete} {
			s, err := imageset.Parse(data, "f", kind, imageset.Options{Compat: true})
			if err != nil {
				_ = err.Error()
				continue
			}
			// What is written is read again, and names the same images.
			pinned := s.Pinned(kind, none, nil, nil)
			again, err := imageset.Parse(pinned, "f", kind, imageset.Options{Compat: true})
			if err != nil {
				t.Fatalf("%v\n%s", err, pinned)
			}
			if string(again.Pinned(kind, none, nil, nil)) != string(pinned) {
				t.Fatalf("%s", pinned)
			}
		}
	})
}
