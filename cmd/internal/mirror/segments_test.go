package mirror_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// segments are the files of an archive.
func segments(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "mirror_*.tar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		names = append(names, filepath.Base(name))
	}
	return names
}

// Whatever run is repeated, the directory of the archive is enough for an empty registry: an archive is replaced only by
// one that has all of it.
func TestRepeatedRunsLoseNoArchive(t *testing.T) {
	lost := "/acme/tool:v1"
	for name, test := range map[string]struct {
		first, second string
		status        int // of the first
		between       func(w *clitest.SignedWorld)
		after         int // of the second
		segments      int
	}{
		"an image is missing at first": {"", "", 4, func(w *clitest.SignedWorld) {
			w.Source.AddImage(w.T, "acme/tool", "v1", testregistry.Image{Layers: []map[string]string{{"t": "tool"}}})
		}, 0, 2},
		"nothing is new":                 {"", "", 0, nil, 0, 2},
		"all again":                      {"", " --all", 0, nil, 0, 1},
		"since before":                   {"", " --since 2001-01-01", 0, nil, 0, 1},
		"without the history":            {"", " --workspace other", 0, nil, 0, 2},
		"all again, an image is gone":    {"", " --all", 0, func(w *clitest.SignedWorld) { w.Remove(lost) }, 4, 2},
		"an image is gone":               {"", "", 0, func(w *clitest.SignedWorld) { w.Remove(lost) }, 4, 2},
		"since before, an image is gone": {"", " --since 2001-01-01", 0, func(w *clitest.SignedWorld) { w.Remove(lost) }, 4, 2},
		"in the other form":              {"", " --archive-format FORM", 0, nil, 0, 2},
		"in the other form, all of it":   {"", " --all --archive-format FORM", 0, nil, 0, 2},
		"another part of the catalog":    {"", "", 0, func(w *clitest.SignedWorld) { w.ChangeSet("name: etcd", "name: old") }, 0, 2},
		"less, and all of it":            {"", " --all", 0, func(w *clitest.SignedWorld) { w.ChangeSet(" packages:\n    - name: etcd\n", " full: true\n") }, 0, 2},
	} {
		for _, form := range []string{"oci", "oc-mirror"} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				w := clitest.NewSignedWorld(t, clitest.Unsigned)
				if test.status == 4 {
					w.Remove(lost)
				}
				other := map[string]string{"oci": "oc-mirror", "oc-mirror": "oci"}[form]
				if got := w.Run(clitest.ToMedia + " --archive-format " + form + test.first); got.Status != test.status {
					t.Fatalf("%+v", got)
				}
				if test.between != nil {
					test.between(w)
				}
				second := strings.Replace(test.second, "FORM", other, 1)
				if !strings.Contains(second, "archive-format") {
					second += " --archive-format " + form
				}
				if got := w.Run(clitest.ToMedia + second); got.Status != test.after {
					t.Fatalf("%+v", got)
				}
				if got := segments(t, filepath.Join(w.Dir, "media")); len(got) != test.segments {
					t.Errorf("%q, expected %d", got, test.segments)
				}
				have := w.Whole(form)
				for _, want := range []string{"acme/catalog:v1", "acme/tool:v1"} {
					if !slices.Contains(have, want) {
						t.Errorf("%s is lost: %q", want, have)
					}
				}
			})
		}
	}
}

// A run that fails to print its account has written the archive, and the same run again does not replace it.
func TestAccountToAFullDeviceLosesNoArchive(t *testing.T) {
	w := clitest.NewSignedWorld(t, clitest.Unsigned)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	line := strings.Fields(clitest.ToMedia + " -o json --use-http --no-cache -q")
	cmd := clitest.Command(w.Dir, "bindery", line...)
	cmd.Stdout = full
	if err := cmd.Run(); err == nil {
		t.Fatal("no error")
	}
	for n := range 3 {
		w.Done(clitest.ToMedia)
		if have := w.Whole("oci"); !slices.Contains(have, "acme/catalog:v1") || !slices.Contains(have, "acme/tool:v1") {
			t.Errorf("run %d: %q", n, have)
		}
	}
}

// Segments that follow others need not be carried with them to a registry that has what these had.
func TestLaterSegmentsAlone(t *testing.T) {
	w, target := clitest.NewSignedWorld(t, clitest.Unsigned), testregistry.New(t)
	w.Remove("/acme/tool:v1")
	if got := w.Run(clitest.ToMedia); got.Status != 4 {
		t.Fatalf("%+v", got)
	}
	if got := w.Run(clitest.FromMedia + target.Host() + " --workspace here"); got.Status != 4 {
		t.Fatalf("%+v", got)
	}
	w.Source.AddImage(t, "acme/tool", "v1", testregistry.Image{Layers: []map[string]string{{"t": "tool"}}})
	w.Done(clitest.ToMedia)
	media := filepath.Join(w.Dir, "media")
	if err := os.Remove(filepath.Join(media, "mirror_000001.tar")); err != nil {
		t.Fatal(err)
	}
	w.Done(clitest.FromMedia + target.Host() + " --workspace here")
	if have := clitest.Content(target); !slices.Contains(have, "acme/tool:v1") {
		t.Errorf("%q", have)
	}
	empty := testregistry.New(t)
	if got := w.Run(clitest.FromMedia + empty.Host() + " --workspace there"); got.Status == 0 ||
		!strings.Contains(got.Stderr, "leaves out") {
		t.Errorf("%+v", got)
	}
}

// An archive that cannot be read is not replaced: the error says what to do.
func TestDamagedArchiveIsNotReplaced(t *testing.T) {
	w := clitest.NewSignedWorld(t, clitest.Unsigned)
	w.Done(clitest.ToMedia)
	path := filepath.Join(w.Dir, "media", "mirror_000001.tar")
	whole := clitest.ReadFile(t, path)
	clitest.WriteFile(t, path, whole[:len(whole)-3000])
	for _, more := range []string{"", " --all"} {
		got := w.Run(clitest.ToMedia + more)
		if got.Status != 1 || !strings.Contains(got.Stderr, "mirror_000001.tar") || !strings.Contains(got.Stderr, "hint: ") ||
			clitest.ReadFile(t, path) != whole[:len(whole)-3000] {
			t.Errorf("%+v", got)
		}
	}
	if got := segments(t, filepath.Dir(path)); fmt.Sprint(got) != "[mirror_000001.tar]" {
		t.Errorf("%q", got)
	}
}

// Runs of parts replace nothing either, be it a whole archive or what a part had before.
func TestPartsLoseNoArchive(t *testing.T) {
	w := clitest.NewSignedWorld(t, clitest.Unsigned)
	const shard, publish = " --shard 1/1", "mirror publish --from parts -c ../set.yaml file://media"
	w.Done(clitest.ToMedia)
	w.Done(clitest.ToMedia + shard)
	w.Done("mirror run file://parts/1 -c ../set.yaml" + shard)
	w.Done(publish)
	if have := w.Whole("oci"); !slices.Contains(have, "acme/catalog:v1") || !slices.Contains(have, "acme/tool:v1") {
		t.Errorf("%q", have)
	}
	// A part that is repeated keeps what the source has lost since.
	w.Fresh()
	w.AddImage("acme/late", "v1", "late")
	w.ChangeSet("/acme/tool:v1\n", "/acme/tool:v1\n  - name: "+w.Source.Host()+"/acme/late:v1\n")
	w.Remove("/acme/late:v1")
	part := "mirror run file://parts/1 -c ../set.yaml" + shard
	if got := w.Run(part); got.Status != 4 {
		t.Fatalf("%+v", got)
	}
	w.AddImage("acme/late", "v1", "late")
	w.Remove("/acme/tool:v1")
	if got := w.Run(part); got.Status != 4 {
		t.Fatalf("%+v", got)
	}
	w.Done("mirror publish --from parts -c ../set.yaml file://parts/catalogs")
	target := testregistry.New(t)
	w.Done("mirror run --from parts -c ../set.yaml docker://" + target.Host())
	for _, want := range []string{"acme/tool:v1", "acme/late:v1", "acme/catalog:v1"} {
		if have := clitest.Content(target); !slices.Contains(have, want) {
			t.Errorf("%s is lost: %q", want, have)
		}
	}
}

// An archive that was written for another part of the catalog gives what it has of what is asked for, and the exit
// status says whether that is all.
func TestArchiveOfAnotherFilter(t *testing.T) {
	one, both, all := " packages:\n    - name: etcd\n", " packages:\n    - name: etcd\n    - name: old\n", " full: true\n"
	for _, form := range []string{"oci", "oc-mirror"} {
		for name, test := range map[string]struct {
			written []string // sets of the runs to the archive
			read    string
			status  int
		}{
			"all of one part":                 {[]string{one}, all, 4},
			"two of one":                      {[]string{one}, both, 4},
			"one of two":                      {[]string{both}, one, 0},
			"one of all":                      {[]string{all}, one, 0},
			"two, and then one, read as two":  {[]string{both, one}, both, 0},
			"one, and then two, read as one":  {[]string{one, both}, one, 0},
			"all, and then one, read as all":  {[]string{all, one}, all, 0},
			"one, and then the same, as two":  {[]string{one, one}, both, 4},
			"one, and then all, read as both": {[]string{one, all}, both, 0},
		} {
			t.Run(form+", "+name, func(t *testing.T) {
				t.Parallel()
				w, target := clitest.NewSignedWorld(t, clitest.Unsigned), testregistry.New(t)
				// The bundle of the other package has an image of its own.
				bundle := w.AddImage("acme/old", "v1", "old")
				w.OtherBundle(bundle.String())
				last := one
				for _, set := range append(test.written, test.read) {
					w.ChangeSet(last, set)
					if last = set; len(last) == 0 {
						t.Fatal("no set")
					}
					if w.Runs++; w.Runs <= len(test.written) {
						w.Done(clitest.ToMedia + " --archive-format " + form)
					}
				}
				got := w.Run(clitest.FromMedia + target.Host())
				if got.Status != test.status {
					t.Errorf("%+v", got)
				}
				if v := w.Run("mirror verify --workspace media docker://" + target.Host()); v.Status != 0 {
					t.Errorf("what is published is not whole: %+v", v)
				}
			})
		}
	}
}

// A catalog that is copied as it is, is in an archive against an inventory that has it.
func TestWholeCatalogAgainstAnInventory(t *testing.T) {
	for _, form := range []string{"oci", "oc-mirror"} {
		w, target := clitest.NewSignedWorld(t, clitest.Unsigned), testregistry.New(t)
		w.ChangeSet(" packages:\n    - name: etcd\n", " full: true\n")
		w.Done(clitest.ToRegistry + target.Host())
		w.Done("mirror inventory --to inventory.json.gz docker://" + target.Host())
		w.AddImage("acme/late", "v1", "late")
		w.ChangeSet("/acme/tool:v1\n", "/acme/tool:v1\n  - name: "+w.Source.Host()+"/acme/late:v1\n")
		w.Done(clitest.ToMedia + " --against inventory.json.gz --archive-format " + form)
		w.Done("mirror verify file://media")
		w.Done(clitest.FromMedia + target.Host())
		if have := clitest.Content(target); !slices.Contains(have, "acme/late:v1") {
			t.Errorf("%s: %q", form, have)
		}
	}
}
