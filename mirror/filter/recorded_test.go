package filter_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// answer is a recorded answer of oc-mirror's filter.
type answer struct {
	ID, Config string
	Result     struct {
		Stage, Error, Random string
		Packages             json.RawMessage
		WholeCatalog         bool
		Others, Images       int
	}
}

// archive returns the files of the archive of recorded answers.
var archive = sync.OnceValues(func() (map[string][]byte, error) {
	f, err := os.Open("testdata/recorded.tar.zst")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
})

// recorded returns the names of the catalogs with recorded answers.
func recorded(t testing.TB) []string {
	t.Helper()
	files, err := archive()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range files {
		if name, ok := strings.CutPrefix(name, "answers/"); ok && name != "" {
			names = append(names, strings.TrimSuffix(name, ".jsonl"))
		}
	}
	return names
}

// answers returns the recorded answers for a catalog.
func answers(t testing.TB, name string) []answer {
	t.Helper()
	files, err := archive()
	if err != nil {
		t.Fatal(err)
	}
	var out []answer
	lines := bufio.NewScanner(bytes.NewReader(files["answers/"+name+".jsonl"]))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// catalog returns a recorded catalog. The directory in BINDERY_RECORDED_CATALOGS, if there is one, has the catalogs
// before they were reduced.
func catalog(t testing.TB, name string) *declcfg.Catalog {
	t.Helper()
	files, err := archive()
	if err != nil {
		t.Fatal(err)
	}
	const path = "/catalog.json"
	whole := fstest.MapFS{path[1:]: &fstest.MapFile{Data: files["catalogs/"+name+path]}}
	ctx := context.Background()
	o := declcfg.LoadOptions{Skeleton: true, Unknown: true}
	var index *declcfg.Index
	if dir := os.Getenv("BINDERY_RECORDED_CATALOGS"); dir != "" {
		index, err = declcfg.NewIndex(ctx, os.DirFS(filepath.Join(dir, name)), o)
	} else {
		index, err = declcfg.NewIndex(ctx, whole, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := index.Stubs(ctx, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// parse reads a configuration, which has one operator entry.
func parse(config string) (imageset.Operator, error) {
	s, err := imageset.Parse([]byte(config), "isc.yaml", imageset.Image, imageset.Options{})
	if err != nil {
		return imageset.Operator{}, err
	}
	return s.Operators[0], nil
}

// The same packages, channels, entries, bundles and deprecations are kept as by oc-mirror, for all recorded cases.
func TestKeepsWhatWasRecorded(t *testing.T) {
	cases := 0
	for _, name := range recorded(t) {
		list := answers(t, name)
		cases += len(list)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := catalog(t, name)
			for _, a := range list {
				check(t, c, a)
			}
		})
	}
	if cases != 3582 {
		t.Errorf("%d cases", cases)
	}
}

func check(t *testing.T, c *declcfg.Catalog, a answer) {
	t.Helper()
	op, err := parse(a.Config)
	if err != nil {
		if a.Result.Error == "" {
			t.Errorf("%s: %v", a.ID, err)
		}
		return
	}
	r, err := filter.Options{}.Apply(c, op)
	if err != nil || a.Result.Error != "" {
		if (err != nil) != (a.Result.Error != "") {
			t.Errorf("%s: got %v, recorded %q", a.ID, err, a.Result.Error)
		}
		return
	}
	if a.Result.Random != "" || a.ID == "both-partial-samever" {
		return // of several bundles with one version oc-mirror takes any, and this package the highest
	}
	got, err := json.Marshal(r.Kept)
	if err != nil {
		t.Fatal(err)
	}
	want := a.Result.Packages
	if want == nil {
		want = json.RawMessage("{}")
	}
	var gotAny, wantAny any
	if json.Unmarshal(got, &gotAny) != nil || json.Unmarshal(want, &wantAny) != nil {
		t.Fatal("no JSON")
	}
	if !reflect.DeepEqual(gotAny, wantAny) {
		t.Errorf("%s:\n%s\ngot      %.600s\nrecorded %.600s", a.ID, a.Config, got, want)
	}
	if r.WholeCatalog != a.Result.WholeCatalog || r.Others != a.Result.Others || r.Images != a.Result.Images {
		t.Errorf("%s: got %t, %d, %d, recorded %t, %d, %d", a.ID, r.WholeCatalog, r.Others, r.Images,
			a.Result.WholeCatalog, a.Result.Others, a.Result.Images)
	}
	for _, p := range r.Problems {
		// A published catalog is valid itself: only what is requested can be wrong.
		if p.Level == filter.Failure && p.Code != filter.NothingKept && p.Code != filter.EmptyDefault &&
			!strings.Contains(a.Config, "/synth/") {
			t.Errorf("%s: %s", a.ID, p)
		}
	}
	if !r.WholeCatalog && !r.Refused() {
		if err := r.Catalog.Validate(); err != nil {
			t.Errorf("%s: the catalog is not valid: %v", a.ID, err)
		}
	}
}
