package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/mirrortest"
	"github.com/operator-bindery/bindery/internal/testregistry"
)

// newAbsentWorld returns a world with the catalog acme/own:v1: the package etcd with versions 0.5.0, 0.6.0 and 0.7.0 in
// its default channel stable, and 1.0.0 in the channel next. It is the other catalog of the image set, set.yaml.
func newAbsentWorld(t *testing.T) *mirrorWorld {
	t.Helper()
	source, target := mirrortest.Source(t), testregistry.New(t)
	var b strings.Builder
	b.WriteString(`{"schema":"olm.package","name":"etcd","defaultChannel":"stable"}
{"schema":"olm.channel","package":"etcd","name":"stable","entries":[{"name":"etcd.v0.5.0"},
{"name":"etcd.v0.6.0","replaces":"etcd.v0.5.0"},{"name":"etcd.v0.7.0","replaces":"etcd.v0.6.0"}]}
{"schema":"olm.channel","package":"etcd","name":"next","entries":[{"name":"etcd.v1.0.0"}]}
`)
	for _, version := range []string{"0.5.0", "0.6.0", "0.7.0", "1.0.0"} {
		source.AddImage(t, "acme/etcd", "v"+version, testregistry.Image{Layers: []map[string]string{{"v": version}}})
		fmt.Fprintf(&b, `{"schema":"olm.bundle","package":"etcd","name":"etcd.v%[1]s","image":"%[2]s/acme/etcd:v%[1]s",`+
			`"properties":[{"type":"olm.package","value":{"packageName":"etcd","version":"%[1]s"}}]}`+"\n", version,
			mirrortest.Host)
	}
	base := opmFor("amd64")
	base.Labels = map[string]string{testConfigsLabel: "/configs"}
	base.Layers = append(base.Layers, map[string]string{"configs/etcd/catalog.json": b.String()})
	source.AddImage(t, "acme/own", "v1", base)
	w := &mirrorWorld{t, t.TempDir(), source.RegistriesConf(t, mirrortest.Host), "docker://" + target.Host(), target}
	w.set("name: etcd")
	return w
}

// set writes the image set: packages of acme/own:v1, each a line, beside what is in [mirrorImageSet]; more are lines of
// the additional images.
func (w *mirrorWorld) set(packages string, more ...string) {
	w.Helper()
	own := "  - catalog: registry.example.com/acme/own:v1\n    packages:\n"
	for line := range strings.SplitSeq(packages, "\n") {
		own += "    - {" + line + "}\n"
	}
	text := strings.Replace(mirrorImageSet, "  operators:\n", "  operators:\n"+own, 1)
	for _, line := range more {
		text += "  - name: " + line + "\n"
	}
	w.write("set.yaml", text)
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
			w.set(test.packages, test.more...)
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
				got := w.run(line)
				end := lastLines(got.stderr, "not there: ")
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
					if !strings.Contains(end, want) || got.status != 4 {
						t.Errorf("%s: status %d, no %q at the end of\n%s", line, got.status, want, got.stderr)
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
				tags := fmt.Sprint(w.registry.Tags(at + "/acme/own"))
				if (tags == "[v1]") == whole || fmt.Sprint(w.registry.Tags(at+"/acme/catalog")) != "[v1]" ||
					fmt.Sprint(w.registry.Tags(at+"/extra/tool")) != "[v1]" {
					t.Errorf("%s: %s", at, tags)
				}
			}
			for _, line := range []string{"mirror run -c set.yaml --workspace strict TARGET/strict --strict",
				"mirror run -c set.yaml file://strict --strict", "mirror plan -c set.yaml --strict",
				"mirror run -c set.yaml --from media --workspace strict TARGET/strict --strict"} {
				if got := w.run(line); got.status != 1 && !(len(test.more) > 0 && strings.Contains(line, "plan")) {
					t.Errorf("%s: %+v", line, got)
				}
			}
			if len(w.registry.Tags("strict/acme/catalog")) > 0 || len(w.registry.Tags("strict/extra/tool")) > 0 {
				t.Error("something was copied with --strict")
			}
			if found, _ := filepath.Glob(filepath.Join(w.dir, "strict", "mirror_*")); len(found) > 0 {
				t.Errorf("%q", found)
			}
		})
	}
}

// Under the name oc-mirror the list comes at the end, and the exit status is that of oc-mirror.
func TestOcMirrorOfWhatIsNotThere(t *testing.T) {
	w := newAbsentWorld(t)
	w.set("name: etcd\nname: etdc")
	for _, line := range []string{"oc-mirror -c set.yaml file://media --dest-tls-verify=false --src-tls-verify=false",
		"oc-mirror -c set.yaml --from file://media TARGET --dest-tls-verify=false",
		"oc-mirror -c set.yaml --workspace file://ws TARGET/m --dest-tls-verify=false --src-tls-verify=false",
		"oc-mirror -c set.yaml --workspace file://ws TARGET/m --dest-tls-verify=false --src-tls-verify=false --dry-run"} {
		got := w.run(line)
		lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
		if got.status != 0 || !strings.Contains(lines[len(lines)-1], `not there: catalog registry.example.com/acme/own:v1: `+
			`package "etdc": it is not in the catalog (perhaps etcd)`) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	w.set("name: etcd\nname: etdc", "registry.example.com/extra/none:v1")
	got := w.run("oc-mirror -c set.yaml --workspace file://ws TARGET/m --dest-tls-verify=false --src-tls-verify=false")
	if end := lastLines(got.stderr, "not there: "); got.status != 8 || !strings.Contains(end, `"etdc"`) ||
		!strings.Contains(end, "extra/none:v1") {
		t.Errorf("%+v", got)
	}
}

// A catalog that is not there is listed, and the others are mirrored.
func TestMirrorOfAnAbsentCatalog(t *testing.T) {
	w := newAbsentWorld(t)
	set := strings.Replace(mirrorImageSet, "  operators:\n",
		"  operators:\n  - catalog: registry.example.com/acme/none:v1\n", 1)
	w.write("set.yaml", set)
	for _, line := range []string{"mirror plan -c set.yaml", "mirror run -c set.yaml file://media",
		"mirror run -c set.yaml --from media TARGET/disk", "mirror run -c set.yaml --workspace ws TARGET/direct"} {
		got := w.run(line)
		if end := lastLines(got.stderr, "not there: "); got.status != 4 ||
			!strings.Contains(end, "catalog registry.example.com/acme/none:v1: ") {
			t.Errorf("%s: %+v", line, got)
		}
	}
	for _, at := range []string{"disk", "direct"} {
		if tags := fmt.Sprint(w.registry.Tags(at + "/acme/catalog")); tags != "[v1]" {
			t.Errorf("%s: %s", at, tags)
		}
	}
	if got := w.run("mirror run -c set.yaml --workspace strict TARGET/strict --strict"); got.status != 1 ||
		len(w.registry.Tags("strict/acme/catalog")) > 0 {
		t.Errorf("%+v", got)
	}
	if got := w.run("mirror resources -c set.yaml --workspace ws TARGET"); got.status != 1 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "media", "mirror_000001.tar")); err != nil {
		t.Error(err)
	}
}
