package mirror_test

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
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Deleting takes nothing that something else at the target needs, whatever it is called there.
func TestMirrorDeleteKeepsWhatOthersNeed(t *testing.T) {
	amd64 := func(w *clitest.SharedWorld) string { return "acme/multi " + w.Amd64.String() }
	arm64 := func(w *clitest.SharedWorld) string { return "acme/multi " + w.Arm64.String() }
	for name, test := range map[string]func(w *clitest.SharedWorld){
		"one digest by two tags, and an entry of an index": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1", "amd64", "v3")
			w.Catalog("b", "v2", "index")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA+" --delete-signatures", 0, "2 images to delete, 3 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0, "2 images: 2 deleted")
			w.There("acme/img v2", "acme/img v1", "-acme/img v3", "-a/bundle v1", amd64(w), arm64(w),
				"acme/multi "+w.Index.String(), "acme/multi "+clitest.SigTag(w.Amd64), "acme/multi "+clitest.SigTag(w.Arm64))
			w.Expect("mirror verify TARGET -c b.yaml", 0, "all is there")
		},
		"an index is deleted whose entry is needed": func(w *clitest.SharedWorld) {
			w.Catalog("a", "index")
			w.Catalog("b", "amd64")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA+" --delete-signatures", 0)
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There(amd64(w), "-"+arm64(w), "-acme/multi "+w.Index.String(), "acme/multi "+clitest.SigTag(w.Amd64),
				"-acme/multi "+clitest.SigTag(w.Arm64))
		},
		"an index in an index": func(w *clitest.SharedWorld) {
			w.Catalog("a", "amd64", "index")
			w.Catalog("b", "nested")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA+" --delete-signatures", 0, "1 image to delete")
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There(amd64(w), arm64(w), "acme/multi "+w.Index.String(), "acme/multi "+clitest.SigTag(w.Amd64))
		},
		"another repository with the same digest needs nothing": func(w *clitest.SharedWorld) {
			w.Catalog("a", "img")
			w.Catalog("b", "elsewhere")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA, 0, "2 images to delete, 0 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("-acme/img "+w.Img.String(), "other/img "+w.Img.String())
		},
		"what came to be needed after the list was made": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1", "amd64")
			w.Catalog("b", "v2", "index")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA, 0, "3 images to delete, 0 kept")
			w.Expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			dry := w.Expect("mirror delete --list list.yaml --dry-run -o json TARGET", 4)
			w.Expect("mirror delete --list list.yaml TARGET", 4, "acme/img:v1 is not deleted: ", "bundle b.v1.0.0 in ",
				"1 deleted, 0 were gone, 2 kept")
			w.There("acme/img v2", amd64(w), "-a/bundle v1")
			var of struct{ Images []struct{ Status string } }
			if err := json.Unmarshal([]byte(dry.Stdout), &of); err != nil || fmt.Sprint(of) !=
				"{[{planned} {kept} {kept}]}" {
				w.Errorf("%v %v", of, err)
			}
		},
		"an image that was mirrored by itself after the list was made": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1", "v3")
			w.Additional("more.yaml", "Image", "v3")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA, 0, "3 images to delete, 0 kept")
			w.Expect("mirror run -c more.yaml --workspace w TARGET", 0)
			w.Expect("mirror delete --list list.yaml TARGET", 4, "acme/img:v3 is not deleted: it was mirrored as an additional image")
			w.There("acme/img v3", "-acme/img v1")
		},
		"the catalog itself is mirrored again after the list was made": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA, 0)
			w.Catalog("a", "v1", "v3")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror delete --list list.yaml TARGET", 4)
			w.There("acme/img v1", "a/bundle v1")
		},
		"a tag that was moved after the list was made": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v3")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA, 0)
			moved := w.Registry.AddImage(w, "olm/acme/img", "v3", testregistry.Image{Layers: []map[string]string{{"x": "y"}}})
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("acme/img "+moved.String(), "acme/img v3", "-acme/img "+w.Other.String())
		},
		"catalogs of another team, under another name": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1")
			w.Catalog("b", "v2")
			w.Write("b.yaml", clitest.ReadFile(w.T, filepath.Join(w.Dir, "b.yaml"))+"    targetCatalog: team/things\n    targetTag: x\n")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			w.Expect(clitest.ListA, 0, "1 image to delete, 1 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("acme/img v2")
		},
		"a catalog for other machines": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1")
			w.Catalog("b", "v2")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			one := w.Registry.Manifest("olm/b/catalog", "v1")
			index, err := json.Marshal(v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{{
				MediaType: v1.MediaTypeImageManifest, Digest: digest.FromBytes(one), Size: int64(len(one)),
				Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}}})
			if err != nil {
				w.Fatal(err)
			}
			w.Registry.AddManifest("olm/b/catalog", "v1", v1.MediaTypeImageIndex, index)
			w.Expect(clitest.ListA, 0, "1 image to delete, 1 kept")
		},
		"a catalog that another catalog names as an image": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1")
			w.Catalog("b", "v1")
			w.Catalog("c", mirrortest.Host+"/b/catalog:v1")
			w.Expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c c.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA, 0, "1 image to delete, 1 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("acme/img v1", "-a/bundle v1")
		},
		"a catalog after an attestation in its index": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1")
			w.Catalog("b", "v1")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			entry := func(of, arch string) v1.Descriptor {
				text := w.Registry.Manifest("olm/b/catalog", of)
				return v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromBytes(text),
					Size: int64(len(text)), Platform: &v1.Platform{OS: arch, Architecture: arch}}
			}
			catalog := entry("v1", "linux")
			catalog.Platform.Architecture = "amd64"
			w.Registry.AddImage(w, "olm/b/catalog", "attested", testregistry.Image{Layers: []map[string]string{{"x": "y"}}})
			attested := entry("attested", "unknown")
			w.Registry.Untag("olm/b/catalog", "attested")
			w.Registry.AddIndex(w, "olm/b/catalog", "v1", nil, nil, attested, catalog)
			w.Expect(clitest.ListA, 0, "1 image to delete, 1 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("acme/img v1", "-a/bundle v1")
		},
		"catalogs that are asked for as additional images": func(w *clitest.SharedWorld) {
			w.Catalog("b", "v1")
			w.Catalog("c", "v1")
			w.Sources["b"], w.Sources["c"] = mirrortest.Host+"/b/catalog:v1", mirrortest.Host+"/c/catalog:v1"
			w.Additional("more.yaml", "Image", "v3")
			w.Additional("delete-a.yaml", "DeleteImage", "b", "c", "v3")
			w.Expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c c.yaml --workspace w2 TARGET", 0)
			w.Expect("mirror run -c more.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA, 0, "1 image to delete, 2 kept")
			if text := clitest.ReadFile(w.T, filepath.Join(w.Dir, "list.yaml")); strings.Count(text, "reason: it is a catalog") != 2 {
				w.Errorf("%s", text)
			}
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("b/catalog v1", "c/catalog v1", "-acme/img v3")
		},
		"a catalog by its digest, whose tag has the list of what is attached to it": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1")
			w.Catalog("b", "v1")
			d := digest.FromBytes(w.Source.Manifest("b/catalog", "v1"))
			for _, file := range []string{"b.yaml", "delete-b.yaml"} {
				w.Write(file, strings.ReplaceAll(clitest.ReadFile(w.T, filepath.Join(w.Dir, file)), "catalog:v1", "catalog@"+d.String()))
			}
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			w.Registry.AddIndex(w, "olm/b/catalog", strings.Replace(d.String(), ":", "-", 1), nil,
				[]testregistry.Image{{Layers: []map[string]string{{"x": "y"}}}})
			w.Expect(clitest.ListA, 0, "1 image to delete, 1 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("acme/img v1", "-a/bundle v1", "b/catalog "+d.String())
			w.Expect("mirror verify TARGET -c b.yaml", 0, "all is there")
			w.Expect("mirror verify TARGET --workspace w2", 0, "all is there")
			w.Expect("mirror delete -c delete-b.yaml --workspace w2 --list list-b.yaml TARGET", 0, "1 image to delete, 1 kept")
		},
		"a tag that no known catalog needs": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1", "index")
			w.Additional("more.yaml", "Image", "v2", "amd64")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c more.yaml --workspace w2 TARGET", 0)
			w.Expect(clitest.ListA, 0, "2 images to delete, 1 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("acme/img v2", amd64(w), "-"+arm64(w))
		},
		"a catalog that names the mirror's images": func(w *clitest.SharedWorld) {
			w.Catalog("a", "img")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Catalog("own", w.Registry.Host()+"/olm/acme/img@"+w.Img.String())
			w.Expect("copy "+mirrortest.Host+"/own/catalog:v1 "+w.Registry.Host()+"/teams/own:v1", 0)
			w.Expect(clitest.ListA, 0, "1 image to delete, 1 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("acme/img " + w.Img.String())
		},
		"paths of few components": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1", "amd64")
			w.Catalog("b", "v2", "index")
			w.Expect("mirror run -c a.yaml --workspace w TARGET --max-nested-paths 2", 0)
			w.Expect("mirror run -c b.yaml --workspace w2 TARGET --max-nested-paths 2", 0)
			w.Expect(clitest.ListA+" --max-nested-paths 2", 0, "1 image to delete, 2 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("acme-img v2", "acme-multi "+w.Amd64.String())
		},
		"a repository of another namespace needs nothing": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1", "img")
			w.Catalog("b", "v2", "img")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c b.yaml --workspace w docker://"+w.Registry.Host()+"/second", 0)
			w.Expect("mirror run -c b.yaml --workspace w2 docker://"+w.Registry.Host()+"/third", 0)
			w.Expect(clitest.ListA, 0, "3 images to delete, 0 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("-acme/img "+w.Img.String(), "-acme/img v1")
			if w.Registry.Manifest("second/acme/img", "v2") == nil || w.Registry.Manifest("third/acme/img", "v2") == nil {
				w.Error("images of another namespace are gone")
			}
		},
		"what is attached by a subject": func(w *clitest.SharedWorld) {
			subject := fmt.Sprintf(`,"subject":{"mediaType":%q,"digest":%q,"size":%d}}`, v1.MediaTypeImageManifest, w.Img,
				len(w.Source.Manifest("acme/img", "v1")))
			text := strings.TrimSuffix(string(w.Source.Manifest("acme/img", "v3")), "}") + subject
			d := w.Source.AddManifest("acme/img", "doc", v1.MediaTypeImageManifest, []byte(text))
			w.Sources["doc"] = mirrortest.Host + "/acme/img@" + d.String()
			about := fmt.Sprintf(`,"annotations":{"a":"b"},"subject":{"mediaType":%q,"digest":%q,"size":%d}}`,
				v1.MediaTypeImageManifest, d, len(text+"}"))
			second := w.Source.AddManifest("acme/img", "about", v1.MediaTypeImageManifest,
				[]byte(strings.TrimSuffix(string(w.Source.Manifest("acme/img", "v3")), "}")+about))
			w.Sources["about"] = mirrortest.Host + "/acme/img@" + second.String()
			w.Catalog("b", "v2")
			w.Additional("delete-a.yaml", "DeleteImage", "doc", "about", "v3")
			w.Additional("more.yaml", "Image", "doc", "about", "v3")
			w.Expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c more.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA, 0, "1 image to delete, 2 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("acme/img "+d.String(), "acme/img "+second.String(), "-acme/img v3")
		},
		"only the record knows, under another name of the registry": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1", "v3")
			w.Additional("more.yaml", "Image", "v3")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c more.yaml --workspace w TARGET", 0)
			w.Registry.SetRules(testregistry.Rules{NoCatalog: true})
			w.Target = strings.Replace(w.Target, "127.0.0.1", "localhost", 1)
			w.Expect(clitest.ListA, 0, "2 images to delete, 1 kept", "does not list its repositories")
			w.Target = strings.Replace(w.Target, "localhost", "127.0.0.1", 1)
			w.Expect("mirror delete --list list.yaml TARGET", 0)
			w.There("acme/img v3", "-acme/img v1")
		},
		"shared images on request": func(w *clitest.SharedWorld) {
			w.Catalog("a", "v1", "amd64")
			w.Catalog("b", "v2", "index")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c b.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA+" --shared delete", 0, "3 images to delete, 0 kept")
			w.Expect("mirror delete --list list.yaml TARGET", 0, "3 deleted")
			w.There("-acme/img v2", "-"+amd64(w))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(clitest.NewSharedWorld(t))
		})
	}
}

// Without a record of what was mirrored nothing is deleted until that is wanted; then the catalogs and tags of the
// registry decide, as they do where the program is started as oc-mirror.
func TestMirrorDeleteWithoutRecord(t *testing.T) {
	w := clitest.NewSharedWorld(t)
	w.Catalog("a", "v1")
	w.Catalog("b", "v2")
	w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
	w.Expect("mirror run -c b.yaml --workspace w TARGET", 0)
	const list = "mirror delete -c delete-a.yaml --list list.yaml TARGET"
	w.Expect(list, 1, "no record of what was mirrored to ", "--without-record")
	w.Expect(list+" --workspace none", 1, "no record of what was mirrored to ")
	w.Expect(list+" --workspace w/TARGET", 1)
	w.Expect(list+" --without-record", 0, "1 image to delete, 1 kept", "there is no record of what was mirrored",
		"--list list.yaml --without-record docker://")
	w.Expect("mirror delete --list list.yaml TARGET", 1, "no record of what was mirrored to ")
	if err := os.Rename(filepath.Join(w.Dir, "w"), filepath.Join(w.Dir, "moved")); err != nil {
		t.Fatal(err)
	}
	w.Expect("mirror delete --list list.yaml TARGET", 1, "no record of what was mirrored to ")
	w.There("a/bundle v1", "acme/img v2")
	w.Expect("mirror delete --list list.yaml --workspace moved --dry-run TARGET", 0)
	w.Expect("mirror delete --list list.yaml --without-record --dry-run TARGET", 0)
	oc := "--dest-tls-verify=false --src-tls-verify=false TARGET"
	w.Expect("oc-mirror delete --generate -c delete-a.yaml --workspace file://oc "+oc, 0, "there is no record")
	file := "oc/working-dir/delete/delete-images.yaml"
	if text := clitest.ReadFile(t, filepath.Join(w.Dir, file)); !strings.Contains(text, "keptItems:") {
		t.Errorf("%s", text)
	}
	w.Expect("oc-mirror delete --delete-yaml-file "+file+" "+oc, 0, "there is no record",
		"1 / 1 operator images deleted successfully")
	w.There("-a/bundle v1", "acme/img v2")
	// The list as oc-mirror writes it: others need a part of it.
	w.Expect("mirror run -c a.yaml --workspace moved TARGET", 0)
	var foreign strings.Builder
	foreign.WriteString("apiVersion: mirror.openshift.io/v2alpha1\nkind: DeleteImageList\nitems:\n")
	for _, i := range []string{"a/bundle:v1 operatorBundle", "acme/img:v1 operatorRelatedImage"} {
		image, kind, _ := strings.Cut(i, " ")
		fmt.Fprintf(&foreign, "- imageName: docker://%s/%s\n  imageReference: %s/%s\n  type: %s\n", mirrortest.Host, image,
			w.Target, image, kind)
	}
	w.Write("foreign.yaml", foreign.String())
	w.Expect("oc-mirror delete --delete-yaml-file foreign.yaml "+oc, 4, "1 / 2 operator images deleted successfully",
		"acme/img:v1 is not deleted: ")
	w.There("-a/bundle v1", "acme/img v2")
}

// What a catalog needs that cannot be read is not known: nothing is deleted.
func TestMirrorDeleteBesideUnreadableCatalogs(t *testing.T) {
	for name, broken := range map[string]func(w *clitest.SharedWorld, q *http.Request) int{
		"no list of tags": func(w *clitest.SharedWorld, q *http.Request) int {
			return map[bool]int{true: 500}[q.URL.Path == "/v2/olm/b/catalog/tags/list"]
		},
		"a refused list of tags": func(w *clitest.SharedWorld, q *http.Request) int {
			return map[bool]int{true: 403}[q.URL.Path == "/v2/olm/b/catalog/tags/list"]
		},
		"a layer that is gone": func(w *clitest.SharedWorld, q *http.Request) int {
			var m v1.Manifest
			if err := json.Unmarshal(w.Source.Manifest("b/catalog", "v1"), &m); err != nil {
				w.Error(err)
			}
			return map[bool]int{true: 404}[q.URL.Path == "/v2/olm/b/catalog/blobs/"+m.Layers[0].Digest.String()]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clitest.NewSharedWorld(t)
			w.Catalog("a", "v1", "v3")
			w.Catalog("b", "v2")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect(clitest.ListA, 0)
			w.Expect("mirror run -c b.yaml --workspace w2 TARGET", 0)
			before := w.Registry.Digests("olm/acme/img")
			w.Registry.Interfere(func(a http.ResponseWriter, q *http.Request) bool {
				status := broken(w, q)
				if status != 0 {
					a.WriteHeader(status)
				}
				return status != 0
			})
			for _, line := range []string{clitest.ListA, "mirror delete --list list.yaml TARGET",
				"oc-mirror delete --delete-yaml-file list.yaml --dest-tls-verify=false --src-tls-verify=false " +
					"--retry-times 0 TARGET"} {
				if !strings.HasPrefix(line, "oc-") {
					line += " --retries 0"
				}
				w.Expect(line, 1, "olm/b/catalog")
			}
			if after := w.Registry.Digests("olm/acme/img"); !slices.Equal(before, after) {
				t.Errorf("%q, afterwards %q", before, after)
			}
		})
	}
}

// A workspace that was carried here names no host to connect to: a record that does is an error, and one of another
// registry says nothing here.
func TestMirrorDeleteAsksOnlyTheTarget(t *testing.T) {
	w := clitest.NewSharedWorld(t)
	w.Catalog("a", "v1")
	w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
	elsewhere := testregistry.New(t)
	for _, name := range []string{w.Registry.Host(), elsewhere.Host()} {
		host := strings.Replace(name, "127.0.0.1", "localhost", 1)
		text, err := json.Marshal(map[string]any{"version": 1, "target": host + "/olm", "catalogs": []map[string]string{{
			"source": "x/y:v1", "destination": "docker://" + elsewhere.Host() + "/x/y:v1"}}})
		if err != nil {
			t.Fatal(err)
		}
		sum := digest.FromString(host + "/olm").Encoded()[:16]
		w.Write("w/working-dir/.mirrored-"+sum+".json", string(text))
	}
	w.Expect(clitest.ListA, 1, "which is not at "+w.Registry.Host())
	if q := elsewhere.Requests(); len(q) > 0 {
		t.Errorf("%q", q)
	}
}
