package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// sharedWorld is a source whose catalogs a and b name the same images by other names, and a target.
//
//	acme/img    v1 and v2 are one image, v3 is another
//	acme/multi  an index of amd64 and arm64; amd64 and arm64 have signatures by tag; nested is an index of the index
type sharedWorld struct {
	*mirrorWorld
	source              *testregistry.Registry
	img, index, nested  digest.Digest
	amd64, arm64, other digest.Digest
	sources             map[string]string // what the tests call it, and how catalogs name it
}

func newSharedWorld(t *testing.T) *sharedWorld {
	w := &sharedWorld{source: testregistry.New(t)}
	target := testregistry.New(t)
	target.Separate(true)
	w.mirrorWorld = &mirrorWorld{t, t.TempDir(), w.source.RegistriesConf(t, mirrortest.Host),
		"docker://" + target.Host() + "/olm", target}
	of := func(arch, text string) testregistry.Image {
		return testregistry.Image{Platform: v1.Platform{OS: "linux", Architecture: arch},
			Layers: []map[string]string{{"file": text}}}
	}
	w.img = w.source.AddImage(t, "acme/img", "v1", of("amd64", "img"))
	w.source.AddImage(t, "acme/img", "v2", of("amd64", "img"))
	w.source.AddImage(t, "other/img", "v2", of("amd64", "img"))
	w.other = w.source.AddImage(t, "acme/img", "v3", of("amd64", "other"))
	w.index = w.source.AddIndex(t, "acme/multi", "latest", nil,
		[]testregistry.Image{of("amd64", "multi"), of("arm64", "multi")})
	var index v1.Index
	if err := json.Unmarshal(w.source.Manifest("acme/multi", "latest"), &index); err != nil {
		t.Fatal(err)
	}
	w.amd64, w.arm64 = index.Manifests[0].Digest, index.Manifests[1].Digest
	index.Manifests = []v1.Descriptor{{MediaType: v1.MediaTypeImageIndex, Digest: w.index,
		Size: int64(len(w.source.Manifest("acme/multi", "latest")))}}
	text, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	w.nested = w.source.AddManifest("acme/multi", "nested", v1.MediaTypeImageIndex, text)
	for _, d := range []digest.Digest{w.amd64, w.arm64} {
		w.addSignature(d)
	}
	const host = mirrortest.Host + "/"
	w.sources = map[string]string{"v1": host + "acme/img:v1", "v2": host + "acme/img:v2", "v3": host + "acme/img:v3",
		"img": host + "acme/img@" + w.img.String(), "elsewhere": host + "other/img@" + w.img.String(),
		"index": host + "acme/multi@" + w.index.String(), "nested": host + "acme/multi@" + w.nested.String(),
		"amd64": host + "acme/multi@" + w.amd64.String()}
	return w
}

// addSignature adds a manifest of the form of cosign's signatures for an image of acme/multi.
func (w *sharedWorld) addSignature(d digest.Digest) {
	w.Helper()
	blob := func(mediaType, text string) v1.Descriptor {
		return v1.Descriptor{MediaType: mediaType, Digest: w.source.AddBlob([]byte(text)), Size: int64(len(text))}
	}
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: blob(v1.MediaTypeImageConfig, "{}"), Layers: []v1.Descriptor{blob("application/vnd.dev.cosign.simplesigning.v1+json", "of "+d.String())}}
	text, err := json.Marshal(m)
	if err != nil {
		w.Fatal(err)
	}
	w.source.AddManifest("acme/multi", sigTag(d), v1.MediaTypeImageManifest, text)
}

func sigTag(d digest.Digest) string { return strings.Replace(d.String(), ":", "-", 1) + ".sig" }

// catalog adds a catalog NAME/catalog with one bundle that names images, and an image set of it with a set to delete it.
func (w *sharedWorld) catalog(name string, images ...string) {
	w.Helper()
	w.source.AddImage(w, name+"/bundle", "v1", testregistry.Image{Layers: []map[string]string{{"bundle": name}}})
	related := []map[string]string{{"name": "bundle", "image": mirrortest.Host + "/" + name + "/bundle:v1"}}
	for _, i := range images {
		if w.sources[i] != "" {
			i = w.sources[i]
		}
		related = append(related, map[string]string{"name": fmt.Sprint(len(related)), "image": i})
	}
	text, err := json.Marshal(related)
	if err != nil {
		w.Fatal(err)
	}
	one := strings.NewReplacer("NAME", name, `"image":"IMAGE"`,
		`"image":"`+mirrortest.Host+`/`+name+`/bundle:v1","relatedImages":`+string(text)).Replace(oneBundle)
	w.source.AddImage(w, name+"/catalog", "v1", testregistry.Image{Labels: map[string]string{testConfigsLabel: "/configs"},
		Layers: []map[string]string{{"configs/" + name + "/catalog.json": one}}})
	const set = "kind: %sSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n%s:\n  operators:\n" +
		"  - catalog: " + mirrortest.Host + "/%s/catalog:v1\n    full: true\n"
	w.write(name+".yaml", fmt.Sprintf(set, "Image", "mirror", name))
	w.write("delete-"+name+".yaml", fmt.Sprintf(set, "DeleteImage", "delete", name))
}

// additional writes an image set of additional images.
func (w *sharedWorld) additional(file, kind string, images ...string) {
	w.Helper()
	key := map[string]string{"Image": "mirror", "DeleteImage": "delete"}[kind]
	text := "kind: " + kind + "SetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n" + key + ":\n" +
		"  additionalImages:\n"
	for _, i := range images {
		text += "  - name: " + w.sources[i] + "\n"
	}
	w.write(file, text)
}

// expect runs a command line and compares the status and a part of what is printed.
func (w *sharedWorld) expect(line string, status int, parts ...string) result {
	w.Helper()
	r := w.run(line)
	if r.status != status {
		w.Errorf("%s: status %d, expected %d\n%s%s", line, r.status, status, r.stdout, r.stderr)
	}
	for _, part := range parts {
		if !strings.Contains(r.stdout+r.stderr, part) {
			w.Errorf("%s: nothing has %q\n%s%s", line, part, r.stdout, r.stderr)
		}
	}
	return r
}

// there compares what the target has: REPOSITORY and a tag or digest, or - before those that are to be gone.
func (w *sharedWorld) there(names ...string) {
	w.Helper()
	for _, name := range names {
		name, gone := strings.CutPrefix(name, "-")
		repository, of, _ := strings.Cut(name, " ")
		if has := w.registry.Manifest("olm/"+repository, of) != nil; has == gone {
			w.Errorf("%s: there: %t", name, has)
		}
	}
}

const listA = "mirror delete -c delete-a.yaml --workspace w --list list.yaml TARGET"

// Deleting takes nothing that something else at the target needs, whatever it is called there.
func TestMirrorDeleteKeepsWhatOthersNeed(t *testing.T) {
	amd64 := func(w *sharedWorld) string { return "acme/multi " + w.amd64.String() }
	arm64 := func(w *sharedWorld) string { return "acme/multi " + w.arm64.String() }
	for name, test := range map[string]func(w *sharedWorld){
		"one digest by two tags, and an entry of an index": func(w *sharedWorld) {
			w.catalog("a", "v1", "amd64", "v3")
			w.catalog("b", "v2", "index")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.expect(listA+" --delete-signatures", 0, "2 images to delete, 3 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0, "2 images: 2 deleted")
			w.there("acme/img v2", "acme/img v1", "-acme/img v3", "-a/bundle v1", amd64(w), arm64(w),
				"acme/multi "+w.index.String(), "acme/multi "+sigTag(w.amd64), "acme/multi "+sigTag(w.arm64))
			w.expect("mirror verify TARGET -c b.yaml", 0, "all is there")
		},
		"an index is deleted whose entry is needed": func(w *sharedWorld) {
			w.catalog("a", "index")
			w.catalog("b", "amd64")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.expect(listA+" --delete-signatures", 0)
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there(amd64(w), "-"+arm64(w), "-acme/multi "+w.index.String(), "acme/multi "+sigTag(w.amd64),
				"-acme/multi "+sigTag(w.arm64))
		},
		"an index in an index": func(w *sharedWorld) {
			w.catalog("a", "amd64", "index")
			w.catalog("b", "nested")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.expect(listA+" --delete-signatures", 0, "1 image to delete")
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there(amd64(w), arm64(w), "acme/multi "+w.index.String(), "acme/multi "+sigTag(w.amd64))
		},
		"another repository with the same digest needs nothing": func(w *sharedWorld) {
			w.catalog("a", "img")
			w.catalog("b", "elsewhere")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.expect(listA, 0, "2 images to delete, 0 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("-acme/img "+w.img.String(), "other/img "+w.img.String())
		},
		"what came to be needed after the list was made": func(w *sharedWorld) {
			w.catalog("a", "v1", "amd64")
			w.catalog("b", "v2", "index")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect(listA, 0, "3 images to delete, 0 kept")
			w.expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			dry := w.expect("mirror delete --list list.yaml --dry-run -o json TARGET", 4)
			w.expect("mirror delete --list list.yaml TARGET", 4, "acme/img:v1 is not deleted: ", "bundle b.v1.0.0 in ",
				"1 deleted, 0 were gone, 2 kept")
			w.there("acme/img v2", amd64(w), "-a/bundle v1")
			var of struct{ Images []struct{ Status string } }
			if err := json.Unmarshal([]byte(dry.stdout), &of); err != nil || fmt.Sprint(of) !=
				"{[{planned} {kept} {kept}]}" {
				w.Errorf("%v %v", of, err)
			}
		},
		"an image that was mirrored by itself after the list was made": func(w *sharedWorld) {
			w.catalog("a", "v1", "v3")
			w.additional("more.yaml", "Image", "v3")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect(listA, 0, "3 images to delete, 0 kept")
			w.expect("mirror run -c more.yaml --workspace w TARGET", 0)
			w.expect("mirror delete --list list.yaml TARGET", 4, "acme/img:v3 is not deleted: it was mirrored as an additional image")
			w.there("acme/img v3", "-acme/img v1")
		},
		"the catalog itself is mirrored again after the list was made": func(w *sharedWorld) {
			w.catalog("a", "v1")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect(listA, 0)
			w.catalog("a", "v1", "v3")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror delete --list list.yaml TARGET", 4)
			w.there("acme/img v1", "a/bundle v1")
		},
		"a tag that was moved after the list was made": func(w *sharedWorld) {
			w.catalog("a", "v3")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect(listA, 0)
			moved := w.registry.AddImage(w, "olm/acme/img", "v3", testregistry.Image{Layers: []map[string]string{{"x": "y"}}})
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("acme/img "+moved.String(), "acme/img v3", "-acme/img "+w.other.String())
		},
		"catalogs of another team, under another name": func(w *sharedWorld) {
			w.catalog("a", "v1")
			w.catalog("b", "v2")
			w.write("b.yaml", readFile(w.T, filepath.Join(w.dir, "b.yaml"))+"    targetCatalog: team/things\n    targetTag: x\n")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			w.expect(listA, 0, "1 image to delete, 1 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("acme/img v2")
		},
		"a catalog for other machines": func(w *sharedWorld) {
			w.catalog("a", "v1")
			w.catalog("b", "v2")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			one := w.registry.Manifest("olm/b/catalog", "v1")
			index, err := json.Marshal(v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{{
				MediaType: v1.MediaTypeImageManifest, Digest: digest.FromBytes(one), Size: int64(len(one)),
				Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}}})
			if err != nil {
				w.Fatal(err)
			}
			w.registry.AddManifest("olm/b/catalog", "v1", v1.MediaTypeImageIndex, index)
			w.expect(listA, 0, "1 image to delete, 1 kept")
		},
		"a catalog that another catalog names as an image": func(w *sharedWorld) {
			w.catalog("a", "v1")
			w.catalog("b", "v1")
			w.catalog("c", mirrortest.Host+"/b/catalog:v1")
			w.expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c c.yaml --workspace w TARGET", 0)
			w.expect(listA, 0, "1 image to delete, 1 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("acme/img v1", "-a/bundle v1")
		},
		"a catalog after an attestation in its index": func(w *sharedWorld) {
			w.catalog("a", "v1")
			w.catalog("b", "v1")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			entry := func(of, arch string) v1.Descriptor {
				text := w.registry.Manifest("olm/b/catalog", of)
				return v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromBytes(text),
					Size: int64(len(text)), Platform: &v1.Platform{OS: arch, Architecture: arch}}
			}
			catalog := entry("v1", "linux")
			catalog.Platform.Architecture = "amd64"
			w.registry.AddImage(w, "olm/b/catalog", "attested", testregistry.Image{Layers: []map[string]string{{"x": "y"}}})
			attested := entry("attested", "unknown")
			w.registry.Untag("olm/b/catalog", "attested")
			w.registry.AddIndex(w, "olm/b/catalog", "v1", nil, nil, attested, catalog)
			w.expect(listA, 0, "1 image to delete, 1 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("acme/img v1", "-a/bundle v1")
		},
		"catalogs that are asked for as additional images": func(w *sharedWorld) {
			w.catalog("b", "v1")
			w.catalog("c", "v1")
			w.sources["b"], w.sources["c"] = mirrortest.Host+"/b/catalog:v1", mirrortest.Host+"/c/catalog:v1"
			w.additional("more.yaml", "Image", "v3")
			w.additional("delete-a.yaml", "DeleteImage", "b", "c", "v3")
			w.expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c c.yaml --workspace w2 TARGET", 0)
			w.expect("mirror run -c more.yaml --workspace w TARGET", 0)
			w.expect(listA, 0, "1 image to delete, 2 kept")
			if text := readFile(w.T, filepath.Join(w.dir, "list.yaml")); strings.Count(text, "reason: it is a catalog") != 2 {
				w.Errorf("%s", text)
			}
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("b/catalog v1", "c/catalog v1", "-acme/img v3")
		},
		"a catalog by its digest, whose tag has the list of what is attached to it": func(w *sharedWorld) {
			w.catalog("a", "v1")
			w.catalog("b", "v1")
			d := digest.FromBytes(w.source.Manifest("b/catalog", "v1"))
			for _, file := range []string{"b.yaml", "delete-b.yaml"} {
				w.write(file, strings.ReplaceAll(readFile(w.T, filepath.Join(w.dir, file)), "catalog:v1", "catalog@"+d.String()))
			}
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			w.registry.AddIndex(w, "olm/b/catalog", strings.Replace(d.String(), ":", "-", 1), nil,
				[]testregistry.Image{{Layers: []map[string]string{{"x": "y"}}}})
			w.expect(listA, 0, "1 image to delete, 1 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("acme/img v1", "-a/bundle v1", "b/catalog "+d.String())
			w.expect("mirror verify TARGET -c b.yaml", 0, "all is there")
			w.expect("mirror verify TARGET --workspace w2", 0, "all is there")
			w.expect("mirror delete -c delete-b.yaml --workspace w2 --list list-b.yaml TARGET", 0, "1 image to delete, 1 kept")
		},
		"a tag that no known catalog needs": func(w *sharedWorld) {
			w.catalog("a", "v1", "index")
			w.additional("more.yaml", "Image", "v2", "amd64")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c more.yaml --workspace w2 TARGET", 0)
			w.expect(listA, 0, "2 images to delete, 1 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("acme/img v2", amd64(w), "-"+arm64(w))
		},
		"a catalog that names the mirror's images": func(w *sharedWorld) {
			w.catalog("a", "img")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.catalog("own", w.registry.Host()+"/olm/acme/img@"+w.img.String())
			w.expect("copy "+mirrortest.Host+"/own/catalog:v1 "+w.registry.Host()+"/teams/own:v1", 0)
			w.expect(listA, 0, "1 image to delete, 1 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("acme/img " + w.img.String())
		},
		"paths of few components": func(w *sharedWorld) {
			w.catalog("a", "v1", "amd64")
			w.catalog("b", "v2", "index")
			w.expect("mirror run -c a.yaml --workspace w TARGET --max-nested-paths 2", 0)
			w.expect("mirror run -c b.yaml --workspace w2 TARGET --max-nested-paths 2", 0)
			w.expect(listA+" --max-nested-paths 2", 0, "1 image to delete, 2 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("acme-img v2", "acme-multi "+w.amd64.String())
		},
		"a repository of another namespace needs nothing": func(w *sharedWorld) {
			w.catalog("a", "v1", "img")
			w.catalog("b", "v2", "img")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c b.yaml --workspace w docker://"+w.registry.Host()+"/second", 0)
			w.expect("mirror run -c b.yaml --workspace w2 docker://"+w.registry.Host()+"/third", 0)
			w.expect(listA, 0, "3 images to delete, 0 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("-acme/img "+w.img.String(), "-acme/img v1")
			if w.registry.Manifest("second/acme/img", "v2") == nil || w.registry.Manifest("third/acme/img", "v2") == nil {
				w.Error("images of another namespace are gone")
			}
		},
		"what is attached by a subject": func(w *sharedWorld) {
			subject := fmt.Sprintf(`,"subject":{"mediaType":%q,"digest":%q,"size":%d}}`, v1.MediaTypeImageManifest, w.img,
				len(w.source.Manifest("acme/img", "v1")))
			text := strings.TrimSuffix(string(w.source.Manifest("acme/img", "v3")), "}") + subject
			d := w.source.AddManifest("acme/img", "doc", v1.MediaTypeImageManifest, []byte(text))
			w.sources["doc"] = mirrortest.Host + "/acme/img@" + d.String()
			about := fmt.Sprintf(`,"annotations":{"a":"b"},"subject":{"mediaType":%q,"digest":%q,"size":%d}}`,
				v1.MediaTypeImageManifest, d, len(text+"}"))
			second := w.source.AddManifest("acme/img", "about", v1.MediaTypeImageManifest,
				[]byte(strings.TrimSuffix(string(w.source.Manifest("acme/img", "v3")), "}")+about))
			w.sources["about"] = mirrortest.Host + "/acme/img@" + second.String()
			w.catalog("b", "v2")
			w.additional("delete-a.yaml", "DeleteImage", "doc", "about", "v3")
			w.additional("more.yaml", "Image", "doc", "about", "v3")
			w.expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c more.yaml --workspace w TARGET", 0)
			w.expect(listA, 0, "1 image to delete, 2 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("acme/img "+d.String(), "acme/img "+second.String(), "-acme/img v3")
		},
		"only the record knows, under another name of the registry": func(w *sharedWorld) {
			w.catalog("a", "v1", "v3")
			w.additional("more.yaml", "Image", "v3")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c more.yaml --workspace w TARGET", 0)
			w.registry.SetRules(testregistry.Rules{NoCatalog: true})
			w.target = strings.Replace(w.target, "127.0.0.1", "localhost", 1)
			w.expect(listA, 0, "2 images to delete, 1 kept", "does not list its repositories")
			w.target = strings.Replace(w.target, "localhost", "127.0.0.1", 1)
			w.expect("mirror delete --list list.yaml TARGET", 0)
			w.there("acme/img v3", "-acme/img v1")
		},
		"shared images on request": func(w *sharedWorld) {
			w.catalog("a", "v1", "amd64")
			w.catalog("b", "v2", "index")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.expect(listA+" --shared delete", 0, "3 images to delete, 0 kept")
			w.expect("mirror delete --list list.yaml TARGET", 0, "3 deleted")
			w.there("-acme/img v2", "-"+amd64(w))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newSharedWorld(t))
		})
	}
}

// Without a record of what was mirrored nothing is deleted until that is wanted; then the catalogs and tags of the
// registry decide, as they do where the program is started as oc-mirror.
func TestMirrorDeleteWithoutRecord(t *testing.T) {
	w := newSharedWorld(t)
	w.catalog("a", "v1")
	w.catalog("b", "v2")
	w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
	w.expect("mirror run -c b.yaml --workspace w TARGET", 0)
	const list = "mirror delete -c delete-a.yaml --list list.yaml TARGET"
	w.expect(list, 1, "no record of what was mirrored to ", "--without-record")
	w.expect(list+" --workspace none", 1, "no record of what was mirrored to ")
	w.expect(list+" --workspace w/TARGET", 1)
	w.expect(list+" --without-record", 0, "1 image to delete, 1 kept", "there is no record of what was mirrored",
		"--list list.yaml --without-record docker://")
	w.expect("mirror delete --list list.yaml TARGET", 1, "no record of what was mirrored to ")
	if err := os.Rename(filepath.Join(w.dir, "w"), filepath.Join(w.dir, "moved")); err != nil {
		t.Fatal(err)
	}
	w.expect("mirror delete --list list.yaml TARGET", 1, "no record of what was mirrored to ")
	w.there("a/bundle v1", "acme/img v2")
	w.expect("mirror delete --list list.yaml --workspace moved --dry-run TARGET", 0)
	w.expect("mirror delete --list list.yaml --without-record --dry-run TARGET", 0)
	oc := "--dest-tls-verify=false --src-tls-verify=false TARGET"
	w.expect("oc-mirror delete --generate -c delete-a.yaml --workspace file://oc "+oc, 0, "there is no record")
	file := "oc/working-dir/delete/delete-images.yaml"
	if text := readFile(t, filepath.Join(w.dir, file)); !strings.Contains(text, "keptItems:") {
		t.Errorf("%s", text)
	}
	w.expect("oc-mirror delete --delete-yaml-file "+file+" "+oc, 0, "there is no record",
		"1 / 1 operator images deleted successfully")
	w.there("-a/bundle v1", "acme/img v2")
	// The list as oc-mirror writes it: others need a part of it.
	w.expect("mirror run -c a.yaml --workspace moved TARGET", 0)
	var foreign strings.Builder
	foreign.WriteString("apiVersion: mirror.openshift.io/v2alpha1\nkind: DeleteImageList\nitems:\n")
	for _, i := range []string{"a/bundle:v1 operatorBundle", "acme/img:v1 operatorRelatedImage"} {
		image, kind, _ := strings.Cut(i, " ")
		fmt.Fprintf(&foreign, "- imageName: docker://%s/%s\n  imageReference: %s/%s\n  type: %s\n", mirrortest.Host, image,
			w.target, image, kind)
	}
	w.write("foreign.yaml", foreign.String())
	w.expect("oc-mirror delete --delete-yaml-file foreign.yaml "+oc, 4, "1 / 2 operator images deleted successfully",
		"acme/img:v1 is not deleted: ")
	w.there("-a/bundle v1", "acme/img v2")
}

// What a catalog needs that cannot be read is not known: nothing is deleted.
func TestMirrorDeleteBesideUnreadableCatalogs(t *testing.T) {
	for name, broken := range map[string]func(w *sharedWorld, q *http.Request) int{
		"no list of tags": func(w *sharedWorld, q *http.Request) int {
			return map[bool]int{true: 500}[q.URL.Path == "/v2/olm/b/catalog/tags/list"]
		},
		"a refused list of tags": func(w *sharedWorld, q *http.Request) int {
			return map[bool]int{true: 403}[q.URL.Path == "/v2/olm/b/catalog/tags/list"]
		},
		"a layer that is gone": func(w *sharedWorld, q *http.Request) int {
			var m v1.Manifest
			if err := json.Unmarshal(w.source.Manifest("b/catalog", "v1"), &m); err != nil {
				w.Error(err)
			}
			return map[bool]int{true: 404}[q.URL.Path == "/v2/olm/b/catalog/blobs/"+m.Layers[0].Digest.String()]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSharedWorld(t)
			w.catalog("a", "v1", "v3")
			w.catalog("b", "v2")
			w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.expect(listA, 0)
			w.expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			before := w.registry.Digests("olm/acme/img")
			w.registry.Interfere(func(a http.ResponseWriter, q *http.Request) bool {
				status := broken(w, q)
				if status != 0 {
					a.WriteHeader(status)
				}
				return status != 0
			})
			for _, line := range []string{listA, "mirror delete --list list.yaml TARGET",
				"oc-mirror delete --delete-yaml-file list.yaml --dest-tls-verify=false --src-tls-verify=false " +
					"--retry-times 0 TARGET"} {
				if !strings.HasPrefix(line, "oc-") {
					line += " --retries 0"
				}
				w.expect(line, 1, "olm/b/catalog")
			}
			if after := w.registry.Digests("olm/acme/img"); !slices.Equal(before, after) {
				t.Errorf("%q, afterwards %q", before, after)
			}
		})
	}
}

// A workspace that was carried here names no host to connect to: a record that does is an error, and one of another
// registry says nothing here.
func TestMirrorDeleteAsksOnlyTheTarget(t *testing.T) {
	w := newSharedWorld(t)
	w.catalog("a", "v1")
	w.expect("mirror run -c a.yaml --workspace w TARGET", 0)
	elsewhere := testregistry.New(t)
	for _, name := range []string{w.registry.Host(), elsewhere.Host()} {
		host := strings.Replace(name, "127.0.0.1", "localhost", 1)
		text, err := json.Marshal(map[string]any{"version": 1, "target": host + "/olm", "catalogs": []map[string]string{{
			"source": "x/y:v1", "destination": "docker://" + elsewhere.Host() + "/x/y:v1"}}})
		if err != nil {
			t.Fatal(err)
		}
		sum := digest.FromString(host + "/olm").Encoded()[:16]
		w.write("w/working-dir/.mirrored-"+sum+".json", string(text))
	}
	w.expect(listA, 1, "which is not at "+w.registry.Host())
	if q := elsewhere.Requests(); len(q) > 0 {
		t.Errorf("%q", q)
	}
}
