package bundlecheck_test

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// answers are what was recorded of operator-controller: the lines of cases.tsv, the texts of errors by the case's file,
// and bundles by NAME/VERSION.
type answers struct {
	cases   []string
	errors  map[string]string
	bundles map[string]fstest.MapFS
}

func (a *answers) add(name string, text []byte) {
	parts := strings.SplitN(strings.TrimPrefix(name, "./"), "/", 3)
	if len(parts) < 3 || parts[2] == "" {
		return
	}
	key := parts[0] + "/" + parts[1]
	if a.bundles[key] == nil {
		a.bundles[key] = fstest.MapFS{}
	}
	file := &fstest.MapFile{Data: text, Mode: 0o644}
	if strings.HasSuffix(name, "/") {
		file.Mode = fs.ModeDir | 0o755
	}
	a.bundles[key][path.Clean(parts[2])] = file
}

// untar calls visit for the entries of an archive that is compressed with zstd.
func untar(t *testing.T, name string, visit func(name string, text []byte)) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		visit(h.Name, text)
	}
}

// recordedRules say by which rule a recorded message is reported: the first whose text is in it.
var recordedRules = []struct{ text, rule string }{
	{"apiServiceDefintions are not supported", "olmv1.api-service"},
	{"webhookDefinitions are not supported", "olmv1.webhook-needs-cert-provider"},
	{"does not support AllNamespaces install mode", "olmv1.install-mode"},
	{"must support at least one of", "olmv1.install-mode"},
	{"invalid target namespaces", "olmv1.install-mode"},
	{"invalid ClusterExtension configuration", "olmv1.config"},
	{"duplicate strategy deployment spec", "olmv1.validator:1"},
	{"invalid cluster service version strategy deployment name", "olmv1.validator:2"},
	{"duplicate custom resource definition", "olmv1.validator:3"},
	{"references owned custom resource definition", "olmv1.validator:4"},
	{"package name is empty", "olmv1.validator:5"},
	{"bundle contains conversion webhook", "olmv1.conversion-install-modes"},
	{"references non-existent deployment", "olmv1.validator:7"},
	{"duplicate webhook", "olmv1.validator:8"},
	{"has invalid name", "olmv1.validator:9"},
	{"reference same custom resource definition", "olmv1.validator:10"},
	{"not owned bundle", "olmv1.validator:11"},
	{"contains forbidden rule", "olmv1.validator:12"},
	{"unsupported resource", "olmv1.validator:13"},
	{"must have .spec.preserveUnknownFields set to false", "olmv1.render"},
}

// recordedRule returns the rule of a recorded message: what is no message of the renderer is one of reading.
func recordedRule(message string) string {
	for _, r := range recordedRules {
		if strings.Contains(message, r.text) {
			return r.rule
		}
	}
	return "olmv1.unreadable"
}

func readAnswers(t *testing.T) *answers {
	t.Helper()
	a := &answers{errors: map[string]string{}, bundles: map[string]fstest.MapFS{}}
	untar(t, filepath.Join("..", "..", "testdata", "olmv1", "render.tar.zst"), func(name string, text []byte) {
		dir, rest, _ := strings.Cut(name, "/")
		switch dir {
		case "cases.tsv":
			a.cases = strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
		case "errors":
			a.errors[rest] = strings.TrimSuffix(string(text), "\n")
		case "bundles":
			a.add(rest, text)
		}
	})
	root := string(recorded.All(t))
	untar(t, filepath.Join(root, "bundles-all-dev-packages.tar.zst"), a.add)
	own := os.DirFS(filepath.Join(root, "bundles"))
	err := fs.WalkDir(own, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(own, name)
		a.add(name, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A bundle is installable if and only if operator-controller answered with objects, and the finding has its message.
// What it answered with configurations of the user is left out: the check assumes one that fits.
func TestInstallableIsWhatWasRecorded(t *testing.T) {
	a := readAnswers(t)
	kinds := map[string]int{}
	for _, line := range a.cases {
		f := strings.Split(line, "\t")
		kind := strings.TrimSuffix(strings.TrimSuffix(path.Base(f[0]), ".jsonl"), ".error")
		if !slices.Contains([]string{"default", "no-cert", "service-ca", "own", "single"}, kind) {
			continue
		}
		settings := manifests.Settings{InstallNamespace: "install-ns"}
		settings.Certs = manifests.CertProvider(strings.TrimPrefix(f[2], "cert="))
		if strings.Contains(f[3], string(manifests.SingleOwnNamespace)) {
			settings.Gates = []manifests.Gate{manifests.SingleOwnNamespace}
		}
		if config := strings.TrimPrefix(f[5], "config="); config != "" {
			settings.Config = []byte(config)
		}
		kinds[kind]++
		name := path.Dir(f[0])
		report := reportOf(t, a.bundles[name], settings)
		var reasons []string
		state := rules.State("")
		for _, b := range report.Bundles {
			state = b.State
		}
		var messages []string
		for _, found := range report.Findings {
			// The renderer does not know of dependencies: the resolver refuses them, by the catalog's properties. Nor
			// does it know what the API server refuses.
			if found.Severity == rules.Error && !slices.Contains([]string{rules.RuleDependency.ID,
				"olmv1.crd-v1beta1", "olmv1.api-version", "olmv1.api-invalid"}, found.Rule) {
				reasons = append(reasons, found.Rule)
				messages = append(messages, found.Message)
			}
		}
		want, refused := a.errors[f[0]]
		want = strings.TrimPrefix(want, "terminal error: ") // the condition of a ClusterExtension does not have it
		if refused != (len(reasons) > 0) {
			t.Errorf("%s: found %q, recorded %q", f[0], messages, want)
			continue
		}
		if state == rules.Installable && refused || state == "" && !refused {
			t.Errorf("%s: the state is %q, recorded %q", f[0], state, want)
		}
		for _, line := range strings.Split(want, "\n") {
			if line = strings.TrimSpace(line); !refused {
				break
			}
			rule := recordedRule(want)
			if recordedRule(line) != "olmv1.unreadable" {
				rule = recordedRule(line)
			}
			said := slices.IndexFunc(messages, func(m string) bool {
				return strings.Contains(m, line) || strings.Contains(line, m) ||
					strings.Contains(line, "Go struct field") || strings.Contains(line, "unrecognized type: ")
			})
			if said < 0 || !slices.Contains(reasons, rule) {
				t.Errorf("%s: found %q by %q, recorded %q, which is %s", f[0], messages, reasons, line, rule)
			}
		}
	}
	if kinds["default"] != 274 {
		t.Errorf("cases by kind: %v", kinds)
	}
	t.Log(kinds)
}

func reportOf(t *testing.T, fsys fs.FS, s manifests.Settings) *rules.Report {
	t.Helper()
	r, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{rules.OLMv1}}, bundlecheck.BundleRules())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Read(t.Context(), fsys, bundle.ReadOptions{})
	if !bundlecheck.IsRead(b, err) {
		t.Fatal(err)
	}
	if err := bundlecheck.CheckRules(t.Context(), r, bundlecheck.Subject{FS: fsys, Bundle: b, Settings: s}); err != nil {
		t.Fatal(err)
	}
	return r.Report("bundle", rules.OnBundle)
}
