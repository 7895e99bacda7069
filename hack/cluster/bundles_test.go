package cluster

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	root             = "../../"
	installNamespace = "operators"
	watchNamespace   = "watched"
)

// bundles returns the directories of bundles of testdata by short names.
func bundles(t *testing.T) map[string]string {
	t.Helper()
	recorded := t.TempDir()
	unpack(t, root+"testdata/olmv1/render.tar.zst", recorded)
	out := map[string]string{}
	for _, top := range []string{root + "testdata/bundles", recorded + "/bundles"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "manifests" {
				dir := filepath.Dir(path)
				name, _ := filepath.Rel(top, dir)
				out[name] = dir
				return filepath.SkipDir
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(out) < 100 {
		t.Fatalf("%d bundles", len(out))
	}
	return out
}

// unpack unpacks an archive of testdata.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	to, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(r)
		if err == nil {
			err = to.MkdirAll(filepath.Dir(h.Name), 0o755)
		}
		if err == nil {
			err = to.WriteFile(h.Name, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// manifests returns the objects of a bundle, which is watching one namespace if it cannot watch all; "" if OLM v1 refuses it.
func manifests(t *testing.T, dir string, flags ...string) string {
	t.Helper()
	args := append([]string{"bundle", "manifests", dir, "--install-namespace", installNamespace, "-o", "ndjson"}, flags...)
	for _, more := range [][]string{nil, {"--watch-namespace", watchNamespace}, {"--watch-namespace", installNamespace}} {
		if r := ran(t, nil, append(args, more...)...); r.status == 0 {
			return r.out
		}
	}
	return ""
}

// own tells whether the server itself knows what objects of a group must be; of others it knows the definition that is
// applied to it, which check cannot.
func own(apiVersion string) bool {
	group, _, found := strings.Cut(apiVersion, "/")
	return !found || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// What a bundle installs is taken by the server, or check says before that it is not; and what check has errors for the server
// refuses. That a bundle cannot watch all namespaces, or depends on others, is no matter of the server's.
func TestBundleManifests(t *testing.T) {
	namespace(t, watchNamespace)
	installed, refusing := 0, 0
	for name, dir := range bundles(t) {
		for _, runtime := range []string{"helm", "boxcutter"} {
			text := manifests(t, dir, "--runtime", runtime, "--olm-labels", "extension")
			if text == "" {
				continue
			}
			installed++
			objects, err := decode([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			var refused, others []string
			for _, o := range objects {
				if r := refusals(t, []*unstructured.Unstructured{o}); own(o.GetAPIVersion()) {
					refused = append(refused, r...)
				} else {
					others = append(others, r...)
				}
			}
			if len(refused) > 0 {
				refusing++
			}
			if predicted := predictions(t, dir); len(refused) > 0 != (len(predicted) > 0) {
				t.Errorf("%s, %s: the server refuses:\n  %s\ncheck says:\n  %s", name, runtime, strings.Join(refused, "\n  "),
					strings.Join(predicted, "\n  "))
			}
			for _, r := range others {
				t.Logf("%s, %s: %s", name, runtime, r)
			}
		}
	}
	if installed < 200 || refusing < 4 {
		t.Errorf("%d times objects, of which %d times refused", installed, refusing)
	}
}

// predictions returns what check says of the objects of a bundle that a server refuses.
func predictions(t *testing.T, dir string) []string {
	t.Helper()
	var answer struct {
		Findings []struct {
			Rule, Severity, Message string
		} `json:"findings"`
	}
	r := ran(t, nil, "check", dir, "--profile", "olmv1", "--gate", "SingleOwnNamespaceInstallSupport", "--skip", "olmv1.dependency",
		"-o", "json")
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil {
		t.Fatalf("%v\n%s%s", err, r.out, r.err)
	}
	var out []string
	for _, f := range answer.Findings {
		if f.Severity == "error" {
			out = append(out, f.Rule+": "+f.Message)
		}
	}
	return out
}
