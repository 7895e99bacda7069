package sbom

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// The documents of the contract's example of a catalog, in every byte.
func TestDocumentsOfACatalog(t *testing.T) {
	for f, file := range map[Format]string{SPDX: "catalog.spdx.json", CycloneDX: "catalog.cdx.json"} {
		want, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, f, smallCatalog()); !bytes.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
	}
}

// The order in which an image names its parts does not matter, and neither does the run.
func TestDocumentsAreDeterministic(t *testing.T) {
	for name, inv := range inventories() {
		for _, f := range []Format{SPDX, CycloneDX} {
			first := text(t, f, inv)
			for range 5 {
				if !bytes.Equal(text(t, f, inv), first) {
					t.Fatalf("%s: %s differs from one run to the next", name, f)
				}
			}
			turned := *inv
			turned.Instances = slices.Clone(inv.Instances)
			turned.Packages = slices.Clone(inv.Packages)
			for n, p := range turned.Packages {
				turned.Packages[n].Bundles = slices.Clone(p.Bundles)
				for m, b := range p.Bundles {
					related := slices.Clone(b.Related)
					slices.Reverse(related)
					turned.Packages[n].Bundles[m].Related = related
				}
			}
			if !bytes.Equal(text(t, f, &turned), first) {
				t.Errorf("%s: %s depends on the order of related images", name, f)
			}
		}
	}
}

// An image that is named by a tag gets no digest, and what is said of it says so.
func TestImagesByTagHaveNoDigest(t *testing.T) {
	doc := text(t, SPDX, inventories()["bundle"])
	var read struct {
		Packages []struct {
			Name, VersionInfo, Comment string
			Checksums, ExternalRefs    []any
		}
	}
	if err := json.Unmarshal(doc, &read); err != nil {
		t.Fatal(err)
	}
	last := read.Packages[len(read.Packages)-1]
	if last.Name != "quay.io/coreos/etcd" || last.VersionInfo != "v3.5" || len(last.Checksums) != 0 ||
		len(last.ExternalRefs) != 0 || last.Comment != "named by tag v3.5 only: its content is not known" {
		t.Errorf("%+v", last)
	}
}

// The identifiers are functions of the digest of the subject.
func TestIdentifiers(t *testing.T) {
	inv := smallCatalog()
	inv.Image.Digest = sha("9")
	if x, y := identifiers(t, inv), identifiers(t, smallCatalog()); x == y {
		t.Errorf("images of two digests: %v", x)
	}
	inv.Image.Digest = sha("0")
	inv.Packages = nil
	if x, y := identifiers(t, inv), identifiers(t, smallCatalog()); x != y {
		t.Errorf("%v and %v", x, y)
	}
}

func identifiers(t *testing.T, inv *Inventory) (out [2]string) {
	t.Helper()
	var s struct{ DocumentNamespace string }
	var c struct{ SerialNumber string }
	if err := json.Unmarshal(text(t, SPDX, inv), &s); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text(t, CycloneDX, inv), &c); err != nil {
		t.Fatal(err)
	}
	return [2]string{s.DocumentNamespace, c.SerialNumber}
}

func TestTimeOfDocuments(t *testing.T) {
	for _, f := range []Format{SPDX, CycloneDX} {
		var b bytes.Buffer
		if err := f.Write(&b, smallCatalog(), Options{Version: "v0.1.0",
			Created: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), `"2026-01-02T02:04:05Z"`) {
			t.Errorf("%s: the time is missing", f)
		}
	}
}

// The documents of the largest catalogs stay below the limit of verifiers, also as predicates in base64, and take
// little memory.
func TestLargeCatalog(t *testing.T) {
	inv := large(1500, 10_000)
	for _, f := range []Format{SPDX, CycloneDX} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := time.Now()
		var n counter
		if err := f.Write(&n, inv, Options{Version: "v0.1.0"}); err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		t.Logf("%s: %d bytes in %v, %d MiB allocated", f, n, took, (after.TotalAlloc-before.TotalAlloc)>>20)
		if n > 12<<20 {
			t.Errorf("%s: %d bytes", f, n)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 128<<20 {
			t.Errorf("%s: %d bytes allocated", f, allocated)
		}
	}
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// failing is a writer that fails after some bytes.
type failing int

func (f *failing) Write(b []byte) (int, error) {
	if *f -= failing(len(b)); *f < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestErrorsOfTheWriter(t *testing.T) {
	for _, f := range []Format{SPDX, CycloneDX} {
		left := failing(100_000)
		if err := f.Write(&left, large(100, 1000), Options{}); err != io.ErrShortWrite {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// The modules of a program: the test itself.
func TestReadProgram(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	p, err := ReadProgram("bin/opm", f, info.Size(), "v9.8.7")
	if err != nil {
		t.Fatal(err)
	}
	want, err := digest.FromReader(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		t.Fatal(err)
	}
	if p.Digest != want || p.Main != own || p.Go != strings.TrimPrefix(runtime.Version(), "go") {
		t.Errorf("%+v", p)
	}
	if p.Version != "v9.8.7" || !p.Assumed {
		t.Errorf("version %q, assumed %t", p.Version, p.Assumed)
	}
}

// The record of a program names what was linked: the standard library, modules, and their replacements.
func TestModulesOfAProgram(t *testing.T) {
	info, err := debug.ParseBuildInfo(strings.Join([]string{"path\texample.com/cmd/opm",
		"mod\texample.com\tv1.2.3\th1:a=", "dep\tgithub.com/z/z\tv1.0.0\th1:z=", "dep\tgithub.com/a/a\tv1.0.0",
		"=>\tgithub.com/b/b\tv2.0.0\th1:b=", "dep\tgithub.com/c/c\tv1.0.0", "=>\t/home/someone/c\t\t", ""}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	info.GoVersion = "go1.26.8 X:jsonv2" // the program records it elsewhere
	want := &Program{Main: "example.com", Version: "v1.2.3", Go: "1.26.8", Modules: []Module{
		{Path: "github.com/b/b", Version: "v2.0.0", Sum: "h1:b=", Replaces: "github.com/a/a"},
		{Path: "github.com/c/c", Local: true},
		{Path: "github.com/z/z", Version: "v1.0.0", Sum: "h1:z="},
	}}
	if p := programOf(info, "v9"); !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v, want %+v", p, want)
	}
	info.Main.Version = "(devel)"
	if p := programOf(info, "v9"); p.Version != "" || p.Assumed {
		t.Errorf("another program without a version: %+v", p)
	}
}

// Of what is no Go program the digest is known, whatever its headers say.
func TestReadOtherFiles(t *testing.T) {
	damaged := append([]byte("\x7fELF\x02\x01\x01"), bytes.Repeat([]byte{0xff}, 200)...)
	for _, content := range [][]byte{nil, []byte("#!/bin/sh\n"), damaged, []byte("MZ\xff\xff")} {
		p, err := ReadProgram("bin/opm", bytes.NewReader(content), int64(len(content)), "v1")
		if err != nil || p.Digest != digest.FromBytes(content) || p.Main != "" || len(p.Modules) != 0 {
			t.Errorf("%q: %+v, %v", content, p, err)
		}
	}
}

// go.sum's hashes are of no file: they are never checksums.
func TestSumsOfModulesAreNoChecksums(t *testing.T) {
	inv := inventories()["server"]
	for _, f := range []Format{SPDX, CycloneDX} {
		for line := range strings.Lines(string(text(t, f, inv))) {
			if strings.Contains(line, "pkg:golang/") && strings.Contains(line, "Masterminds") &&
				(strings.Contains(line, "checksums") || strings.Contains(line, "hashes")) {
				t.Errorf("%s: %s", f, line)
			}
		}
	}
}

func TestPURLs(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{ociPURL("Quay.io/acme/Tiny", sha("a"), ""),
			"pkg:oci/tiny@" + sha("a").String() + "?repository_url=Quay.io%2Facme%2FTiny"},
		{ociPURL("localhost:5000/x", sha("a"), "arm64"),
			"pkg:oci/x@" + sha("a").String() + "?arch=arm64&repository_url=localhost%3A5000%2Fx"},
		{ociPURL("", sha("a"), ""), ""},
		{ociPURL("x", "", ""), ""},
		{golangPURL("github.com/BurntSushi/toml", "v1.0.0+incompatible"),
			"pkg:golang/github.com/burntsushi/toml@v1.0.0%2Bincompatible"},
		{golangPURL("std", "1.26.8"), "pkg:golang/std@1.26.8"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}
