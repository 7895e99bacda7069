package mirror_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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

// flip changes a byte of a blob.
func (s *spoilt) flip(d interface{ Encoded() string }) {
	s.t.Helper()
	at := s.find("blobs/sha256/" + d.Encoded())
	s.all[at].text = bytes.Clone(s.all[at].text)
	s.all[at].text[len(s.all[at].text)/2]++
}

// tarMember is a file in an archive.
type tarMember struct {
	name string
	text []byte
}

// archiveMembers returns the files of an archive in one segment.
func archiveMembers(t *testing.T, dir string) (all []tarMember) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "mirror_000001.tar"))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tarMember{h.Name, content})
	}
}

func writeArchive(t *testing.T, dir string, all []tarMember) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range all {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: m.name, Size: int64(len(m.text)),
			Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mirror_000001.tar"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// spoilt is an archive that is changed.
type spoilt struct {
	t        *testing.T
	oci      bool
	all      []tarMember
	referrer digest.Digest
}

// find returns the number of the file with a name, or of the first whose name begins so.
func (s *spoilt) find(name string) int {
	s.t.Helper()
	at := slices.IndexFunc(s.all, func(m tarMember) bool { return strings.HasPrefix(m.name, name) })
	if at < 0 {
		s.t.Fatalf("the archive has no %s", name)
	}
	return at
}

func (s *spoilt) remove(name string) { at := s.find(name); s.all = slices.Delete(s.all, at, at+1) }

// Index changes index.json.
func (s *spoilt) index(change func(*v1.Index)) {
	s.t.Helper()
	at := s.find(v1.ImageIndexFile)
	var index v1.Index
	if err := json.Unmarshal(s.all[at].text, &index); err != nil {
		s.t.Fatal(err)
	}
	change(&index)
	text, err := json.Marshal(index)
	if err != nil {
		s.t.Fatal(err)
	}
	s.all[at].text = text
}

func (s *spoilt) link(name string) string {
	path, tag, _ := strings.Cut(name, ":")
	return "docker/registry/v2/repositories/" + path + "/_manifests/tags/" + tag
}

// untag removes a name, PATH:TAG.
func (s *spoilt) untag(name string) {
	if !s.oci {
		s.remove(s.link(name) + "/current/link")
		return
	}
	s.index(func(i *v1.Index) {
		i.Manifests = slices.DeleteFunc(i.Manifests,
			func(d v1.Descriptor) bool { return d.Annotations[v1.AnnotationRefName] == name })
	})
}

// swap exchanges what two names stand for.
func (s *spoilt) swap(a, b string) {
	if !s.oci {
		x, y := s.find(s.link(a)+"/current/link"), s.find(s.link(b)+"/current/link")
		s.all[x].text, s.all[y].text = s.all[y].text, s.all[x].text
		return
	}
	s.index(func(i *v1.Index) {
		for n := range i.Manifests {
			switch i.Manifests[n].Annotations[v1.AnnotationRefName] {
			case a:
				i.Manifests[n].Annotations[v1.AnnotationRefName] = b
			case b:
				i.Manifests[n].Annotations[v1.AnnotationRefName] = a
			}
		}
	})
}

// tag adds a name.
func (s *spoilt) tag(name string, d digest.Digest) {
	if !s.oci {
		s.all = append(s.all, tarMember{s.link(name) + "/current/link", []byte(d)})
		return
	}
	size := int64(len(s.all[s.find(s.blob(d))].text))
	s.index(func(i *v1.Index) {
		i.Manifests = append(i.Manifests, v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: d, Size: size,
			Annotations: map[string]string{v1.AnnotationRefName: name}})
	})
}

// retag changes what a name stands for.
func (s *spoilt) retag(name string, d digest.Digest) { s.untag(name); s.tag(name, d) }

func (s *spoilt) blob(d digest.Digest) string {
	if s.oci {
		return "blobs/sha256/" + d.Encoded()
	}
	return "docker/registry/v2/blobs/sha256/" + d.Encoded()[:2] + "/" + d.Encoded() + "/data"
}

// tags returns the names in the archive with what they stand for.
func (s *spoilt) tags() map[string]digest.Digest {
	out := map[string]digest.Digest{}
	if s.oci {
		s.index(func(i *v1.Index) {
			for _, d := range i.Manifests {
				if name := d.Annotations[v1.AnnotationRefName]; name != "" {
					out[name] = d.Digest
				}
			}
		})
		return out
	}
	for _, m := range s.all {
		rest, ok := strings.CutPrefix(m.name, "docker/registry/v2/repositories/")
		if rest, link := strings.CutSuffix(rest, "/current/link"); ok && link {
			out[strings.Replace(rest, "/_manifests/tags/", ":", 1)] = digest.Digest(m.text)
		}
	}
	return out
}

// Catalog is the name of the filtered catalog; its source is beside it.
func (s *spoilt) catalog() string {
	names := s.named("acme/catalog:")
	if s.oci {
		return names[len(names)-1]
	}
	return names[0]
}

// named returns the names in order that have a text.
func (s *spoilt) named(text string) []string {
	s.t.Helper()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.tags())),
		func(name string) bool { return !strings.Contains(name, text) })
	if len(names) == 0 {
		s.t.Fatalf("%q: no name has %s", slices.Sorted(maps.Keys(s.tags())), text)
	}
	return names
}

// manifest returns what a name stands for.
func (s *spoilt) manifest(name string) (m v1.Manifest) {
	s.t.Helper()
	if err := json.Unmarshal(s.all[s.find(s.blob(s.tags()[name]))].text, &m); err != nil {
		s.t.Fatal(err)
	}
	return m
}

// spoils are changes of archives, by what is changed.
var spoils = map[string]func(*spoilt){
	"a related image":        func(s *spoilt) { s.untag(s.named("acme/alpha-app:")[0]) },
	"the image of a bundle":  func(s *spoilt) { s.untag(s.named("acme/alpha-op-bundle:")[0]) },
	"an additional image":    func(s *spoilt) { s.untag("extra/tool:v1") },
	"the catalog":            func(s *spoilt) { s.untag(s.catalog()) },
	"a manifest":             func(s *spoilt) { s.remove(s.blob(s.tags()[s.named("acme/alpha-app:")[0]])) },
	"a configuration":        func(s *spoilt) { s.remove(s.blob(s.manifest("extra/tool:v1").Config.Digest)) },
	"a layer":                func(s *spoilt) { s.remove(s.blob(s.manifest("extra/tool:v2").Layers[0].Digest)) },
	"names of images by tag": func(s *spoilt) { s.swap("extra/tool:v1", "extra/tool:v2") },
	"names of bundles": func(s *spoilt) {
		s.swap(s.named("acme/alpha-op-bundle:")[0], s.named("acme/beta-op-bundle:")[0])
	},
	"names of other kinds":       func(s *spoilt) { s.swap("extra/tool:v1", s.named("acme/alpha-op-bundle:")[0]) },
	"names of image and catalog": func(s *spoilt) { s.swap(s.catalog(), "extra/tool:v1") },
	"a broken blob that no image has": func(s *spoilt) {
		s.all = slices.Insert(s.all, 0, tarMember{s.blob(digest.FromString("x")), []byte("y")})
	},
	"a broken blob": func(s *spoilt) {
		at := s.find(s.blob(s.manifest("extra/tool:v1").Layers[0].Digest))
		s.all[at].text = bytes.Clone(s.all[at].text)
		s.all[at].text[0]++
	},
	"a signature":        func(s *spoilt) { s.untag(s.named(".sig")[0]) },
	"a signature's blob": func(s *spoilt) { s.remove(s.blob(s.manifest(s.named(".sig")[0]).Layers[0].Digest)) },
	"a referrer": func(s *spoilt) {
		if !s.oci {
			s.remove("docker/registry/v2/repositories/acme/delta-app/_manifests/revisions/sha256/" + s.referrer.Encoded())
			return
		}
		s.index(func(i *v1.Index) {
			i.Manifests = slices.DeleteFunc(i.Manifests, func(d v1.Descriptor) bool { return d.Digest == s.referrer })
		})
	},
	"a tag of signatures": func(s *spoilt) { s.retag(s.named(".sig")[0], s.tags()["extra/tool:v2"]) },
	"an image with two sizes of a blob": func(s *spoilt) {
		m := s.manifest("extra/tool:v1")
		m.Layers[0].Digest = m.Config.Digest
		text, err := json.Marshal(m)
		if err != nil {
			s.t.Fatal(err)
		}
		d := digest.FromBytes(text)
		s.all = slices.Insert(s.all, 0, tarMember{s.blob(d), text})
		s.tag("extra/other:v1", d)
	},
	"a referrer's manifest": func(s *spoilt) { s.remove(s.blob(s.referrer)) },
	"a description": func(s *spoilt) {
		s.remove(map[bool]string{true: "", false: "working-dir/"}[s.oci] + "bindery-mirror.json")
	},
}

// Verifying an archive finds whatever copying from it would, in both forms, and names that stand for others' images.
// Copying refuses those.
func TestMirrorVerifySpoiltArchives(t *testing.T) {
	source := mirrortest.Source(t)
	subject := digest.FromBytes(source.Manifest("acme/delta-app", "v1"))
	source.AddBlob([]byte("{}"))
	empty, err := json.Marshal(v1.DescriptorEmptyJSON)
	if err != nil {
		t.Fatal(err)
	}
	referrer := source.AddManifest("acme/delta-app", "", v1.MediaTypeImageManifest, fmt.Appendf(nil,
		`{"schemaVersion":2,"mediaType":%q,"artifactType":"a/b","config":%s,"layers":[%s],"subject":{"mediaType":%q,`+
			`"digest":%q,"size":%d}}`, v1.MediaTypeImageManifest, empty, empty, v1.MediaTypeImageManifest, subject,
		len(source.Manifest("acme/delta-app", "v1"))))
	source.SetReferrers(testregistry.Referrers{API: true})
	w := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: source.RegistriesConf(t, mirrortest.Host), Registry: testregistry.New(t)}
	set := clitest.MirrorImageSet + `  - name: registry.example.com/extra/tool:v2
  - name: registry.example.com/acme/delta-app:v1
  - {name: "registry.example.com/extra/multi:v1", platforms: [{os: linux, architecture: amd64}]}
`
	w.Write("imageset.yaml", set)
	for _, form := range []string{"oci", "oc-mirror"} {
		if got := w.Run("mirror run -c imageset.yaml --all --archive-format " + form + " file://" + form); got.Status != 0 {
			t.Fatalf("%+v", got)
		}
		if got := w.Run("mirror verify file://" + form); got.Status != 0 {
			t.Fatalf("%s: %+v", form, got)
		}
		whole := archiveMembers(t, filepath.Join(w.Dir, form))
		for name, spoil := range spoils {
			t.Run(form+": "+name, func(t *testing.T) {
				if name == "a description" && form == "oc-mirror" {
					return // see below
				}
				s := &spoilt{t: t, oci: form == "oci", all: slices.Clone(whole), referrer: referrer}
				spoil(s)
				v := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: w.Conf, Target: "docker://" + testregistry.New(t).Host(), Registry: w.Registry}
				v.Write("imageset.yaml", set)
				writeArchive(t, filepath.Join(v.Dir, "media"), s.all)
				got := v.Run("mirror verify file://media -o json")
				var answer struct{ Wrong, Problems int }
				if err := json.Unmarshal([]byte(got.Stdout), &answer); err != nil || got.Status != 1 {
					t.Errorf("%v: %+v", err, got)
				}
				copied := v.Run("mirror run -c imageset.yaml --from media --workspace ws TARGET")
				swapped := strings.HasPrefix(name, "names of ")
				if swapped && (copied.Status == 0 || !strings.Contains(copied.Stderr, "changed after it was written") &&
					!strings.Contains(copied.Stderr, "the source has")) {
					t.Errorf("%+v", copied)
				}
				if copied.Status != 0 && got.Status == 0 {
					t.Errorf("%+v, and it is not found: %+v", copied, got)
				}
				if s.oci || t.Failed() {
					return
				}
				// The archives of that program have no description.
				s.remove("working-dir/bindery-mirror.json")
				writeArchive(t, filepath.Join(v.Dir, "media"), s.all)
				fresh := &clitest.MirrorWorld{T: t, Dir: v.Dir, Conf: w.Conf, Target: "docker://" + testregistry.New(t).Host(), Registry: w.Registry}
				got = fresh.Run("mirror verify file://media")
				copied = fresh.Run("mirror run -c imageset.yaml --from media --workspace ws2 TARGET")
				if copied.Status != 0 && got.Status == 0 {
					t.Errorf("without a description: %+v, and it is not found: %+v", copied, got)
				}
			})
		}
	}
}

// An archive without what the other side is known to have is whole, and so are those of shards with that of the
// catalogs, and each of them.
func TestMirrorVerifyPartialArchives(t *testing.T) {
	w := newMirrorWorld(t)
	w.Write("more.yaml", clitest.MirrorImageSet+"  - name: registry.example.com/extra/tool:v2\n")
	for _, form := range []string{"oci", "oc-mirror"} {
		more := " --archive-format " + form + " file://" + form
		for _, line := range []string{"mirror run -c imageset.yaml --workspace " + form + "-ws" + more + "-1",
			"mirror verify file://" + form + "-1",
			"mirror run -c more.yaml --workspace " + form + "-ws" + more + "-2", "mirror verify file://" + form + "-2",
			"mirror run -c more.yaml --workspace " + form + "-ws" + more + "-3", "mirror verify file://" + form + "-3",
			"mirror run -c imageset.yaml --from " + form + "-1 TARGET", "mirror inventory TARGET --to inventory",
			"mirror run -c more.yaml --against inventory" + more + "-4", "mirror verify file://" + form + "-4",
			"mirror run -c more.yaml --from " + form + "-4 TARGET"} {
			if got := w.Run(line); got.Status != 0 {
				t.Errorf("%s: %+v", line, got)
			}
		}
	}
	for _, line := range []string{"mirror run -c more.yaml --shard 1/2 file://parts/1", "mirror verify file://parts/1",
		"mirror run -c more.yaml --shard 2/2 file://parts/2", "mirror verify file://parts",
		"mirror publish -c more.yaml --from parts file://parts/catalogs", "mirror verify file://parts",
		"mirror verify file://parts/catalogs"} {
		if got := w.Run(line); got.Status != 0 {
			t.Errorf("%s: %+v", line, got)
		}
	}
	// The catalogs of the archive are its own.
	s := &spoilt{t: t, oci: true, all: archiveMembers(t, filepath.Join(w.Dir, "parts", "catalogs"))}
	s.untag("acme/catalog:v1")
	writeArchive(t, filepath.Join(w.Dir, "spoilt"), s.all)
	if got := w.Run("mirror verify file://spoilt"); got.Status != 1 ||
		!strings.Contains(got.Stdout, "1 catalog and 1 image are wrong") {
		t.Errorf("%+v", got)
	}
	// With a part that is not all of them, the rest is missing.
	if err := os.RemoveAll(filepath.Join(w.Dir, "parts", "2")); err != nil {
		t.Fatal(err)
	}
	if got := w.Run("mirror verify file://parts"); got.Status != 1 {
		t.Errorf("%+v", got)
	}
	// What the archive says that the target has is counted, also when nothing else says it.
	s = &spoilt{t: t, oci: true, all: archiveMembers(t, filepath.Join(w.Dir, "oci-1"))}
	name := s.named("acme/alpha-app:")[0]
	s.untag(name)
	path, tag, _ := strings.Cut(name, ":")
	at := s.find("bindery-mirror.json")
	var about map[string]any
	if err := json.Unmarshal(s.all[at].text, &about); err != nil {
		t.Fatal(err)
	}
	for _, i := range about["images"].([]any) {
		if i := i.(map[string]any); i["path"] == path && i["tag"] == tag {
			i["atTarget"] = true
		}
	}
	text, err := json.Marshal(about)
	if err != nil {
		t.Fatal(err)
	}
	s.all[at].text = text
	writeArchive(t, filepath.Join(w.Dir, "claims"), s.all)
	if got := w.Run("mirror verify file://claims"); got.Status != 0 || !strings.Contains(got.Stdout,
		"all is there but 1 manifests and blobs that the other side is to have") {
		t.Errorf("%+v", got)
	}
	// What the archive says that it lacks is missing in a run from it.
	w.Write("lacking.yaml", clitest.MirrorImageSet+"  - name: registry.example.com/extra/tool:none\n")
	if got := w.Run("mirror run -c lacking.yaml --all file://lacking"); got.Status != 4 {
		t.Fatalf("%+v", got)
	}
	if got := w.Run("mirror verify file://lacking"); got.Status != 1 ||
		!strings.Contains(got.Stdout, "extra/tool:none: it was not there when the archive was written") {
		t.Errorf("%+v", got)
	}
}

// Content with one digest has one size: an image that says otherwise is not copied from anywhere, and is not whole
// where it is. What has the tag of signatures and is an image is no signature, and is not carried as one.
func TestMirrorImagesThatContradictThemselves(t *testing.T) {
	source, target := mirrortest.Source(t), testregistry.New(t)
	var m v1.Manifest
	if err := json.Unmarshal(source.Manifest("extra/tool", "v1"), &m); err != nil {
		t.Fatal(err)
	}
	add := func(r *testregistry.Registry, repository, tag string, of any, mediaType string) digest.Digest {
		t.Helper()
		text, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		return r.AddManifest(repository, tag, mediaType, text)
	}
	images := map[string]func(*testregistry.Registry, string){
		"layer": func(r *testregistry.Registry, repository string) {
			wrong := m
			wrong.Layers = append(slices.Clone(m.Layers), m.Config)
			wrong.Layers[len(m.Layers)].Size++
			add(r, repository, "v1", wrong, v1.MediaTypeImageManifest)
		},
		"layers": func(r *testregistry.Registry, repository string) {
			wrong := m
			wrong.Layers = append(slices.Clone(m.Layers), m.Layers[0])
			wrong.Layers[len(m.Layers)].Size++
			add(r, repository, "v1", wrong, v1.MediaTypeImageManifest)
		},
		"across": func(r *testregistry.Registry, repository string) {
			wrong := m
			wrong.Layers = slices.Clone(m.Layers)
			wrong.Layers[0].Size++
			var entries []v1.Descriptor
			for n, one := range []v1.Manifest{m, wrong} {
				one.Annotations = map[string]string{"n": fmt.Sprint(n)}
				d := add(r, repository, "", one, v1.MediaTypeImageManifest)
				entries = append(entries, v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: d,
					Size:     int64(len(r.Manifest(repository, d.String()))),
					Platform: &v1.Platform{OS: "linux", Architecture: []string{"amd64", "arm64"}[n]}})
			}
			add(r, repository, "v1", v1.Index{Versioned: m.Versioned, MediaType: v1.MediaTypeImageIndex,
				Manifests: entries}, v1.MediaTypeImageIndex)
		},
		"entry": func(r *testregistry.Registry, repository string) {
			d := add(r, repository, "", m, v1.MediaTypeImageManifest)
			add(r, repository, "v1", v1.Index{Versioned: m.Versioned, MediaType: v1.MediaTypeImageIndex,
				Manifests: []v1.Descriptor{{MediaType: v1.MediaTypeImageManifest, Digest: d, Size: 7}}},
				v1.MediaTypeImageIndex)
		},
	}
	conf := source.RegistriesConf(t, mirrortest.Host)
	for name, image := range images {
		image(source, "wrong/"+name)
		image(target, "there/wrong/"+name)
		w := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: conf, Target: "docker://" + target.Host(), Registry: target}
		for _, d := range append(slices.Clone(m.Layers), m.Config) {
			content := mirrorBlob(t, source, "extra/tool", d.Digest)
			target.AddBlob(content)
		}
		w.Write("imageset.yaml", "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n"+
			"  additionalImages:\n  - name: registry.example.com/wrong/"+name+":v1\n")
		for line, status := range map[string]int{"mirror run -c imageset.yaml --workspace ws TARGET/m": 4,
			"mirror run -c imageset.yaml file://media":                                 4,
			"mirror verify -c imageset.yaml TARGET/there":                              1,
			"copy " + mirrortest.Host + "/wrong/" + name + ":v1 TARGET/copied:" + name: 1,
			"copy " + mirrortest.Host + "/wrong/" + name + ":v1 oci:layout":            1} {
			got := w.Run(line)
			text := got.Stdout + got.Stderr
			if got.Status != status || !strings.Contains(text, "two sizes") && !strings.Contains(text, "names sha256:") &&
				!strings.Contains(text, " bytes is not there") && !strings.Contains(text, "integrity: size is ") {
				t.Errorf("%s: %s: %+v", name, line, got)
			}
		}
	}
	tag := strings.Replace(digest.FromBytes(source.Manifest("extra/tool", "v1")).String(), ":", "-", 1)
	index := v1.Index{Versioned: m.Versioned, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{}}
	for n, end := range []string{".sig", ".att", ".sbom"} {
		source.AddManifest("extra/tool", tag+end, v1.MediaTypeImageManifest, source.Manifest("extra/tool", "v2"))
		if n == 1 {
			index.Manifests = append(index.Manifests, v1.Descriptor{MediaType: v1.MediaTypeImageManifest,
				Digest: digest.FromBytes(source.Manifest("extra/tool", "v2")),
				Size:   int64(len(source.Manifest("extra/tool", "v2")))})
			add(source, "extra/tool", tag+end, index, v1.MediaTypeImageIndex)
		}
	}
	w := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: conf, Target: "docker://" + target.Host(), Registry: target}
	w.Write("imageset.yaml", "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n"+
		"  additionalImages:\n  - name: registry.example.com/extra/tool:v1\n")
	for _, line := range []string{"mirror run -c imageset.yaml --workspace ws TARGET/s",
		"mirror run -c imageset.yaml file://media"} {
		got := w.Run(line)
		if got.Status != 0 || strings.Count(got.Stderr, "it is an image, with a layer of type") != 2 ||
			strings.Count(got.Stderr, "it is an index of images") != 1 {
			t.Errorf("%+v", got)
		}
	}
	if tags := target.Tags("s/extra/tool"); !slices.Equal(tags, []string{"v1"}) {
		t.Errorf("%q", tags)
	}
}

// mirrorBlob returns a blob of a registry.
func mirrorBlob(t *testing.T, r *testregistry.Registry, repository string, d digest.Digest) []byte {
	t.Helper()
	resp, err := http.Get("http://" + r.Host() + "/v2/" + repository + "/blobs/" + d.String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || digest.FromBytes(text) != d {
		t.Fatal(d, err)
	}
	return text
}
