package bundlecheck

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// recording is a bundle with the recorded answer of opm's validate.
type recording struct {
	name, golden string
	files        fs.FS
}

// recordings returns those of the collection.
func recordings(t *testing.T) (out []recording) {
	t.Helper()
	oracle := string(recorded.All(t))
	bundles, goldens := collection(t, oracle), filepath.Join(oracle, "golden-bundle-validate")
	entries, err := os.ReadDir(goldens)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if bundles[e.Name()] == nil {
			t.Fatalf("there is no bundle %s", e.Name())
		}
		out = append(out, recording{e.Name(), filepath.Join(goldens, e.Name()), bundles[e.Name()]})
	}
	return out
}

// collection reads the bundles of the collection by the names and tags of their images.
func collection(t *testing.T, oracle string) map[string]fs.FS {
	t.Helper()
	dirs := map[string]fs.FS{}
	f, err := os.Open(filepath.Join(oracle, "bundles-all-dev-packages.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	all := fstest.MapFS{}
	for tr := tar.NewReader(plain); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(h.Name, "./")] = &fstest.MapFile{Data: data}
	}
	for _, list := range []string{"images-dev.tsv", "images-synth-dev.tsv"} {
		text, err := os.ReadFile(filepath.Join(oracle, list))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			_, image, ok := strings.Cut(strings.TrimPrefix(fields[0], testregistry.RecordedHost+"/"), "/")
			if !ok || len(fields) < 4 {
				t.Fatalf("%s: %q", list, line)
			}
			name := strings.Replace(image, ":", "-", 1)
			if dir, ok := strings.CutPrefix(fields[3], "SCRATCH/synth/dev/"); ok {
				dirs[name] = os.DirFS(filepath.Join(oracle, "bundles", "synth", dir))
				continue
			}
			// A separate directory, so that looking for a file does not search all bundles.
			prefix := strings.TrimPrefix(fields[3], "COMMUNITY/operators/") + "/"
			one := fstest.MapFS{}
			for file, data := range all {
				if rest, ok := strings.CutPrefix(file, prefix); ok {
					one[rest] = data
				}
			}
			dirs[name] = one
		}
	}
	return dirs
}

var address = regexp.MustCompile(`0x[0-9a-f]+`)

// texts returns the errors in opm's message, sorted, as opm's order is partly random. The only values of which opm
// prints the address are booleans that are true.
func texts(message string) []string {
	message = strings.TrimPrefix(message, "Bundle validation errors: ")
	out := strings.Split(address.ReplaceAllString(message, "true"), ",Error: ")
	for i := range out {
		out[i] = strings.TrimPrefix(out[i], "Error: ")
	}
	slices.Sort(out)
	return out
}

// The verdict on every recorded bundle and the errors equal opm's, except for constraints that opm does not know.
func TestOpmsVerdicts(t *testing.T) {
	var longest, total time.Duration
	n := 0
	for _, rec := range recordings(t) {
		for file, selected := range map[string][]string{"validate": nil,
			"validate-opt": {"operatorhub", "bundle-objects"}} {
			t.Run(rec.name+"/"+file, func(t *testing.T) {
				b := load(t, rec.files)
				start := time.Now()
				report, err := Run(t.Context(), rec.files, b, Options{Select: selected})
				took := time.Since(start)
				longest, total, n = max(longest, took), total+took, n+1
				if err != nil {
					t.Fatal(err)
				}
				rc, err := os.ReadFile(filepath.Join(rec.golden, file+".rc"))
				if err != nil {
					t.Fatal(err)
				}
				refused := strings.TrimSpace(string(rc)) != "0"
				if report.Failed() != refused {
					t.Fatalf("failed: %v, by opm: %v\n%s", report.Failed(), refused, lines(report.Problems))
				}
				if !refused {
					return
				}
				stderr, err := os.ReadFile(filepath.Join(rec.golden, file+".stderr"))
				if err != nil {
					t.Fatal(err)
				}
				_, message, ok := strings.Cut(string(stderr), "Error: ")
				if !ok {
					t.Fatalf("opm said\n%s", stderr)
				}
				message, _, _ = strings.Cut(message, "\nUsage:")
				want, got := texts(message), texts(report.OpmMessage())
				// opm knows no constraint but "cel", and stops there.
				if slices.Equal(want, []string{"The CEL field is missing"}) {
					if slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "CEL") }) {
						t.Errorf("got\n%s", strings.Join(got, "\n"))
					}
					return
				}
				if !slices.Equal(got, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	}
	t.Logf("%d checks, %v each, %v the longest", n, total/time.Duration(max(n, 1)), longest)
}
