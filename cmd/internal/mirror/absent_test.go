package mirror_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// newAbsentWorld returns a world with the catalog acme/own:v1: the package etcd with versions 0.5.0, 0.6.0 and 0.7.0 in
// its default channel stable, and 1.0.0 in the channel next; the images have the layers, too. It is the other catalog of the image set, set.yaml.
func newAbsentWorld(t *testing.T, layers ...map[string]string) *clitest.MirrorWorld {
	t.Helper()
	source, target := mirrortest.Source(t), testregistry.New(t)
	var b strings.Builder
	b.WriteString(`{"schema":"olm.package","name":"etcd","defaultChannel":"stable"}
{"schema":"olm.channel","package":"etcd","name":"stable","entries":[{"name":"etcd.v0.5.0"},
{"name":"etcd.v0.6.0","replaces":"etcd.v0.5.0"},{"name":"etcd.v0.7.0","replaces":"etcd.v0.6.0"}]}
{"schema":"olm.channel","package":"etcd","name":"next","entries":[{"name":"etcd.v1.0.0"}]}
`)
	for _, version := range []string{"0.5.0", "0.6.0", "0.7.0", "1.0.0"} {
		source.AddImage(t, "acme/etcd", "v"+version, testregistry.Image{Layers: append(layers,
			map[string]string{"v": version})})
		fmt.Fprintf(&b, `{"schema":"olm.bundle","package":"etcd","name":"etcd.v%[1]s","image":"%[2]s/acme/etcd:v%[1]s",`+
			`"properties":[{"type":"olm.package","value":{"packageName":"etcd","version":"%[1]s"}}]}`+"\n", version,
			mirrortest.Host)
	}
	base := clitest.OpmFor("amd64")
	base.Labels = map[string]string{clitest.TestConfigsLabel: "/configs"}
	base.Layers = append(base.Layers, map[string]string{"configs/etcd/catalog.json": b.String()})
	source.AddImage(t, "acme/own", "v1", base)
	w := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: source.RegistriesConf(t, mirrortest.Host), Target: "docker://" + target.Host(), Registry: target}
	w.Set("name: etcd")
	return w
}

// lastLines are the lines of standard error from the one that begins with a text.
func lastLines(text, begin string) string {
	if at := strings.Index("\n"+text, "\n"+begin); at >= 0 {
		return text[at:]
	}
	return ""
}

// What an image set names and its catalogs do not have is listed at the end, with exit status 4, and the rest is there.
func TestMirrorOfWhatIsNotThere(t *testing.T) {
	const catalog = "not there: catalog registry.example.com/acme/own:v1: "
	for name, test := range map[string]struct {
		packages string
		more     []string
		want     []string
	}{
		"package": {"name: etcd\nname: etdc", nil,
			[]string{catalog + `package "etdc": it is not in the catalog (perhaps etcd)`}},
		"channel": {`name: etcd, channels: [{name: stable}, {name: netx}]`, nil,
			[]string{catalog + `package "etcd", channel "netx": it is not in the package (perhaps next)`}},
		"versions of a channel": {`name: etcd, channels: [{name: stable}, {name: next, minVersion: 2.0.0}]`, nil,
			[]string{catalog + `package "etcd", channel "next": it has no bundle with the versions ">=2.0.0", and is not ` +
				`kept (the channel has versions from 1.0.0 to 1.0.0)`}},
		"one version of a channel": {`name: etcd, channels: [{name: stable}, {name: next, minVersion: 0.6.0, ` +
			`maxVersion: 0.6.0}]`, nil, []string{catalog + `package "etcd", channel "next": it has no bundle that is kept`,
			catalog + `package "etcd": bundle "etcd.v0.6.0" has the version that is requested`}},
		"package, channel and image": {"name: etcd, channels: [{name: stable}, {name: old}]\nname: nothing",
			[]string{"registry.example.com/extra/none:v1"},
			[]string{catalog + `package "etcd", channel "old": it is not in the package (there is next stable)`,
				catalog + `package "nothing": it is not in the catalog (there is etcd)`,
				"not copied: docker://registry.example.com/extra/none:v1: "}},
		"all of a catalog": {"name: etdc", nil, []string{catalog +
			`nothing of the catalog is kept: no related images found: package "etdc": it is not in the catalog (perhaps etcd)`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAbsentWorld(t)
			w.Set(test.packages, test.more...)
			for _, line := range []string{"mirror plan -c set.yaml", "mirror plan -c set.yaml -o json",
				"mirror plan -c set.yaml --dry-run", "mirror run -c set.yaml --workspace dry TARGET --dry-run",
				"mirror run -c set.yaml --workspace dry TARGET --dry-run -o json",
				"mirror run -c set.yaml file://dry --dry-run", "mirror run -c set.yaml file://media",
				"mirror run -c set.yaml --from media --workspace ws TARGET/disk --dry-run",
				"mirror run -c set.yaml --from media --workspace ws TARGET/disk",
				"mirror run -c set.yaml file://peer --archive-format oc-mirror",
				"mirror run -c set.yaml --from peer --workspace ws3 TARGET/peer",
				"mirror run -c set.yaml --workspace ws2 TARGET/direct",
				"mirror publish -c set.yaml --workspace ws2 TARGET/direct"} {
				got := w.Run(line)
				end := lastLines(got.Stderr, "not there: ")
				for _, want := range test.want {
					plan, all := strings.Contains(line, "mirror plan"), strings.HasPrefix(name, "all of")
					switch {
					case plan && strings.HasPrefix(want, "not copied: ") && !strings.Contains(line, "dry"):
						continue // images are not looked at
					case plan && all:
						want = `package "etdc": it is not in the catalog (perhaps etcd)`
					case all && strings.Contains(line, "--from"):
						want = catalog + "the archive has no catalog registry.example.com/acme/own:v1"
					}
					if !strings.Contains(end, want) || got.Status != 4 {
						t.Errorf("%s: status %d, no %q at the end of\n%s", line, got.Status, want, got.Stderr)
					}
				}
				for line := range strings.Lines(end) {
					if !strings.HasPrefix(line, "not there: ") && !strings.HasPrefix(line, "not copied: ") &&
						!strings.HasPrefix(line, "refused: ") {
						t.Errorf("%s is after the list", line)
					}
				}
			}
			whole := strings.Contains(name, "all of")
			for _, at := range []string{"disk", "peer", "direct"} {
				tags := fmt.Sprint(w.Registry.Tags(at + "/acme/own"))
				if (tags == "[v1]") == whole || fmt.Sprint(w.Registry.Tags(at+"/acme/catalog")) != "[v1]" ||
					fmt.Sprint(w.Registry.Tags(at+"/extra/tool")) != "[v1]" {
					t.Errorf("%s: %s", at, tags)
				}
			}
			for _, line := range []string{"mirror run -c set.yaml --workspace strict TARGET/strict --strict",
				"mirror run -c set.yaml file://strict --strict", "mirror plan -c set.yaml --strict",
				"mirror run -c set.yaml --from media --workspace strict TARGET/strict --strict"} {
				if got := w.Run(line); got.Status != 1 && !(len(test.more) > 0 && strings.Contains(line, "plan")) {
					t.Errorf("%s: %+v", line, got)
				}
			}
			if len(w.Registry.Tags("strict/acme/catalog")) > 0 || len(w.Registry.Tags("strict/extra/tool")) > 0 {
				t.Error("something was copied with --strict")
			}
			if found, _ := filepath.Glob(filepath.Join(w.Dir, "strict", "mirror_*")); len(found) > 0 {
				t.Errorf("%q", found)
			}
		})
	}
}

// Under the name oc-mirror the list comes at the end, and the exit status is that of oc-mirror.
func TestOcMirrorOfWhatIsNotThere(t *testing.T) {
	w := newAbsentWorld(t)
	w.Set("name: etcd\nname: etdc")
	for _, line := range []string{"oc-mirror -c set.yaml file://media --dest-tls-verify=false --src-tls-verify=false",
		"oc-mirror -c set.yaml --from file://media TARGET --dest-tls-verify=false",
		"oc-mirror -c set.yaml --workspace file://ws TARGET/m --dest-tls-verify=false --src-tls-verify=false",
		"oc-mirror -c set.yaml --workspace file://ws TARGET/m --dest-tls-verify=false --src-tls-verify=false --dry-run"} {
		got := w.Run(line)
		lines := strings.Split(strings.TrimSpace(got.Stderr), "\n")
		if got.Status != 0 || !strings.Contains(lines[len(lines)-1], `not there: catalog registry.example.com/acme/own:v1: `+
			`package "etdc": it is not in the catalog (perhaps etcd)`) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	w.Set("name: etcd\nname: etdc", "registry.example.com/extra/none:v1")
	got := w.Run("oc-mirror -c set.yaml --workspace file://ws TARGET/m --dest-tls-verify=false --src-tls-verify=false")
	if end := lastLines(got.Stderr, "not there: "); got.Status != 8 || !strings.Contains(end, `"etdc"`) ||
		!strings.Contains(end, "extra/none:v1") {
		t.Errorf("%+v", got)
	}
}

// A catalog that is not there is listed, and the others are mirrored.
func TestMirrorOfAnAbsentCatalog(t *testing.T) {
	w := newAbsentWorld(t)
	set := strings.Replace(clitest.MirrorImageSet, "  operators:\n",
		"  operators:\n  - catalog: registry.example.com/acme/none:v1\n", 1)
	w.Write("set.yaml", set)
	for _, line := range []string{"mirror plan -c set.yaml", "mirror run -c set.yaml file://media",
		"mirror run -c set.yaml --from media TARGET/disk", "mirror run -c set.yaml --workspace ws TARGET/direct"} {
		got := w.Run(line)
		if end := lastLines(got.Stderr, "not there: "); got.Status != 4 ||
			!strings.Contains(end, "catalog registry.example.com/acme/none:v1: ") {
			t.Errorf("%s: %+v", line, got)
		}
	}
	for _, at := range []string{"disk", "direct"} {
		if tags := fmt.Sprint(w.Registry.Tags(at + "/acme/catalog")); tags != "[v1]" {
			t.Errorf("%s: %s", at, tags)
		}
	}
	// The archive has one catalog of two.
	w.Set("name: etcd")
	if got := w.Run("mirror verify file://media -c set.yaml"); got.Status != 1 ||
		!strings.Contains(got.Stdout, "catalog registry.example.com/acme/own:v1: the archive has no catalog") {
		t.Errorf("%+v", got)
	}
	if got := w.Run("mirror run -c set.yaml --from media TARGET/two"); got.Status != 4 ||
		!strings.Contains(lastLines(got.Stderr, "not there: "), "catalog registry.example.com/acme/own:v1: the archive has no") ||
		fmt.Sprint(w.Registry.Tags("two/acme/catalog")) != "[v1]" {
		t.Errorf("%+v", got)
	}
	w.Write("set.yaml", set)
	if got := w.Run("mirror run -c set.yaml --workspace strict TARGET/strict --strict"); got.Status != 1 ||
		len(w.Registry.Tags("strict/acme/catalog")) > 0 {
		t.Errorf("%+v", got)
	}
	if got := w.Run("mirror resources -c set.yaml --workspace ws TARGET"); got.Status != 1 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(w.Dir, "media", "mirror_000001.tar")); err != nil {
		t.Error(err)
	}
}

// What is asked for on the other side is compared with what the catalogs of the archive offered: what the archive lacks
// of it is listed, when the archive is read, and when it or the target is verified.
func TestWishAgainstArchive(t *testing.T) {
	const (
		from6 = "packages: [{name: etcd, minVersion: 0.6.0, channels: [{name: stable}]}]"
		from5 = "packages: [{name: etcd, minVersion: 0.5.0, channels: [{name: stable}]}]"
		heads = "packages: [{name: etcd, channels: [{name: stable}]}]"
		both  = "packages: [{name: etcd}]"
		full  = "full: true"
		typo  = "packages: [{name: etcd}, {name: etdc}]"
		lacks = "left out: bundle etcd.v%[1]s of package etcd, version %[1]s, needs registry.example.com/acme/etcd:v%[1]s"
	)
	lack := func(version string) string { return fmt.Sprintf(lacks, version) }
	for name, test := range map[string]struct {
		written, read string
		images        []string // additional images that are read
		want          []string
	}{
		"the same":          {from6, from6, nil, nil},
		"less":              {from5, from6, nil, nil},
		"minVersion":        {from6, from5, nil, []string{lack("0.5.0")}},
		"versions of heads": {heads, from5, nil, []string{lack("0.5.0"), lack("0.6.0")}},
		"channels":          {heads, both, nil, []string{lack("1.0.0")}},
		"full":              {heads, full, nil, []string{lack("0.5.0"), lack("0.6.0"), lack("1.0.0")}},
		"of full":           {full, both, nil, nil},
		"packages":          {both, typo, nil, []string{`package "etdc": it is not in the catalog (perhaps etcd)`}},
		"packages of full":  {full, typo, nil, []string{`package "etdc": it is not in the catalog (perhaps etcd)`}},
		"additional image":  {both, both, []string{"extra/tool:v1"}, []string{"not copied: docker://registry.example.com/extra/tool:v1: "}},
		"versions and an image": {from6, from5, []string{"extra/tool:v1"}, []string{lack("0.5.0"),
			"not copied: docker://registry.example.com/extra/tool:v1: "}},
	} {
		for _, form := range []string{"oci", "oc-mirror", "oc-mirror alone", "segments", "parts"} {
			if (form == "segments" || form == "parts") && name != "minVersion" && name != "the same" {
				continue
			}
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				var layers []map[string]string
				for n := range 3 * strings.Count(form, "segments") {
					layers = append(layers, map[string]string{"noise": string(noise(1_000_000)[n:])})
				}
				w := newAbsentWorld(t, layers...)
				w.OwnSet("written.yaml", test.written)
				w.OwnSet("read.yaml", test.read, test.images...)
				lines := map[string][]string{
					"oci":             {"mirror run -c written.yaml file://media"},
					"segments":        {"mirror run -c written.yaml file://media --archive-size 1MiB"},
					"oc-mirror":       {"mirror run -c written.yaml file://media --archive-format oc-mirror"},
					"oc-mirror alone": {"mirror run -c written.yaml file://media --archive-format oc-mirror"},
					"parts": {"mirror run -c written.yaml file://media/1 --shard 1/2",
						"mirror run -c written.yaml file://media/2 --shard 2/2",
						"mirror publish -c written.yaml --from media file://media/catalogs"}}[form]
				for _, line := range lines {
					if got := w.Run(line); got.Status != 0 {
						t.Fatalf("%+v", got)
					}
				}
				if _, err := os.Stat(filepath.Join(w.Dir, "media", "mirror_000002.tar")); form == "segments" && err != nil {
					t.Error(err)
				}
				if form == "oc-mirror alone" { // as that program writes it
					s := &spoilt{t: t, all: archiveMembers(t, filepath.Join(w.Dir, "media"))}
					s.remove("working-dir/bindery-mirror.json")
					writeArchive(t, filepath.Join(w.Dir, "media"), s.all)
				}
				status, wrong := 0, 0
				if len(test.want) > 0 {
					status, wrong = 4, 1
				}
				if got := w.Run("mirror verify file://media -c read.yaml"); got.Status != wrong {
					t.Errorf("%+v", got)
				}
				if got := w.Run("mirror verify file://media -c written.yaml"); got.Status != 0 {
					t.Errorf("%+v", got)
				}
				for _, line := range []string{"mirror run -c read.yaml --from media TARGET --workspace ws --dry-run",
					"mirror run -c read.yaml --from media TARGET --workspace ws"} {
					got := w.Run(line)
					if got.Status != status {
						t.Errorf("%s: %+v", line, got)
					}
					for _, want := range test.want {
						if _, end, _ := strings.Cut(got.Stderr, "\nhint: "); !strings.Contains(end, want) {
							t.Errorf("%s: no %q at the end of\n%s", line, want, got.Stderr)
						}
					}
				}
				got := w.Run("mirror verify TARGET -c read.yaml")
				if got.Status != wrong || wrong == 0 && !strings.Contains(got.Stdout, "all is there") {
					t.Errorf("%+v", got)
				}
				for _, want := range test.want {
					if version, _, ok := strings.Cut(strings.TrimPrefix(want, "left out: bundle "), " of package etcd, "); ok &&
						!strings.Contains(got.Stdout, version) {
						t.Errorf("no %q: %+v", version, got)
					}
				}
				if got := w.Run("mirror run -c read.yaml --from media TARGET/strict --workspace ws2 --strict"); (got.Status == 0) !=
					(wrong == 0) || wrong == 1 && len(w.Registry.Tags("strict/acme/own")) > 0 {
					t.Errorf("%+v", got)
				}
			})
		}
	}
}

// A catalog that was published for another image set is not taken for what this one asks for.
func TestVerifyComparesWithTheImageSet(t *testing.T) {
	w := newAbsentWorld(t)
	w.OwnSet("six.yaml", "packages: [{name: etcd, minVersion: 0.6.0, channels: [{name: stable}]}]")
	w.OwnSet("five.yaml", "packages: [{name: etcd, minVersion: 0.5.0, channels: [{name: stable}]}]")
	w.OwnSet("two.yaml", "packages: [{name: etcd, channels: [{name: stable}, {name: next}]}, {name: other}]")
	w.OwnSet("full.yaml", "full: true")
	run := func(line string, status int, want ...string) {
		t.Helper()
		got := w.Run(line)
		for _, text := range append(want, "") {
			if got.Status != status || !strings.Contains(got.Stdout, text) {
				t.Errorf("%s: no %q: %+v", line, text, got)
			}
		}
	}
	run("mirror run -c six.yaml --workspace ws TARGET", 0)
	run("mirror verify TARGET -c six.yaml", 0, "all is there")
	run("mirror verify TARGET --workspace ws", 0, "all is there")
	run("mirror verify TARGET -c five.yaml", 1, "it was published for another selection", "1 catalog and 0 images are wrong")
	run("mirror verify TARGET -c full.yaml -o json", 1, "it was published for another selection")
	run("mirror verify TARGET -c two.yaml", 1, `channel "next": it is not in the package`, `package "other": it is not in the catalog`)
	run("mirror run -c full.yaml --workspace ws TARGET/full", 0)
	run("mirror verify TARGET/full -c full.yaml", 0, "all is there")
	run("mirror verify TARGET/full -c five.yaml", 0, "not judged: ")
	run("mirror verify TARGET/full -c two.yaml", 1, `package "other": it is not in the catalog`)
}

// An archive that has only what was selected cannot be judged for another image set, which is said.
func TestWishAgainstArchiveWithoutSource(t *testing.T) {
	w := newAbsentWorld(t)
	w.OwnSet("six.yaml", "packages: [{name: etcd, minVersion: 0.6.0, channels: [{name: stable}]}]")
	w.OwnSet("five.yaml", "packages: [{name: etcd, minVersion: 0.5.0, channels: [{name: stable}]}]")
	if got := w.Run("render registry.example.com/acme/own:v1"); got.Status != 0 {
		t.Fatalf("%+v", got)
	} else {
		w.Write("catalog.json", got.Stdout)
	}
	if err := os.MkdirAll(filepath.Join(w.Dir, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(w.Dir, "catalog.json"), filepath.Join(w.Dir, "dir", "catalog.json")); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"mirror run -c six.yaml file://media --catalog registry.example.com/acme/own:v1=dir --server none",
		"mirror verify file://media", "mirror run -c six.yaml --from media TARGET/six --workspace ws"} {
		if got := w.Run(line); got.Status != 0 {
			t.Fatalf("%s: %+v", line, got)
		}
	}
	for line, status := range map[string]int{"mirror run -c five.yaml --from media TARGET/five --workspace ws": 4,
		"mirror verify file://media -c five.yaml": 1} {
		if got := w.Run(line); got.Status != status || !strings.Contains(got.Stdout+got.Stderr, "not judged: ") {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if got := w.Run("mirror verify TARGET/five -c five.yaml"); got.Status != 1 || !strings.Contains(got.Stdout, "not judged: ") {
		t.Errorf("%+v", got)
	}
}

// The second archive leaves out the layers that the first one carried, also those of catalogs: what it offers is read
// with them, from the target.
func TestWishAgainstLaterArchive(t *testing.T) {
	w := newAbsentWorld(t)
	w.OwnSet("six.yaml", "packages: [{name: etcd, minVersion: 0.6.0, channels: [{name: stable}]}]")
	w.OwnSet("seven.yaml", "packages: [{name: etcd, minVersion: 0.7.0, channels: [{name: stable}]}]")
	w.OwnSet("five.yaml", "packages: [{name: etcd, minVersion: 0.5.0, channels: [{name: stable}]}]")
	for _, line := range []string{"mirror run -c seven.yaml file://one --workspace ws",
		"mirror run -c seven.yaml --from one TARGET --workspace there",
		"mirror run -c six.yaml file://two --workspace ws"} {
		if got := w.Run(line); got.Status != 0 {
			t.Fatalf("%s: %+v", line, got)
		}
	}
	got := w.Run("mirror run -c five.yaml --from two TARGET --workspace there")
	if got.Status != 4 || !strings.Contains(lastLines(got.Stderr, "left out: "), "bundle etcd.v0.5.0 of package etcd, version 0.5.0") {
		t.Errorf("%+v", got)
	}
	if got := w.Run("mirror verify file://two -c five.yaml"); got.Status != 1 {
		t.Errorf("%+v", got)
	}
}

// Dependencies that are asked for on the other side alone are looked for in what the catalogs offered.
func TestDependenciesAgainstArchive(t *testing.T) {
	w := newAbsentWorld(t)
	w.Write("set.yaml", "kind: ImageSetConfiguration\nmirror:\n  operators:\n"+
		"  - catalog: registry.example.com/acme/catalog:v1\n    packages: [{name: alpha-op}]\n")
	if got := w.Run("mirror run -c set.yaml file://media"); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	if got := w.Run("mirror run -c set.yaml --from media TARGET --with-dependencies"); got.Status != 0 {
		t.Errorf("%+v", got)
	}
}

// A list of what is to be deleted says what the catalogs do not have, and names each catalog once.
func TestDeletionOfWhatIsNotThere(t *testing.T) {
	w := newAbsentWorld(t)
	set := strings.NewReplacer("ImageSet", "DeleteImageSet", "mirror:\n", "delete:\n")
	w.Set("name: etcd")
	if got := w.Run("mirror run -c set.yaml --workspace ws TARGET"); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	for packages, want := range map[string]string{"name: etcd": "", "name: etdc": `package "etdc": it is not in the catalog (perhaps etcd)`,
		"name: etcd, channels: [{name: stable}, {name: netx}]": `channel "netx": it is not in the package (perhaps next)`} {
		w.Set(packages)
		w.Write("set.yaml", set.Replace(clitest.ReadFile(t, filepath.Join(w.Dir, "set.yaml"))))
		got := w.Run("mirror delete -c set.yaml --workspace ws --list list.yaml TARGET")
		end := lastLines(got.Stderr, "not there: ")
		if want == "" && (got.Status != 0 || end != "") || want != "" && (got.Status != 4 || !strings.Contains(end, want)) {
			t.Errorf("%s: %+v", packages, got)
		}
		for _, catalog := range []string{"acme/own:v1", "acme/catalog"} {
			if n := strings.Count(strings.TrimSuffix(got.Stderr, end), strings.TrimPrefix(w.Target, "docker://")+"/"+catalog); n > 1 {
				t.Errorf("%s is named %d times: %s", catalog, n, got.Stderr)
			}
		}
		if got := w.Run("oc-mirror delete --generate -c set.yaml --workspace file://ws TARGET --dest-tls-verify=false"); got.Status != 0 ||
			!strings.Contains(got.Stderr, want) {
			t.Errorf("%+v", got)
		}
	}
}

// What of an image set is not mirrored is on the first screen of the pages that say what is.
func TestPagesNameWhatIsNotMirrored(t *testing.T) {
	w := newMirrorWorld(t)
	for _, c := range []struct {
		stanza, text string
		status       int
	}{{"samples", "[{name: ruby}]", 0}} {
		w.Write("set.yaml", clitest.MirrorImageSet+"  "+c.stanza+": "+c.text+"\n")
		if got := w.Run("mirror run -c set.yaml --workspace ws TARGET"); got.Status != c.status ||
			!strings.Contains(got.Stderr, "mirror."+c.stanza+": is not mirrored by this program") {
			t.Errorf("%s: the pages say otherwise: %+v", c.stanza, got)
		}
		if got := w.Run("mirror plan -c set.yaml --ignore-unsupported"); got.Status != 0 {
			t.Errorf("%s: %+v", c.stanza, got)
		}
		for _, page := range []string{"README.md", "docs/guides/mirror.md"} {
			lines := strings.Split(clitest.ReadFile(t, filepath.Join("..", "..", "..", filepath.FromSlash(page))), "\n")
			if !strings.Contains(strings.Join(lines[:30], "\n"), "`"+c.stanza+"`") {
				t.Errorf("%s does not name %s at its beginning", page, c.stanza)
			}
		}
	}
}
