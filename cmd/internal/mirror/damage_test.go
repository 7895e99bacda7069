package mirror_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/ulikunitz/xz"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// packed is a text in the formats of programs that compress, by what they are called.
func packed(t *testing.T, text []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{"bzip2": append([]byte("BZh91AY&SY"), text...)} // not even its beginning is read
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	out["gzip"] = b.Bytes()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	out["zstd"] = enc.EncodeAll(text, nil)
	var x bytes.Buffer
	w, err := xz.NewWriter(&x)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	out["xz"] = x.Bytes()
	return out
}

// An archive that was compressed is said to be so, wherever archives are opened.
func TestCompressedArchives(t *testing.T) {
	w := newMirrorWorld(t)
	if got := w.Run("mirror run -c imageset.yaml file://media"); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	for _, form := range []string{"oci-archive", "docker-archive"} {
		if got := w.Run("copy --with none registry.example.com/extra/tool:v1 " + form + ":" + form + ".tar:" + map[string]string{"oci-archive": "v1", "docker-archive": "a/b:v1"}[form]); got.Status != 0 {
			t.Fatalf("%+v", got)
		}
	}
	read := func(name string) []byte { return []byte(clitest.ReadFile(t, filepath.Join(w.Dir, name))) }
	for codec, text := range packed(t, read("media/mirror_000001.tar")) {
		w.Write("media/mirror_000001.tar", string(text))
		for _, line := range []string{"mirror run -c imageset.yaml --from media TARGET --workspace ws", "mirror verify file://media",
			"mirror run -c imageset.yaml file://media", "mirror run -c imageset.yaml file://media --all",
			"mirror publish -c imageset.yaml --from media file://out"} {
			got := w.Run(line)
			if want := "it is compressed with " + codec + `: decompress it with "` + codec + ` -dc"`; got.Status != 1 ||
				strings.Count(got.Stderr, want) != 1 || strings.Contains(got.Stderr, "another archive") ||
				strings.Contains(got.Stderr, "another run") || strings.Contains(got.Stderr, "tar header") {
				t.Errorf("%s, %s: %+v", codec, line, got)
			}
		}
		if err := os.Rename(filepath.Join(w.Dir, "media", "mirror_000001.tar"),
			filepath.Join(w.Dir, "media", "mirror_000001.tar.x")); err != nil {
			t.Fatal(err)
		}
		if got := w.Run("mirror run -c imageset.yaml --from media TARGET --workspace ws"); got.Status != 1 ||
			!strings.Contains(got.Stderr, "no mirror_000001.tar, but mirror_000001.tar.x: decompress all segments") {
			t.Errorf("%+v", got)
		}
		if err := os.Remove(filepath.Join(w.Dir, "media", "mirror_000001.tar.x")); err != nil {
			t.Fatal(err)
		}
	}
	for _, form := range []string{"oci-archive", "docker-archive"} {
		for codec, text := range packed(t, read(form+".tar")) {
			w.Write("packed.tar", string(text))
			got := w.Run("inspect " + form + ":packed.tar")
			if plain := codec == "gzip" || codec == "zstd"; plain != (got.Status == 0) ||
				!plain && !strings.Contains(got.Stderr, "it is compressed with "+codec) {
				t.Errorf("%s, %s: %+v", form, codec, got)
			}
			if got := w.Run("copy --with none registry.example.com/extra/tool:v1 " + form + ":packed.tar"); got.Status != 1 ||
				!strings.Contains(got.Stderr, "packed.tar is not replaced: ") || !strings.Contains(got.Stderr, "compressed with "+codec) {
				t.Errorf("%s, %s: %+v", form, codec, got)
			}
			w.Write("twice.tar", string(packed(t, text)["gzip"]))
			if got := w.Run("inspect " + form + ":twice.tar"); got.Status != 1 ||
				!strings.Contains(got.Stderr, "compressed twice: "+codec+" inside of gzip") {
				t.Errorf("%s, %s: %+v", form, codec, got)
			}
		}
	}
	for codec, text := range packed(t, []byte("SQLite format 3\x00")) {
		w.Write("index.db", string(text))
		if got := w.Run("list packages index.db"); got.Status != 1 ||
			!strings.Contains(got.Stderr, `hint: the file is compressed: decompress it with "`+codec+` -dc"`) {
			t.Errorf("%s: %+v", codec, got)
		}
	}
}

// A layer that is compressed twice is said to be so.
func TestLayerCompressedTwice(t *testing.T) {
	source := testregistry.New(t)
	image := testregistry.Image{Labels: map[string]string{clitest.TestConfigsLabel: "/configs"}, Layers: []map[string]string{{
		"configs/etcd/catalog.json": strings.NewReplacer("NAME", "etcd", "IMAGE", "registry.example.com/acme/etcd:v1").Replace(
			clitest.OneBundle)}}}
	source.AddImage(t, "acme/catalog", "v1", image)
	w := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: source.RegistriesConf(t, mirrortest.Host)}
	var m v1.Manifest
	if err := json.Unmarshal(source.Manifest("acme/catalog", "v1"), &m); err != nil {
		t.Fatal(err)
	}
	var config v1.Image
	if err := json.Unmarshal(mirrorBlob(t, source, "acme/catalog", m.Config.Digest), &config); err != nil {
		t.Fatal(err)
	}
	for codec, text := range packed(t, mirrorBlob(t, source, "acme/catalog", m.Layers[0].Digest)) {
		twice := packed(t, text)["gzip"]
		m.Layers[0] = v1.Descriptor{MediaType: v1.MediaTypeImageLayerGzip, Digest: source.AddBlob(twice), Size: int64(len(twice))}
		config.RootFS.DiffIDs[0] = digest.FromBytes(text)
		about, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		m.Config.Digest, m.Config.Size = source.AddBlob(about), int64(len(about))
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		source.AddManifest("acme/catalog", codec, v1.MediaTypeImageManifest, text)
		if got := w.Run("list packages registry.example.com/acme/catalog:" + codec); got.Status != 1 ||
			!strings.Contains(got.Stderr, "compressed twice: "+codec+" inside") {
			t.Errorf("%s: %+v", codec, got)
		}
	}
}

// Of a damaged archive each cause is said once, and that it is to be copied again.
func TestDamagedMedium(t *testing.T) {
	source := mirrortest.Source(t)
	conf := source.RegistriesConf(t, mirrortest.Host)
	for name, damage := range map[string]func(s *spoilt){
		"a layer of an operand":  func(s *spoilt) { s.flip(s.manifest(s.named("acme/alpha-app:")[0]).Layers[0].Digest) },
		"an additional image":    func(s *spoilt) { s.flip(s.manifest("extra/tool:v1").Layers[0].Digest) },
		"a manifest":             func(s *spoilt) { s.flip(s.tags()[s.named("acme/alpha-app:")[0]]) },
		"a bundle":               func(s *spoilt) { s.flip(s.manifest(s.named("acme/alpha-op-bundle:")[0]).Layers[0].Digest) },
		"the catalog":            func(s *spoilt) { s.flip(s.manifest(s.catalog()).Layers[0].Digest) },
		"the catalog's manifest": func(s *spoilt) { s.flip(s.tags()[s.catalog()]) },
	} {
		target := testregistry.New(t)
		w := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: conf, Target: "docker://" + target.Host(), Registry: target}
		w.Write("imageset.yaml", clitest.MirrorImageSet)
		if got := w.Run("mirror run -c imageset.yaml file://media"); got.Status != 0 {
			t.Fatalf("%+v", got)
		}
		s := &spoilt{t: t, oci: true, all: archiveMembers(t, filepath.Join(w.Dir, "media"))}
		damage(s)
		writeArchive(t, filepath.Join(w.Dir, "media"), s.all)
		got := w.Run("mirror run -c imageset.yaml --from media TARGET")
		if strings.Count(got.Stderr, "integrity: ") != 1 || !strings.Contains(got.Stderr, "hint: the archive is damaged, or not whole: "+
			"copy all its files mirror_*.tar here again") || strings.Contains(got.Stderr, "another run") {
			t.Errorf("%s: %+v", name, got)
		}
		if status := map[bool]int{true: 1, false: 4}[strings.HasPrefix(name, "the catalog")]; got.Status != status {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
