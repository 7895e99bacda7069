package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// whole mirrors the archive to an empty registry and returns what that has, after a look whether the archive is whole.
func (w *signedWorld) whole(form string) []string {
	w.Helper()
	target := testregistry.New(w.T)
	w.done("mirror verify file://media")
	w.done(fromMedia + target.Host() + " --workspace " + w.T.TempDir())
	if form == "oc-mirror" {
		other := testregistry.New(w.T)
		got := runProgram(w.T, w.dir, "oc-mirror", "--v2", "-c", "../set.yaml", "--from", "file://media",
			"docker://"+other.Host(), "--dest-tls-verify=false")
		if have := content(other); got.status != 0 || !slices.Equal(have, content(target)) {
			w.Errorf("%+v: %q", got, have)
		}
	}
	return content(target)
}

// Whatever run is repeated, the directory of the archive is enough for an empty registry: an archive is replaced only by
// one that has all of it.
func TestRepeatedRunsLoseNoArchive(t *testing.T) {
	lost := "/acme/tool:v1"
	for name, test := range map[string]struct {
		first, second string
		status        int // of the first
		between       func(w *signedWorld)
		after         int // of the second
		segments      int
	}{
		"an image is missing at first": {"", "", 4, func(w *signedWorld) {
			w.source.AddImage(w.T, "acme/tool", "v1", testregistry.Image{Layers: []map[string]string{{"t": "tool"}}})
		}, 0, 2},
		"nothing is new":                 {"", "", 0, nil, 0, 2},
		"all again":                      {"", " --all", 0, nil, 0, 1},
		"since before":                   {"", " --since 2001-01-01", 0, nil, 0, 1},
		"without the history":            {"", " --workspace other", 0, nil, 0, 2},
		"all again, an image is gone":    {"", " --all", 0, func(w *signedWorld) { w.remove(lost) }, 4, 2},
		"an image is gone":               {"", "", 0, func(w *signedWorld) { w.remove(lost) }, 4, 2},
		"since before, an image is gone": {"", " --since 2001-01-01", 0, func(w *signedWorld) { w.remove(lost) }, 4, 2},
		"in the other form":              {"", " --archive-format FORM", 0, nil, 0, 2},
		"in the other form, all of it":   {"", " --all --archive-format FORM", 0, nil, 0, 2},
		"another part of the catalog":    {"", "", 0, func(w *signedWorld) { w.changeSet("name: etcd", "name: old") }, 0, 2},
		"less, and all of it":            {"", " --all", 0, func(w *signedWorld) { w.changeSet(" packages:\n    - name: etcd\n", " full: true\n") }, 0, 2},
	} {
		for _, form := range []string{"oci", "oc-mirror"} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				w := newSignedWorld(t, unsigned)
				if test.status == 4 {
					w.remove(lost)
				}
				other := map[string]string{"oci": "oc-mirror", "oc-mirror": "oci"}[form]
				if got := w.run(toMedia + " --archive-format " + form + test.first); got.status != test.status {
					t.Fatalf("%+v", got)
				}
				if test.between != nil {
					test.between(w)
				}
				second := strings.Replace(test.second, "FORM", other, 1)
				if !strings.Contains(second, "archive-format") {
					second += " --archive-format " + form
				}
				if got := w.run(toMedia + second); got.status != test.after {
					t.Fatalf("%+v", got)
				}
				if got := segments(t, filepath.Join(w.dir, "media")); len(got) != test.segments {
					t.Errorf("%q, expected %d", got, test.segments)
				}
				have := w.whole(form)
				for _, want := range []string{"acme/catalog:v1", "acme/tool:v1"} {
					if !slices.Contains(have, want) {
						t.Errorf("%s is lost: %q", want, have)
					}
				}
			})
		}
	}
}

// remove removes an image from the source.
func (w *signedWorld) remove(name string) {
	w.Helper()
	repository, tag, _ := strings.Cut(strings.TrimPrefix(name, "/"), ":")
	w.source.Untag(repository, tag)
}

// changeSet changes the image set.
func (w *signedWorld) changeSet(from, to string) {
	w.Helper()
	path := filepath.Join(w.top, "set.yaml")
	text := readFile(w.T, path)
	if !strings.Contains(text, from) {
		w.Fatalf("%q has no %q", text, from)
	}
	writeFile(w.T, path, strings.Replace(text, from, to, 1))
}

// A run that fails to print its account has written the archive, and the same run again does not replace it.
func TestAccountToAFullDeviceLosesNoArchive(t *testing.T) {
	w := newSignedWorld(t, unsigned)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	line := strings.Fields(toMedia + " -o json --use-http --no-cache -q")
	cmd := command(w.dir, "bindery", line...)
	cmd.Stdout = full
	if err := cmd.Run(); err == nil {
		t.Fatal("no error")
	}
	for n := range 3 {
		w.done(toMedia)
		if have := w.whole("oci"); !slices.Contains(have, "acme/catalog:v1") || !slices.Contains(have, "acme/tool:v1") {
			t.Errorf("run %d: %q", n, have)
		}
	}
}

// Segments that follow others need not be carried with them to a registry that has what these had.
func TestLaterSegmentsAlone(t *testing.T) {
	w, target := newSignedWorld(t, unsigned), testregistry.New(t)
	w.remove("/acme/tool:v1")
	if got := w.run(toMedia); got.status != 4 {
		t.Fatalf("%+v", got)
	}
	if got := w.run(fromMedia + target.Host() + " --workspace here"); got.status != 4 {
		t.Fatalf("%+v", got)
	}
	w.source.AddImage(t, "acme/tool", "v1", testregistry.Image{Layers: []map[string]string{{"t": "tool"}}})
	w.done(toMedia)
	media := filepath.Join(w.dir, "media")
	if err := os.Remove(filepath.Join(media, "mirror_000001.tar")); err != nil {
		t.Fatal(err)
	}
	w.done(fromMedia + target.Host() + " --workspace here")
	if have := content(target); !slices.Contains(have, "acme/tool:v1") {
		t.Errorf("%q", have)
	}
	empty := testregistry.New(t)
	if got := w.run(fromMedia + empty.Host() + " --workspace there"); got.status == 0 ||
		!strings.Contains(got.stderr, "leaves out") {
		t.Errorf("%+v", got)
	}
}

// An archive that cannot be read is not replaced: the error says what to do.
func TestDamagedArchiveIsNotReplaced(t *testing.T) {
	w := newSignedWorld(t, unsigned)
	w.done(toMedia)
	path := filepath.Join(w.dir, "media", "mirror_000001.tar")
	whole := readFile(t, path)
	writeFile(t, path, whole[:len(whole)-3000])
	for _, more := range []string{"", " --all"} {
		got := w.run(toMedia + more)
		if got.status != 1 || !strings.Contains(got.stderr, "mirror_000001.tar") || !strings.Contains(got.stderr, "hint: ") ||
			readFile(t, path) != whole[:len(whole)-3000] {
			t.Errorf("%+v", got)
		}
	}
	if got := segments(t, filepath.Dir(path)); fmt.Sprint(got) != "[mirror_000001.tar]" {
		t.Errorf("%q", got)
	}
}

// Runs of parts replace nothing either, be it a whole archive or what a part had before.
func TestPartsLoseNoArchive(t *testing.T) {
	w := newSignedWorld(t, unsigned)
	const shard, publish = " --shard 1/1", "mirror publish --from parts -c ../set.yaml file://media"
	w.done(toMedia)
	w.done(toMedia + shard)
	w.done("mirror run file://parts/1 -c ../set.yaml" + shard)
	w.done(publish)
	if have := w.whole("oci"); !slices.Contains(have, "acme/catalog:v1") || !slices.Contains(have, "acme/tool:v1") {
		t.Errorf("%q", have)
	}
	// A part that is repeated keeps what the source has lost since.
	w.fresh()
	w.addImage("acme/late", "v1", "late")
	w.changeSet("/acme/tool:v1\n", "/acme/tool:v1\n  - name: "+w.source.Host()+"/acme/late:v1\n")
	w.remove("/acme/late:v1")
	part := "mirror run file://parts/1 -c ../set.yaml" + shard
	if got := w.run(part); got.status != 4 {
		t.Fatalf("%+v", got)
	}
	w.addImage("acme/late", "v1", "late")
	w.remove("/acme/tool:v1")
	if got := w.run(part); got.status != 4 {
		t.Fatalf("%+v", got)
	}
	w.done("mirror publish --from parts -c ../set.yaml file://parts/catalogs")
	target := testregistry.New(t)
	w.done("mirror run --from parts -c ../set.yaml docker://" + target.Host())
	for _, want := range []string{"acme/tool:v1", "acme/late:v1", "acme/catalog:v1"} {
		if have := content(target); !slices.Contains(have, want) {
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
				w, target := newSignedWorld(t, unsigned), testregistry.New(t)
				// The bundle of the other package has an image of its own.
				bundle := w.addImage("acme/old", "v1", "old")
				w.otherBundle(bundle.String())
				last := one
				for _, set := range append(test.written, test.read) {
					w.changeSet(last, set)
					if last = set; len(last) == 0 {
						t.Fatal("no set")
					}
					if w.runs++; w.runs <= len(test.written) {
						w.done(toMedia + " --archive-format " + form)
					}
				}
				got := w.run(fromMedia + target.Host())
				if got.status != test.status {
					t.Errorf("%+v", got)
				}
				if v := w.run("mirror verify --workspace media docker://" + target.Host()); v.status != 0 {
					t.Errorf("what is published is not whole: %+v", v)
				}
			})
		}
	}
}

// otherBundle replaces the catalog by one whose second package has a bundle of its own.
func (w *signedWorld) otherBundle(d string) {
	w.Helper()
	base := opmFor("amd64")
	base.Labels = map[string]string{testConfigsLabel: "/configs"}
	base.Layers = append(base.Layers, map[string]string{
		"configs/etcd/catalog.json": strings.NewReplacer("NAME", "etcd", "IMAGE", w.images[1]).Replace(oneBundle),
		"configs/old/catalog.json": strings.NewReplacer("NAME", "old", "IMAGE", w.source.Host()+"/acme/old@"+d).
			Replace(oneBundle)})
	w.source.AddImage(w.T, "acme/catalog", "v1", base)
}

// A catalog that is copied as it is, is in an archive against an inventory that has it.
func TestWholeCatalogAgainstAnInventory(t *testing.T) {
	for _, form := range []string{"oci", "oc-mirror"} {
		w, target := newSignedWorld(t, unsigned), testregistry.New(t)
		w.changeSet(" packages:\n    - name: etcd\n", " full: true\n")
		w.done(toRegistry + target.Host())
		w.done("mirror inventory --to inventory.json.gz docker://" + target.Host())
		w.addImage("acme/late", "v1", "late")
		w.changeSet("/acme/tool:v1\n", "/acme/tool:v1\n  - name: "+w.source.Host()+"/acme/late:v1\n")
		w.done(toMedia + " --against inventory.json.gz --archive-format " + form)
		w.done("mirror verify file://media")
		w.done(fromMedia + target.Host())
		if have := content(target); !slices.Contains(have, "acme/late:v1") {
			t.Errorf("%s: %q", form, have)
		}
	}
}
