package imageset_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// parseHelm reads an image set with the fields of the stanza about charts.
func parseHelm(fields string) (*imageset.Set, error) {
	return imageset.Parse([]byte("kind: ImageSetConfiguration\nmirror:\n  helm: "+fields+"\n"), "f", imageset.Image, imageset.Options{})
}

func TestHelm(t *testing.T) {
	s, err := parseHelm("{repositories: [{name: a, url: 'https://h.io/a', charts: [{name: web, version: '~1.2', imagePaths: ['{.x}'], " +
		"platforms: [{os: linux, architecture: arm64}]}, {name: db}]}, {name: all, url: 'http://h.io/b/'}, {url: 'https://h.io/none', charts: []}, " +
		"{url: 'oci://h.io/charts', charts: [{name: web, version: v1.0.0+b}]}], local: [{path: ./dir, name: x}]}")
	if err != nil {
		t.Fatal(err)
	}
	h := s.Helm
	if len(h.Repositories) != 4 || h.Repositories[0].All || !h.Repositories[1].All || h.Repositories[2].All ||
		h.Local[0].Path != "./dir" || h.Repositories[0].Charts[0].ImagePaths[0] != "{.x}" || h.Repositories[0].Charts[0].Line != 3 ||
		h.Repositories[0].Charts[0].Platforms[0].Architecture != "arm64" || h.IsZero() {
		t.Errorf("%+v", h)
	}
	pin := func(r *imageset.ChartRepository, c *imageset.Chart) string {
		if r.Name == "a" && c.Name == "db" {
			return "0.2.0"
		}
		return ""
	}
	text := s.Pinned(imageset.Image, none, nil, pin)
	for _, want := range []string{"version: ~1.2\n", "version: 0.2.0\n", "charts: []\n", "- path: ./dir\n", "- charts: null\n      name: all\n      url: http://h.io/b/\n"} {
		if !strings.Contains(strings.ReplaceAll(string(text), "name: x\n      path", "path"), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	again, err := imageset.Parse(text, "pinned", imageset.Image, imageset.Options{})
	if err != nil || !again.Helm.Repositories[1].All || again.Helm.Repositories[2].All || again.Helm.Repositories[0].Charts[1].Version != "0.2.0" {
		t.Errorf("%v\n%s", err, text)
	}
	for _, empty := range []string{"", "{}", "{repositories: []}", "{repositories: [{url: 'https://h.io/a', charts: []}]}"} {
		if s, err := parseHelm(empty); err != nil || !s.Helm.IsZero() {
			t.Errorf("%s: %+v, %v", empty, s, err)
		}
	}
}

// Pinned image sets, which go into archives, have neither passwords nor tokens.
func TestPinnedHelmHasNoSecrets(t *testing.T) {
	s, err := parseHelm("{repositories: [{url: 'https://user:secret@h.io/a?token=secret', charts: [{name: web}]}, {url: 'https://h.io/b/index.yaml', charts: [{name: web}]}]}")
	if err != nil {
		t.Fatal(err)
	}
	text := string(s.Pinned(imageset.Image, none, nil, nil))
	if strings.Contains(text, "secret") || !strings.Contains(text, "url: https://h.io/a\n") || !strings.Contains(text, "url: https://h.io/b/index.yaml\n") {
		t.Errorf("%s", text)
	}
}

// The text for archives has no secrets however YAML writes them, and is else as it was written.
func TestPublicText(t *testing.T) {
	for written, want := range map[string]string{
		"'https://user:secret@h.io/a' # https://user:secret@h.io/a":     "  helm: {repositories: [{charts: [], url: 'https://h.io/a' # https://h.io/a\n}]}\n",
		`"https://user:\x73ecret@h.io/a"`:                               "url: https://h.io/a\n",
		"'https://h.io/a?token=secret'":                                 "url: 'https://h.io/a'\n}]}\n",
		"'https://user:secret@h.io/a' # was https://user:secret@h.io/b": "url: https://h.io/a\n",
		"'https://h.io/a' # as it was":                                  "  helm: {repositories: [{charts: [], url: 'https://h.io/a' # as it was\n}]}\n",
	} {
		s, err := parseHelm("{repositories: [{charts: [], url: " + written + "\n}]}")
		if err != nil {
			t.Fatal(err)
		}
		text := string(s.PublicText())
		if strings.Contains(text, "secret") || strings.Contains(text, "x73") || !strings.Contains(text, want) {
			t.Errorf("%s:\n%s", written, text)
		}
		if again, err := imageset.Parse([]byte(text), "again", imageset.Image, imageset.Options{}); err != nil || again.Helm.Repositories[0].URL != "https://h.io/a" {
			t.Errorf("%s: %v", written, err)
		}
	}
}

// What oc-mirror takes and fails on later is an error that says what to write, and of the kind that has its exit status.
func TestFaultyHelm(t *testing.T) {
	for fields, want := range map[string]string{
		"{repositories: [{name: a, url: 'https://h.io/a', charts: []}, {name: a, url: 'https://h.io/b', charts: []}]}": `duplicate repository "a", as in line 3`,
		"{repositories: [{name: a, charts: []}]}":                                       "repository without a URL",
		"{repositories: [{url: 'file:///etc', charts: []}]}":                            "no URL of a repository",
		"{repositories: [{url: 'https://', charts: []}]}":                               "no URL of a repository",
		"{repositories: [{url: 'oci://h.io/charts'}]}":                                  "a registry has no index",
		"{repositories: [{url: 'oci://h.io/charts:v1', charts: []}]}":                   "no path at a registry",
		"{repositories: [{url: 'https://h.io/a', charts: [{version: 1.0.0}]}]}":         "chart without a name",
		"{repositories: [{url: 'https://h.io/a', charts: [{name: ../x}]}]}":             `"../x" is no name of a chart`,
		"{repositories: [{url: 'https://h.io/a', charts: [{name: x, version: next}]}]}": `"next" is neither a version`,
		"{local: [{name: x}]}":                           "local chart without a path",
		"{local: [{path: {a: b}}]}":                      "an object, expected a string",
		"{repos: []}":                                    `unknown field "repos"`,
		"{local: [{values: x}]}":                         `unknown field "values"`,
		"{repositories: {name: 1}}":                      "expected a list",
		"{local: [{path: x, platforms: [{os: linux}]}]}": "must not be empty",
	} {
		_, err := parseHelm(fields)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", fields, err, want)
		}
		typed := strings.Contains(want, "unknown field") || strings.Contains(want, "expected")
		if imageset.OnlyCharts(err) == typed || imageset.OnlyTagless(err) {
			t.Errorf("%s: of charts: %t", fields, !typed)
		}
	}
	_, err := parseHelm("{repositories: [{url: 'https://u:secret@/', charts: []}]}")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	s, err := parseHelm("{repositories: [{url: 'https://h.io/a', charts: [{name: x, path: p.tgz}]}]}")
	if err != nil || len(s.Warnings) != 1 {
		t.Errorf("%v, %+v", err, s)
	}
}
