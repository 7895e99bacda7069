package workdir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

func TestFiles(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "working-dir"))
	if text, err := d.Read("a", "b"); text != nil || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	path, err := d.Write([]byte("x"), "a", "b")
	if err != nil || path != filepath.Join(string(d), "a", "b") {
		t.Fatal(path, err)
	}
	if text, err := d.Read("a", "b"); string(text) != "x" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := d.Write(make([]byte, maxFile+1), "large"); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("got %v", err)
	}
	// A file that is made again takes nothing from one that has another name.
	other := filepath.Join(t.TempDir(), "other")
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	f, err := d.Create("a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("new"); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(other); string(text) != "x" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.Symlink(other, filepath.Join(string(d), "link")); err != nil {
		t.Fatal(err)
	}
	if text, err := d.Read("link"); err == nil {
		t.Errorf("a link is read: %q", text)
	}
	if err := d.RemoveAll("a"); err != nil {
		t.Error(err)
	}
	if text, err := d.Read("a", "b"); text != nil || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func target(t *testing.T, text string) imageset.Target {
	t.Helper()
	to, err := imageset.ParseTarget(text)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// A record is found under any name of its registry, and those of two names are one.
func TestRecords(t *testing.T) {
	d := Dir(t.TempDir())
	if rec, err := ReadRecord("", target(t, "h/to")); err != nil || rec.Found {
		t.Fatal(rec, err)
	}
	if rec, err := ReadRecord(d+"/none", target(t, "h/to")); err != nil || rec.Found {
		t.Fatal(rec, err)
	}
	write := func(to, at string) {
		t.Helper()
		rec := &Record{Version: recordVersion, Target: to,
			Catalogs: []Published{{"g/c:v1", ref(t, at+"/c:v1"), digest.FromString("c")}},
			Images:   []RecordedImage{{ref(t, "g/a:"+to[:1]), ref(t, at+"/a:v1")}}}
		if err := rec.Write(d, target(t, to)); err != nil {
			t.Fatal(err)
		}
	}
	write("localhost:5000/to", "localhost:5000/to")
	write("127.0.0.1:5000/to", "127.0.0.1:5000/to")
	write("other/to", "other/to")
	rec, err := ReadRecord(d, target(t, "127.0.0.1:5000/to"))
	if err != nil || !rec.Found || len(rec.Catalogs) != 1 || len(rec.Images) != 2 ||
		rec.Catalogs[0].Destination.String() != "docker://127.0.0.1:5000/to/c:v1" {
		t.Errorf("%+v, %v", rec, err)
	}
	all, err := ReadRecords(d, "127.0.0.1:5000")
	if err != nil || len(all) != 2 || all[0].Images[0].Source.String() != "docker://g/a:1" {
		t.Errorf("%+v, %v", all, err)
	}
}

func ref(t *testing.T, name string) imageset.Ref {
	t.Helper()
	ref, err := imageset.ParseRef(name)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// A record that names another registry, has another name or another form is an error that says how to go on.
func TestForeignRecords(t *testing.T) {
	to := target(t, "h/to")
	for name, rec := range map[string]*Record{
		"another registry": {Version: recordVersion, Target: "h/to",
			Images: []RecordedImage{{ref(t, "g/a:v1"), ref(t, "elsewhere/a:v1")}}},
		"another version": {Version: recordVersion + 1, Target: "h/to"},
		"another target":  {Version: recordVersion, Target: "h/x"},
	} {
		d := Dir(t.TempDir())
		if err := rec.Write(d, to); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRecord(d, to); err == nil || !strings.Contains(err.Error(), "remove it to go on without it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The list of a run is that of the next one, without lines that no run has written.
func TestCarried(t *testing.T) {
	d := Dir(t.TempDir())
	one, two := digest.FromString("1").String()+" h/a:v1 sr", digest.FromString("2").String()+" h/a:v1 sr"
	c, err := ReadCarried(d)
	if err != nil {
		t.Fatal(err)
	}
	c.Add(one)
	if !c.Has(one) || c.Has(two) || c.HasPlace(two) {
		t.Error("what is added is not there, or more")
	}
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	if text, err := d.Read(CarriedFile); err != nil || string(text) != one+"\n" {
		t.Fatalf("%q, %v", text, err)
	}
	if _, err := d.Write([]byte(one+"\nnonsense\n"), CarriedFile); err != nil {
		t.Fatal(err)
	}
	c, err = ReadCarried(d)
	if err != nil || !c.Has(one) || !c.HasPlace(two) || c.Has("nonsense") || len(c.lines) != 1 {
		t.Errorf("%v, %v", c.lines, err)
	}
	// What is added long after the last save is saved at once, for the run after one that is killed.
	c.saved = c.saved.Add(-2 * saveEvery)
	c.Add(two)
	if text, err := d.Read(CarriedFile); err != nil || !strings.Contains(string(text), two) {
		t.Errorf("%q, %v", text, err)
	}
	none, err := ReadCarried("")
	if err != nil {
		t.Fatal(err)
	}
	none.Add(one)
	if err := none.Save(); err != nil {
		t.Error(err)
	}
}
