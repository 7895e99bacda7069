package clitest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// SharedWorld is a source whose catalogs a and b name the same images by other names, and a target.
//
//	acme/img    v1 and v2 are one image, v3 is another
//	acme/multi  an index of amd64 and arm64; amd64 and arm64 have signatures by tag; nested is an index of the index
type SharedWorld struct {
	*MirrorWorld
	Source              *testregistry.Registry
	Img, Index, nested  digest.Digest
	Amd64, Arm64, Other digest.Digest
	Sources             map[string]string // what the tests call it, and how catalogs name it
}

func NewSharedWorld(t *testing.T) *SharedWorld {
	w := &SharedWorld{Source: testregistry.New(t)}
	target := testregistry.New(t)
	target.Separate(true)
	w.MirrorWorld = &MirrorWorld{t, t.TempDir(), w.Source.RegistriesConf(t, mirrortest.Host),
		"docker://" + target.Host() + "/olm", target}
	of := func(arch, text string) testregistry.Image {
		return testregistry.Image{Platform: v1.Platform{OS: "linux", Architecture: arch},
			Layers: []map[string]string{{"file": text}}}
	}
	w.Img = w.Source.AddImage(t, "acme/img", "v1", of("amd64", "img"))
	w.Source.AddImage(t, "acme/img", "v2", of("amd64", "img"))
	w.Source.AddImage(t, "other/img", "v2", of("amd64", "img"))
	w.Other = w.Source.AddImage(t, "acme/img", "v3", of("amd64", "other"))
	w.Index = w.Source.AddIndex(t, "acme/multi", "latest", nil,
		[]testregistry.Image{of("amd64", "multi"), of("arm64", "multi")})
	var index v1.Index
	if err := json.Unmarshal(w.Source.Manifest("acme/multi", "latest"), &index); err != nil {
		t.Fatal(err)
	}
	w.Amd64, w.Arm64 = index.Manifests[0].Digest, index.Manifests[1].Digest
	index.Manifests = []v1.Descriptor{{MediaType: v1.MediaTypeImageIndex, Digest: w.Index,
		Size: int64(len(w.Source.Manifest("acme/multi", "latest")))}}
	text, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	w.nested = w.Source.AddManifest("acme/multi", "nested", v1.MediaTypeImageIndex, text)
	for _, d := range []digest.Digest{w.Amd64, w.Arm64} {
		w.addSignature(d)
	}
	const host = mirrortest.Host + "/"
	w.Sources = map[string]string{"v1": host + "acme/img:v1", "v2": host + "acme/img:v2", "v3": host + "acme/img:v3",
		"img": host + "acme/img@" + w.Img.String(), "elsewhere": host + "other/img@" + w.Img.String(),
		"index": host + "acme/multi@" + w.Index.String(), "nested": host + "acme/multi@" + w.nested.String(),
		"amd64": host + "acme/multi@" + w.Amd64.String()}
	return w
}

// addSignature adds a manifest of the form of cosign's signatures for an image of acme/multi.
func (w *SharedWorld) addSignature(d digest.Digest) {
	w.Helper()
	blob := func(mediaType, text string) v1.Descriptor {
		return v1.Descriptor{MediaType: mediaType, Digest: w.Source.AddBlob([]byte(text)), Size: int64(len(text))}
	}
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: blob(v1.MediaTypeImageConfig, "{}"), Layers: []v1.Descriptor{blob("application/vnd.dev.cosign.simplesigning.v1+json", "of "+d.String())}}
	text, err := json.Marshal(m)
	if err != nil {
		w.Fatal(err)
	}
	w.Source.AddManifest("acme/multi", SigTag(d), v1.MediaTypeImageManifest, text)
}

func SigTag(d digest.Digest) string { return strings.Replace(d.String(), ":", "-", 1) + ".sig" }

// Catalog adds a catalog NAME/catalog with one bundle that names images, and an image set of it with a set to delete it.
func (w *SharedWorld) Catalog(name string, images ...string) {
	w.Helper()
	w.Source.AddImage(w, name+"/bundle", "v1", testregistry.Image{Layers: []map[string]string{{"bundle": name}}})
	related := []map[string]string{{"name": "bundle", "image": mirrortest.Host + "/" + name + "/bundle:v1"}}
	for _, i := range images {
		if w.Sources[i] != "" {
			i = w.Sources[i]
		}
		related = append(related, map[string]string{"name": fmt.Sprint(len(related)), "image": i})
	}
	text, err := json.Marshal(related)
	if err != nil {
		w.Fatal(err)
	}
	one := strings.NewReplacer("NAME", name, `"image":"IMAGE"`,
		`"image":"`+mirrortest.Host+`/`+name+`/bundle:v1","relatedImages":`+string(text)).Replace(OneBundle)
	w.Source.AddImage(w, name+"/catalog", "v1", testregistry.Image{Labels: map[string]string{TestConfigsLabel: "/configs"},
		Layers: []map[string]string{{"configs/" + name + "/catalog.json": one}}})
	const set = "kind: %sSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n%s:\n  operators:\n" +
		"  - catalog: " + mirrortest.Host + "/%s/catalog:v1\n    full: true\n"
	w.Write(name+".yaml", fmt.Sprintf(set, "Image", "mirror", name))
	w.Write("delete-"+name+".yaml", fmt.Sprintf(set, "DeleteImage", "delete", name))
}

// Additional writes an image set of additional images.
func (w *SharedWorld) Additional(file, kind string, images ...string) {
	w.Helper()
	key := map[string]string{"Image": "mirror", "DeleteImage": "delete"}[kind]
	text := "kind: " + kind + "SetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n" + key + ":\n" +
		"  additionalImages:\n"
	for _, i := range images {
		text += "  - name: " + w.Sources[i] + "\n"
	}
	w.Write(file, text)
}

// Expect runs a command line and compares the status and a part of what is printed.
func (w *SharedWorld) Expect(line string, status int, parts ...string) Result {
	w.Helper()
	return expect(w.T, line, w.Run(line), status, parts)
}

// expect fails the test unless a command line has ended with a status and has said what is given.
func expect(t *testing.T, line string, got Result, status int, parts []string) Result {
	t.Helper()
	if got.Status != status {
		t.Errorf("%s: status %d, expected %d\n%s%s", line, got.Status, status, got.Stdout, got.Stderr)
	}
	for _, part := range parts {
		if !strings.Contains(got.Stdout+got.Stderr, part) {
			t.Errorf("%s: no %q in\n%s%s", line, part, got.Stdout, got.Stderr)
		}
	}
	return got
}

// There compares what the target has: REPOSITORY and a tag or digest, or - before those that are to be gone.
func (w *SharedWorld) There(names ...string) {
	w.Helper()
	for _, name := range names {
		name, gone := strings.CutPrefix(name, "-")
		repository, of, _ := strings.Cut(name, " ")
		if has := w.Registry.Manifest("olm/"+repository, of) != nil; has == gone {
			w.Errorf("%s: there: %t", name, has)
		}
	}
}

const ListA = "mirror delete -c delete-a.yaml --workspace w --list list.yaml TARGET"
