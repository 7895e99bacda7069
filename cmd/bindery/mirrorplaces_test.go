package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// places are the ways that images go to a registry: the lines of the runs, each with the target at its end or without.
var places = map[string][]string{
	"registry to registry":          {toRegistry},
	"out of an archive":             {toMedia, fromMedia},
	"out of an archive, other form": {toMedia + " --archive-format oc-mirror", fromMedia},
	"published": {"mirror run --workspace ws --shard 1/1 -c ../set.yaml docker://",
		"mirror publish --workspace ws -c ../set.yaml docker://"},
}

// take runs the lines of a way and returns what the last one gave.
func (w *signedWorld) take(lines []string, target string, more ...string) (got result) {
	w.Helper()
	for n, line := range lines {
		if strings.HasSuffix(line, "docker://") {
			line += target
		}
		if got = w.run(line, more...); n < len(lines)-1 && got.status != 0 {
			w.Fatalf("%s: %+v", line, got)
		}
	}
	return got
}

// catalogOf replaces the catalog of the source by one whose only bundle names these images as related ones.
func (w *signedWorld) catalogOf(images ...string) {
	w.Helper()
	type related struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	}
	var all []related
	for _, image := range images {
		all = append(all, related{"", w.source.Host() + "/" + image})
	}
	list, err := json.Marshal(all)
	if err != nil {
		w.Fatal(err)
	}
	text := strings.NewReplacer("NAME", "etcd", "IMAGE", w.images[1]).Replace(oneBundle)
	text = strings.Replace(text, `"properties":`, `"relatedImages":`+string(list)+`,"properties":`, 1)
	base := opmFor("amd64")
	base.Labels = map[string]string{testConfigsLabel: "/configs"}
	base.Layers = append(base.Layers, map[string]string{"configs/etcd/catalog.json": text,
		"configs/old/catalog.json": strings.NewReplacer("NAME", "old", "IMAGE", w.images[1]).Replace(oneBundle)})
	w.source.AddImage(w.T, "acme/catalog", "v1", base)
}

// addImage adds an image to the source.
func (w *signedWorld) addImage(repository, tag, content string) digest.Digest {
	w.Helper()
	return w.source.AddImage(w.T, repository, tag, testregistry.Image{Layers: []map[string]string{{"of": content}}})
}

// Of two contents for one tag, the one that the tag has at the source gets it. The other is at the tag of its digest.
func TestTwoContentsForOneTag(t *testing.T) {
	for way, lines := range places {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newSignedWorld(t, unsigned)
			old, older := w.addImage("acme/img", "v1", "old"), w.addImage("acme/img", "v1", "older")
			now := w.addImage("acme/img", "v1", "now")
			for name, test := range map[string]struct {
				names []string
				v1    digest.Digest // at the destination
			}{
				"the tag and an older digest": {[]string{"acme/img:v1", "acme/img:v1@" + old.String()}, now},
				"an older digest and the tag": {[]string{"acme/img:v1@" + old.String(), "acme/img:v1"}, now},
				"two older digests":           {[]string{"acme/img:v1@" + old.String(), "acme/img:v1@" + older.String()}, ""},
				"an older and the new digest": {[]string{"acme/img:v1@" + old.String(), "acme/img:v1@" + now.String()}, now},
				"all of them":                 {[]string{"acme/img:v1", "acme/img:v1@" + old.String(), "acme/img:v1@" + now.String(), "acme/img:v1@" + older.String()}, now},
				"the tag and the same digest": {[]string{"acme/img:v1", "acme/img:v1@" + now.String()}, now},
				"an older digest alone":       {[]string{"acme/img:v1@" + old.String()}, old},
			} {
				w.fresh()
				w.catalogOf(test.names...)
				target := testregistry.New(t)
				got := w.take(lines, target.Host(), "-o", "json")
				if got.status != 0 {
					t.Errorf("%s: %+v", name, got)
					continue
				}
				if have := digest.FromBytes(target.Manifest("acme/img", "v1")); have != test.v1 && (test.v1 != "" ||
					target.Manifest("acme/img", "v1") != nil) {
					t.Errorf("%s: v1 is %s, expected %s", name, have, test.v1)
				}
				for _, image := range test.names {
					if _, d, ok := strings.Cut(image, "@"); ok && target.Manifest("acme/img", d) == nil {
						t.Errorf("%s: %s is not there", name, image)
					}
					if _, d, ok := strings.Cut(image, "@"); ok && len(test.names) > 1 && digest.Digest(d) != now &&
						(target.Manifest("acme/img", strings.Replace(d, ":", "-", 1)) == nil ||
							!strings.Contains(got.stdout, strings.Replace(d, ":", "-", 1))) {
						t.Errorf("%s: %s has no tag of its digest, or the account does not say so: %s", name, image, got.stdout)
					}
				}
				if v := w.run("mirror verify docker://" + target.Host() + " -c ../set.yaml"); v.status != 0 {
					t.Errorf("%s: verify: %+v", name, v)
				}
			}
		})
	}
}

// An image that would be written over another one, over the catalog or over a source is an error before anything is
// written, with both names.
func TestNothingIsReplacedByAnotherImage(t *testing.T) {
	for name, test := range map[string]struct {
		images []string
		set    [2]string // changed from, to
		target string    // in place of another registry; HOST is the source
		names  []string
	}{
		"the catalog's tag as a related image": {images: []string{"acme/catalog:v1", "acme/gone:v1"},
			names: []string{"HOST/acme/catalog:v1"}},
		"the catalog's tag as an additional image": {images: []string{"acme/img:v1"},
			set: [2]string{"/acme/tool:v1", "/acme/catalog:v1"}, names: []string{"HOST/acme/catalog:v1"}},
		"another image at the catalog's place": {images: []string{"acme/img:v1"},
			set:   [2]string{"    packages:", "    targetCatalog: acme/img\n    packages:"},
			names: []string{"HOST/acme/catalog:v1", "HOST/acme/img:v1"}},
		"the registry of the source": {images: []string{"acme/img:v1"}, target: "HOST",
			names: []string{"HOST/acme/catalog:v1", "its own source"}},
		"the registry of the source by another name": {images: []string{"acme/img:v1"}, target: "localhost:PORT",
			names: []string{"HOST/acme/catalog:v1", "its own source"}},
		"the registry of the source by no address": {images: []string{"acme/img:v1"}, target: "0.0.0.0:PORT",
			names: []string{"HOST/acme/catalog:v1", "its own source"}},
		"an additional image at the place of a source": {images: []string{"acme/img:v1"},
			set: [2]string{"/acme/tool:v1", "/acme/tool:v1\n    targetRepo: acme/img"}, target: "",
			names: []string{"HOST/acme/tool:v1", "HOST/acme/img:v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSignedWorld(t, unsigned)
			w.addImage("acme/img", "v1", "an image")
			w.catalogOf(test.images...)
			if test.set[0] != "" {
				w.changeSet(test.set[0], test.set[1])
			}
			target := testregistry.New(t)
			host := w.source.Host()
			named := strings.NewReplacer("HOST", host, "PORT", host[strings.LastIndex(host, ":")+1:])
			at := target.Host()
			if test.target != "" {
				at = named.Replace(test.target)
			}
			before := fmt.Sprint(content(w.source), digest.FromBytes(w.source.Manifest("acme/catalog", "v1")))
			for _, line := range []string{toRegistry, toMedia} {
				if line == toMedia && test.target != "" {
					continue
				}
				got := w.take([]string{line}, at)
				if got.status != 1 {
					t.Errorf("%s: %+v", line, got)
				}
				for _, want := range test.names {
					if !strings.Contains(got.stderr, named.Replace(want)) {
						t.Errorf("%s: no %s in %s", line, want, got.stderr)
					}
				}
			}
			if now := fmt.Sprint(content(w.source), digest.FromBytes(w.source.Manifest("acme/catalog", "v1"))); now != before {
				t.Errorf("the source has %s, and had %s", now, before)
			}
			if len(content(target)) > 0 || len(segments(t, filepath.Join(w.dir, "media"))) > 0 {
				t.Errorf("written: %q", content(target))
			}
		})
	}
}

// Out of an archive a registry with the name of the source is another one, unless it has the source.
func TestArchiveToTheRegistryOfItsSource(t *testing.T) {
	w := newSignedWorld(t, unsigned)
	w.done(toMedia)
	source := w.source.Manifest("acme/catalog", "v1")
	got := w.run(fromMedia + w.source.Host())
	if got.status != 1 || !strings.Contains(got.stderr, "its own source") ||
		string(w.source.Manifest("acme/catalog", "v1")) != string(source) {
		t.Fatalf("%+v", got)
	}
	w.source.Untag("acme/catalog", "v1")
	if err := os.RemoveAll(filepath.Join(w.dir, "ws")); err != nil {
		t.Fatal(err)
	}
	w.done(fromMedia + w.source.Host() + " --workspace ws")
	if !slices.Contains(w.source.Tags("acme/catalog"), "v1") {
		t.Error("not published")
	}
}

// What is at the tag of its digest is deleted with its bundle, and what another bundle names is not.
func TestDeletedImagesAtTheTagsOfTheirDigests(t *testing.T) {
	w, target := newSignedWorld(t, unsigned), testregistry.New(t)
	old := w.addImage("acme/img", "v1", "old")
	now := w.addImage("acme/img", "v1", "now")
	w.catalogOf("acme/img:v1", "acme/img:v1@"+old.String())
	w.changeSet("    - name: etcd\n", "    - name: etcd\n    - name: old\n")
	w.done(toRegistry + target.Host())
	writeFile(t, filepath.Join(w.top, "delete.yaml"), "apiVersion: mirror.openshift.io/v2alpha1\n"+
		"kind: DeleteImageSetConfiguration\ndelete:\n  operators:\n  - catalog: "+w.images[0]+
		"\n    packages:\n    - name: etcd\n")
	w.done("mirror delete -c ../delete.yaml --workspace ws --list list.yaml docker://" + target.Host())
	w.done("mirror delete --list list.yaml --workspace ws -y docker://" + target.Host())
	for _, d := range []digest.Digest{old, now} {
		if target.Manifest("acme/img", d.String()) != nil {
			t.Errorf("%s is there: %s", d, readFile(t, filepath.Join(w.dir, "list.yaml")))
		}
	}
	w.changeSet("    - name: etcd\n", "")
	w.done(toRegistry + target.Host())
	if v := w.run("mirror verify --workspace ws docker://" + target.Host()); v.status != 0 {
		t.Errorf("%+v", v)
	}
}

// A tag at the destination is moved by a later run only to what it stands for at the source.
func TestLaterRunsLeaveTags(t *testing.T) {
	for _, way := range [][]string{{toRegistry}, {toMedia, fromMedia}} {
		w, target := newSignedWorld(t, unsigned), testregistry.New(t)
		old := w.addImage("acme/img", "v1", "old")
		now := w.addImage("acme/img", "v1", "now")
		for _, names := range [][]string{{"acme/img:v1"}, {"acme/img:v1@" + old.String()}, {"acme/img:v1"}} {
			w.catalogOf(names...)
			if got := w.take(way, target.Host()); got.status != 0 {
				t.Fatalf("%+v", got)
			}
			if is := digest.FromBytes(target.Manifest("acme/img", "v1")); is != now {
				t.Errorf("%s, %s: v1 is %s and not %s", way, names, is, now)
			}
		}
		if target.Manifest("acme/img", strings.Replace(old.String(), ":", "-", 1)) == nil {
			t.Errorf("%s: %s has no tag", way, old)
		}
		// The tag moves at the source.
		next := w.addImage("acme/img", "v1", "next")
		w.catalogOf("acme/img:v1@" + next.String())
		if got := w.take(way, target.Host()); got.status != 0 {
			t.Fatalf("%+v", got)
		}
		if is := digest.FromBytes(target.Manifest("acme/img", "v1")); is != next {
			t.Errorf("%s: v1 is %s and not %s", way, is, next)
		}
	}
}

// An image of a later run does not replace a catalog that is published.
func TestPublishedCatalogIsNotReplaced(t *testing.T) {
	w, target := newSignedWorld(t, unsigned), testregistry.New(t)
	w.done(toRegistry + target.Host())
	before := target.Manifest("acme/catalog", "v1")
	writeFile(t, filepath.Join(w.top, "set.yaml"), "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n"+
		"mirror:\n  additionalImages:\n  - name: "+w.images[0]+"\n")
	got := w.run(toRegistry + target.Host())
	if got.status != 1 || !strings.Contains(got.stderr, "would replace the catalog "+target.Host()+"/acme/catalog:v1") ||
		string(target.Manifest("acme/catalog", "v1")) != string(before) {
		t.Errorf("%+v", got)
	}
}

// An image at the tag of another one's signatures is refused, and the signatures stay.
func TestImageAtTheTagOfSignatures(t *testing.T) {
	for _, way := range [][]string{{toRegistry}, {toMedia}} {
		w, target := newSignedWorld(t, signed), testregistry.New(t)
		d := digest.FromBytes(w.source.Manifest("acme/tool", "v1"))
		tag := strings.Replace(d.String(), ":", "-", 1) + ".sig"
		w.addImage("acme/img", "v1", "an image")
		w.changeSet("/acme/tool:v1\n", "/acme/tool:v1\n  - name: "+w.source.Host()+
			"/acme/img:v1\n    targetRepo: acme/tool\n    targetTag: "+tag+"\n")
		got := w.take(way, target.Host())
		if got.status != 4 || !strings.Contains(got.stderr, "acme/img:v1") || !strings.Contains(got.stderr,
			"is a tag for what is attached to an image") {
			t.Errorf("%+v", got)
		}
		if way[0] == toRegistry && string(target.Manifest("acme/tool", tag)) != string(w.source.Manifest("acme/tool", tag)) {
			t.Error("the signatures are others")
		}
	}
}

// Of an index whose images are signed one by one, what the target has already counts, also of other platforms.
func TestPolicyOfPlatformsThatAreThere(t *testing.T) {
	for _, line := range []string{toRegistry, toPublished} {
		w, target, fresh := newSignedWorld(t, unsigned), testregistry.New(t), testregistry.New(t)
		var index struct {
			Manifests []struct{ Digest digest.Digest }
		}
		d := w.images[2][strings.Index(w.images[2], "sha256"):]
		if err := json.Unmarshal(w.source.Manifest("acme/operand", d), &index); err != nil {
			t.Fatal(err)
		}
		w.sign(signed, w.source.Host()+"/acme/operand@"+index.Manifests[0].Digest.String())
		const set = "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  additionalImages:\n" +
			"  - name: %s\n%s"
		write := func(platforms string) {
			writeFile(t, filepath.Join(w.top, "set.yaml"), fmt.Sprintf(set, w.source.Host()+"/acme/operand:v1", platforms))
		}
		write("")
		w.done(toRegistry + target.Host())
		write("    platforms: [{os: linux, architecture: amd64}]\n")
		if got := w.run(line+target.Host(), "--trusted-key", "../a.pub"); got.status != 4 ||
			!strings.Contains(got.stderr, "signature policy: ") {
			t.Errorf("%s: %+v", line, got)
		}
		if got := w.run(toRegistry+fresh.Host(), "--trusted-key", "../a.pub"); got.status != 0 {
			t.Errorf("%+v", got)
		}
	}
}

// A catalog that is named by its digest and signed is referred to by its digest, where its tag lists the signatures.
func TestSignedCatalogNamedByItsDigest(t *testing.T) {
	w, target := newSignedWorld(t, signed), testregistry.New(t)
	d := digest.FromBytes(w.source.Manifest("acme/catalog", "v1"))
	named := w.source.Host() + "/acme/catalog@" + d.String()
	w.sign(signed, named)
	w.changeSet(w.images[0]+"\n    packages:\n    - name: etcd\n", named+"\n    full: true\n")
	for range 2 {
		w.done(toRegistry + target.Host())
		files, err := filepath.Glob(filepath.Join(w.dir, "ws", "working-dir", "cluster-resources", "c?-*.yaml"))
		if err != nil || len(files) != 2 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			if text := readFile(t, file); !strings.Contains(text, target.Host()+"/acme/catalog@"+d.String()) {
				t.Errorf("%s: %s", file, text)
			}
		}
	}
}
