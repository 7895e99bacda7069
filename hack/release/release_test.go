package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// testRelease is a release of two archives with other contents.
func testRelease(t *testing.T) *release {
	t.Helper()
	r := &release{stage: t.TempDir(), dist: t.TempDir(), version: "v1.2.3-rc.1", time: time.Unix(1e9, 0).UTC(),
		platforms: []platform{{"linux", "amd64"}, {"darwin", "arm64"}, {"linux", "s390x"}, {"windows", "amd64"}}}
	for _, p := range r.platforms {
		suffix := ".tar.gz"
		if p.os == "windows" {
			suffix = ".zip"
		}
		if err := r.write(r.name(p, suffix), []byte(p.String())); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestArguments(t *testing.T) {
	good := release{version: "v1.0.0", date: "2026-01-02T03:04:05Z", dist: "x"}
	for _, test := range []struct {
		name, platforms string
		change          func(*release)
		fails           bool
	}{
		{"a release", allPlatforms, func(*release) {}, false},
		{"a candidate", "linux/amd64", func(r *release) { r.version = "v1.0.0-rc.1" }, false},
		{"no version", "linux/amd64", func(r *release) { r.version = "" }, true},
		{"between tags", "linux/amd64", func(r *release) { r.version = "v1.0.0+5.gabc" }, true},
		{"leading zero", "linux/amd64", func(r *release) { r.version = "v1.00.0" }, true},
		{"a path", "linux/amd64", func(r *release) { r.version = "v1.0.0-../x" }, true},
		{"no date", "linux/amd64", func(r *release) { r.date = "" }, true},
		{"unknown platform", "linux/mips", func(*release) {}, true},
		{"no platform", "", func(*release) {}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := good
			test.change(&r)
			if err := r.check(test.platforms, nil); (err != nil) != test.fails {
				t.Errorf("error %v", err)
			}
		})
	}
}

// The rules are those of krew's validation: a semantic version, a short description of at most 50 characters, an
// archive, its digest and a program for each platform, none twice.
func TestKrewManifest(t *testing.T) {
	r := testRelease(t)
	if err := r.manifests(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.stage, "bindery.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			Version, Homepage, ShortDescription, Description string
			Platforms                                        []struct {
				Selector struct {
					MatchLabels map[string]string `yaml:"matchLabels"`
				}
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
			}
		}
	}
	d := yaml.NewDecoder(
		bytes.NewReader(bytes.ReplaceAll(text, []byte("shortDescription"), []byte("shortdescription"))))
	d.KnownFields(true)
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" ||
		m.Metadata.Name != "bindery" ||
		!semantic.MatchString(m.Spec.Version) || m.Spec.ShortDescription == "" || len(m.Spec.ShortDescription) > 50 ||
		len(m.Spec.Platforms) != len(r.platforms) {
		t.Errorf("got %+v", m)
	}
	seen := map[string]bool{}
	for n, p := range m.Spec.Platforms {
		file := r.name(r.platforms[n], map[bool]string{true: ".zip", false: ".tar.gz"}[r.platforms[n].os == "windows"])
		sum, err := sha256File(filepath.Join(r.stage, file))
		of := p.Selector.MatchLabels["os"] + "/" + p.Selector.MatchLabels["arch"]
		if err != nil || p.SHA256 != sum || p.URI != download+r.version+"/"+file || of != r.platforms[n].String() ||
			seen[of] ||
			p.Bin != r.platforms[n].program() || len(p.Files) == 0 || p.Files[0].From != p.Bin {
			t.Errorf("%v: %+v", err, p)
		}
		seen[of] = true
	}
}

func TestHomebrewFormula(t *testing.T) {
	r := testRelease(t)
	if err := r.manifests(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.stage, "bindery.rb"))
	if err != nil {
		t.Fatal(err)
	}
	urls := regexp.MustCompile(`url "(.*)"\n +sha256 "([0-9a-f]{64})"`).FindAllStringSubmatch(string(text), -1)
	if len(urls) != 2 || strings.Contains(string(text), "s390x") || strings.Contains(string(text), "windows") ||
		!strings.Contains(string(text), `version "1.2.3-rc.1"`) {
		t.Fatalf("got %v in %s", urls, text)
	}
	for _, u := range urls {
		if sum, err := sha256File(filepath.Join(r.stage, filepath.Base(u[1]))); err != nil || sum != u[2] {
			t.Errorf("%s: %s, %v", u[1], u[2], err)
		}
	}
}

func TestArchiveIsAFunctionOfItsMembers(t *testing.T) {
	r := testRelease(t)
	from := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(from, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	members := []file{{name: "LICENSE", mode: 0o644, text: []byte("licence")},
		{name: "a/b/c", mode: 0o644, text: []byte("c")},
		{name: "bindery", mode: 0o755, from: from}}
	var first, second bytes.Buffer
	if err := errors.Join(r.tarGz(&first, members), os.Chtimes(from, time.Time{}, time.Unix(5, 0)),
		os.Chmod(from, 0o700), r.tarGz(&second, members)); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatalf("different archives, or %v", err)
	}
	z, err := gzip.NewReader(&first)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || !h.ModTime.Equal(r.time) {
			t.Errorf("%+v", h)
		}
		got = append(got, h.Name)
	}
	if want := "LICENSE a/ a/b/ a/b/c bindery"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLicences(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := licences(&out, "example.com/m v1.0.0", dir); err == nil {
		t.Error("a module without a licence is accepted")
	}
	for name, text := range map[string]string{"NOTICE": "note", "license.go": "package m"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := licences(&out, "example.com/m v1.0.0", dir); err == nil {
		t.Error("a notice is taken for a licence")
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE-2.0.txt"), []byte("free"), 0o644); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := licences(&out, "example.com/m v1.0.0", dir); err != nil || !strings.Contains(out.String(), "free") ||
		!strings.Contains(out.String(), "note") || strings.Contains(out.String(), "package m") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// An earlier release in the output goes, what else is there stays, and no line of its checksums leads out of it.
func TestPublishReplacesAnEarlierRelease(t *testing.T) {
	r := testRelease(t)
	outside := filepath.Join(filepath.Dir(r.dist), "outside")
	for name, text := range map[string]string{"old.tar.gz": "", "mine": "",
		checksumFile:          "00  old.tar.gz\n00  ../outside\n00  gone\n",
		checksumFile + ".sig": "", "../outside": ""} {
		if err := os.WriteFile(filepath.Join(r.dist, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.checksums(), r.publish()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"old.tar.gz": false, "mine": true, checksumFile: true,
		checksumFile + ".sig":             false,
		r.name(r.platforms[0], ".tar.gz"): true} {
		if _, err := os.Stat(filepath.Join(r.dist, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}
