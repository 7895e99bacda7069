//go:build hostile

package hostile

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// The labels of a bundle image, and a CSV that every reader accepts.
const (
	packageLabel = "operators.operatorframework.io.bundle.package.v1"
	annotations  = "annotations:\n  operators.operatorframework.io.bundle.package.v1: " +
		"foo\n  operators.operatorframework.io.bundle.channels.v1: stable\n" +
		"  operators.operatorframework.io.bundle.mediatype.v1: " +
		"registry+v1\n  operators.operatorframework.io.bundle.manifests.v1: manifests/\n" +
		"  operators.operatorframework.io.bundle.metadata.v1: " +
		"metadata/\n  operators.operatorframework.io.bundle.channel.default.v1: stable\n"
	goodCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: foo.v1.0.0
spec:
  version: 1.0.0
  displayName: Foo
  description: foo
  minKubeVersion: 1.20.0
  provider: {name: Acme}
  maintainers: [{name: A, email: a@example.com}]
  links: [{name: a, url: "https://example.com"}]
  keywords: [foo]
  maturity: alpha
  icon: [{base64data: aGVsbG8=, mediatype: image/png}]
  installModes:
  - {type: OwnNamespace, supported: true}
  - {type: SingleNamespace, supported: true}
  - {type: MultiNamespace, supported: false}
  - {type: AllNamespaces, supported: true}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: foo
        spec:
          replicas: 1
          selector: {matchLabels: {a: b}}
          template:
            metadata: {labels: {a: b}}
            spec:
              containers: [{name: a, image: "example.com/foo:v1"}]
`
)

// blobOf is a layer in an image.
type blobOf struct {
	content   []byte
	mediaType string
	diffID    string // computed from the content by its media type if empty
}

// picture is an image of which a case can choose every byte.
type picture struct {
	labels   map[string]string
	layers   []blobOf
	config   func(map[string]any)
	manifest func(map[string]any)
	// text changes the manifest before it is sent.
	text      func([]byte) []byte
	mediaType string
}

const (
	tarType      = "application/vnd.oci.image.layer.v1.tar"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
)

// file returns an entry of a layer.
func file(name, content string) *tarEntry {
	return &tarEntry{Header: tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}, content: content}
}

func entryOf(h tar.Header) *tarEntry { return &tarEntry{Header: h} }

type tarEntry struct {
	tar.Header
	content string
}

func tarOf(t *testing.T, entries ...*tarEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := e.Header
		if h.Size = int64(len(e.content)); h.Mode == 0 {
			h.Mode = 0o644
		}
		check(t, w.WriteHeader(&h))
		_, err := io.WriteString(w, e.content)
		check(t, err)
	}
	check(t, w.Close())
	return b.Bytes()
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(content)
	check(t, err)
	check(t, z.Close())
	return b.Bytes()
}

// gzipLayer returns a gzip layer of an archive.
func gzipLayer(t *testing.T, archive []byte) blobOf {
	return blobOf{gzipped(t, archive), tarType + "+gzip", digest.FromBytes(archive).String()}
}

// goodFiles returns the files of a valid bundle.
func goodFiles() []*tarEntry {
	return []*tarEntry{file("manifests/csv.yaml", goodCSV), file("metadata/annotations.yaml", annotations)}
}

func bundlePicture(t *testing.T, entries ...*tarEntry) picture {
	return picture{labels: bundleLabels(), layers: []blobOf{gzipLayer(t, tarOf(t, entries...))}}
}

func bundleLabels() map[string]string {
	return map[string]string{packageLabel: "foo",
		"operators.operatorframework.io.bundle.channels.v1":        "stable",
		"operators.operatorframework.io.bundle.channel.default.v1": "stable",
		"operators.operatorframework.io.bundle.mediatype.v1":       "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1":       "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1":        "metadata/"}
}

// build returns the blobs of an image.
func (p picture) build(t *testing.T) (text []byte, mediaType string, blobs [][]byte) {
	t.Helper()
	marshal := func(v any) []byte {
		out, err := json.Marshal(v)
		check(t, err)
		return out
	}
	descriptor := func(mediaType string, content []byte) map[string]any {
		blobs = append(blobs, content)
		return map[string]any{"mediaType": mediaType, "digest": digest.FromBytes(content).String(),
			"size": len(content)}
	}
	layers, diffs := []any{}, []any{}
	for _, l := range p.layers {
		layers = append(layers, descriptor(l.mediaType, l.content))
		if l.diffID == "" {
			l.diffID = digest.FromBytes(l.content).String()
		}
		diffs = append(diffs, l.diffID)
	}
	config := map[string]any{"architecture": "amd64", "os": "linux", "config": map[string]any{"Labels": p.labels},
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffs}}
	if p.config != nil {
		p.config(config)
	}
	m := map[string]any{"schemaVersion": 2, "mediaType": manifestType,
		"config": descriptor(configType, marshal(config)), "layers": layers}
	if p.manifest != nil {
		p.manifest(m)
	}
	text = marshal(m)
	if p.text != nil {
		text = p.text(text)
	}
	if mediaType = p.mediaType; mediaType == "" {
		mediaType = manifestType
	}
	return text, mediaType, blobs
}

// add stores the image in a registry.
func (p picture) add(t *testing.T, r *testregistry.Registry, repository, tag string) digest.Digest {
	t.Helper()
	text, mediaType, blobs := p.build(t)
	for _, b := range blobs {
		r.AddBlob(b)
	}
	return r.AddManifest(repository, tag, mediaType, text)
}

// put writes the image as an OCI layout, tagged v1.
func (p picture) put(b *box, dir string) {
	b.t.Helper()
	text, mediaType, blobs := p.build(b.t)
	for _, c := range append(blobs, text) {
		b.write(fmt.Sprintf("%s/blobs/sha256/%x", dir, sha256.Sum256(c)), string(c))
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2,
		"manifests": []any{map[string]any{"mediaType": mediaType, "digest": digest.FromBytes(text), "size": len(text),
			"annotations": map[string]string{"org.opencontainers.image.ref.name": "v1"}}}})
	check(b.t, err)
	b.write(dir+"/index.json", string(index))
	b.write(dir+"/oci-layout", `{"imageLayoutVersion":"1.0.0"}`)
}

// zeros reads as n zero bytes.
type zeros int64

func (z *zeros) Read(p []byte) (int, error) {
	if *z <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), int64(*z))
	clear(p[:n])
	*z -= zeros(n)
	return int(n), nil
}

// bigEntry returns the header of a file with that size.
func bigEntry(t *testing.T, name string, size int64) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	check(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: size}))
	z := zeros(size + 1024 + (512-size%512)%512)
	return io.MultiReader(&b, &z)
}

func TestHostileBundleImages(t *testing.T) {
	t.Parallel()
	pic := func(entries ...*tarEntry) func(*testing.T) picture {
		return func(t *testing.T) picture { return bundlePicture(t, append(goodFiles(), entries...)...) }
	}
	layers := func(blobs ...func(t *testing.T) blobOf) func(*testing.T) picture {
		return func(t *testing.T) picture {
			p := bundlePicture(t, goodFiles()...)
			for _, m := range blobs {
				p.layers = append(p.layers, m(t))
			}
			return p
		}
	}
	change := func(f func(p *picture)) func(*testing.T) picture {
		return func(t *testing.T) picture {
			p := bundlePicture(t, goodFiles()...)
			f(&p)
			return p
		}
	}
	labels := func(key, value string) func(*testing.T) picture {
		return change(func(p *picture) { p.labels["operators.operatorframework.io.bundle."+key+".v1"] = value })
	}
	bomb := func(size int64, codec string) func(t *testing.T) blobOf {
		return func(t *testing.T) blobOf {
			var b bytes.Buffer
			var w io.WriteCloser = gzip.NewWriter(&b)
			if codec == "zstd" {
				var err error
				w, err = zstd.NewWriter(&b)
				check(t, err)
			}
			_, err := io.Copy(w, bigEntry(t, "other/big.yaml", size))
			check(t, err)
			check(t, w.Close())
			return blobOf{b.Bytes(), tarType + "+" + codec, digest.FromString("x").String()}
		}
	}
	for _, c := range []struct {
		name  string
		make  func(t *testing.T) picture
		class int
		text  string
		not   []string // commands that the case does not apply to
	}{
		{"dotdot", pic(file("manifests/../../canary/w", "x")), input, "leaves|path", nil},
		{"absolute", pic(file("/canary/w", "x")), input, "absolute", nil},
		{"link to a secret",
			pic(entryOf(tar.Header{Name: "manifests/z.yaml", Typeflag: tar.TypeSymlink,
				Linkname: "../../home/.docker/config.json"})), input, "symlink", nil},
		{"hard link",
			pic(entryOf(tar.Header{Name: "manifests/z.yaml", Typeflag: tar.TypeLink, Linkname: "/canary/secret"})),
			input, "hard link", nil},
		{"hard link inside",
			pic(entryOf(tar.Header{Name: "manifests/z.yaml", Typeflag: tar.TypeLink, Linkname: "manifests/csv.yaml"})),
			input, "hard link", nil},
		{"device", pic(entryOf(tar.Header{Name: "manifests/z.yaml", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3})),
			input, "device", nil},
		{"FIFO", pic(entryOf(tar.Header{Name: "manifests/z.yaml", Typeflag: tar.TypeFifo})), input, "FIFO", nil},
		{"twice", pic(file("manifests/csv.yaml", goodCSV)), input, "twice", nil},
		{"twice, cleaned", pic(file("manifests/./csv.yaml", goodCSV)), input, "twice", nil},
		{"child of a file", pic(file("manifests/csv.yaml/x", goodCSV)), input, "below", nil},
		{"case collision", pic(file("manifests/CSV.yaml", "a: b\n")), input, "case", []string{"--skip-validation"}},
		{"whiteout of nothing", pic(file("manifests/.wh.", "")), input, "whiteout", nil},
		{"whiteout of dotdot", pic(file(".wh...", "")), input, "whiteout", nil},
		{"name of 300 bytes", pic(file("manifests/"+strings.Repeat("n", 300), "x")), limit, "255", nil},
		{"path of 5,000 bytes", pic(file("manifests/"+strings.Repeat("d/", 2500)+"x", "x")), limit, "longer than", nil},
		{"40 deep", pic(file("manifests/"+strings.Repeat("d/", 40)+"x", "x")), limit, "deep", nil},
		{"escape sequence", pic(file("manifests/a\n\x1b[31m", "x")), input, "control", nil},
		{"not UTF-8", pic(file("manifests/bad\xff\xfe", "x")), input, "UTF-8", nil},
		{"backslash", pic(file(`manifests\..\..\w`, "x"), file(`manifests/..\..\w`, "x")), input, "backslash", nil},
		{"direction override", pic(file("manifests/a\u202eyaml", "x")), input, ".", []string{"--skip-validation"}},
		{"unknown type", pic(entryOf(tar.Header{Name: "manifests/x", Typeflag: 'Q'})), input, "entry type", nil},
		{"gzip bomb", layers(bomb(400<<20, "gzip")), limit, "uncompressed|file|big.yaml", nil},
		{"zstd bomb", layers(bomb(400<<20, "zstd")), limit, "uncompressed|file|big.yaml", nil},
		{"gzip bomb of many members", layers(func(t *testing.T) blobOf {
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			zero := zeros(10 << 20)
			_, err := io.Copy(w, &zero)
			check(t, err)
			check(t, w.Close())
			var head bytes.Buffer
			w = gzip.NewWriter(&head)
			tw := tar.NewWriter(w)
			check(t, tw.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 100 << 30}))
			check(t, w.Close())
			return blobOf{append(head.Bytes(), bytes.Repeat(z.Bytes(), 10_000)...), tarType + "+gzip",
				digest.FromString("x").String()}
		}), limit, "uncompressed|max-file-size", nil},
		{"zstd window", layers(func(t *testing.T) blobOf {
			// A zstd frame with a window of 2 GiB and one raw block.
			return blobOf{append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x10, 0x00}, 0, 0),
				tarType + "+zstd", digest.FromString("x").String()}
		}), limit, "window", nil},
		{"xz", layers(func(*testing.T) blobOf {
			return blobOf{[]byte("\xfd7zXZ\x00xxxxxxxxxx"), tarType + "+gzip", ""}
		}), input, "unsupported compression", nil},
		{"media type of plain archives", layers(func(t *testing.T) blobOf {
			l := gzipLayer(t, tarOf(t, file("a", "b")))
			return blobOf{l.content, tarType, l.diffID}
		}), input, "does not match media type", nil},
		{"chart as a layer", layers(func(t *testing.T) blobOf {
			return blobOf{[]byte("x"), "application/x-helm-chart", ""}
		}), input, "media type", nil},
		{"truncated gzip",
			change(func(p *picture) { p.layers[0].content = p.layers[0].content[:len(p.layers[0].content)-10] }),
			integrity, "unexpected end", nil},
		{"wrong CRC", change(func(p *picture) { p.layers[0].content[len(p.layers[0].content)-6] ^= 1 }), integrity, ".",
			nil},
		{"bytes after gzip", change(func(p *picture) {
			p.layers[0].content = append(p.layers[0].content, bytes.Repeat([]byte{0xaa}, 4096)...)
		}), integrity, ".", nil},
		{"empty layer", layers(func(*testing.T) blobOf { return blobOf{nil, tarType + "+gzip", ""} }), input, ".", nil},
		{"no end of archive", func(t *testing.T) picture {
			a := tarOf(t, goodFiles()...)
			return picture{labels: bundleLabels(), layers: []blobOf{gzipLayer(t, a[:len(a)-1024])}}
		}, input, "end of archive", nil},
		{"two archives", func(t *testing.T) picture {
			a := tarOf(t, goodFiles()...)
			return picture{labels: bundleLabels(), layers: []blobOf{gzipLayer(t, append(a[:len(a):len(a)], a...))}}
		}, input, "after end of archive", nil},
		{"cut in a file", func(t *testing.T) picture {
			a := tarOf(t, goodFiles()...)
			return picture{labels: bundleLabels(), layers: []blobOf{gzipLayer(t, a[:700])}}
		}, integrity, "unexpected end", nil},
		{"20,000 layers", change(func(p *picture) {
			for range 20_000 {
				p.layers = append(p.layers, p.layers[0])
			}
		}), limit, "layers", nil},
		{"200,001 empty files", func(t *testing.T) picture {
			var entries []*tarEntry
			for i := range 200_001 {
				entries = append(entries, file(fmt.Sprintf("x/%d", i), ""))
			}
			return bundlePicture(t, append(entries, goodFiles()...)...)
		}, limit, "entries", nil},
		{"100,000 manifests", func(t *testing.T) picture {
			entries := goodFiles()
			for i := range 100_000 {
				entries = append(entries,
					file(fmt.Sprintf("manifests/%d.yaml", i), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"))
			}
			return bundlePicture(t, entries...)
		}, limit, ".", []string{"--skip-validation"}},
		{"manifest of 5 MiB",
			pic(file("manifests/big.yaml", "apiVersion: v1\nkind: ConfigMap\ndata: {a: \""+strings.Repeat("x",
				5<<20)+"\"}\n")), limit, ".", []string{"--skip-validation"}},
		{"package label alone", func(t *testing.T) picture {
			return picture{labels: map[string]string{packageLabel: "foo"},
				layers: []blobOf{gzipLayer(t, tarOf(t, file("a", "b")))}}
		}, input, ".", []string{"--skip-validation"}},
		{"label of manifests absolute", func(t *testing.T) picture {
			p := bundlePicture(t,
				file("metadata/annotations.yaml", strings.ReplaceAll(annotations, "manifests/", "/etc/")))
			p.labels["operators.operatorframework.io.bundle.manifests.v1"] = "/etc/"
			return p
		}, input, ".", []string{"--skip-validation"}},
		{"diff_ids missing", change(func(p *picture) {
			p.config = func(c map[string]any) { c["rootfs"] = map[string]any{"type": "layers", "diff_ids": []string{}} }
		}), integrity, "diff_ids", nil},
		{"diff_ids wrong", change(func(p *picture) { p.layers[0].diffID = digest.FromString("x").String() }), integrity,
			"digest|diff", nil},
		{"layers and manifests",
			change(func(p *picture) { p.manifest = func(m map[string]any) { m["manifests"] = []any{} } }), input,
			"ambiguous", nil},
		{"digest that is a path", change(func(p *picture) {
			p.manifest = func(m map[string]any) { m["layers"].([]any)[0].(map[string]any)["digest"] = "../../x" }
		}), input, "invalid digest", nil},
		{"md5", change(func(p *picture) {
			p.manifest = func(m map[string]any) {
				m["layers"].([]any)[0].(map[string]any)["digest"] = "md5:d41d8cd98f00b204e9800998ecf8427e"
			}
		}), input, "algorithm|digest", nil},
		{"size -1", change(func(p *picture) {
			p.manifest = func(m map[string]any) { m["layers"].([]any)[0].(map[string]any)["size"] = -1 }
		}), input, "size", nil},
		{"size 2^63", change(func(p *picture) {
			p.manifest = func(m map[string]any) {
				m["layers"].([]any)[0].(map[string]any)["size"] = json.Number("9223372036854775808")
			}
		}), input, "size|manifest", nil},
		{"size 2^62", change(func(p *picture) {
			p.manifest = func(m map[string]any) { m["layers"].([]any)[0].(map[string]any)["size"] = int64(1) << 62 }
		}), limit, ".", nil},
		{"wrong size", change(func(p *picture) {
			p.manifest = func(m map[string]any) { m["layers"].([]any)[0].(map[string]any)["size"] = 17 }
		}), integrity, "size", nil},
		{"foreign layer", change(func(p *picture) {
			p.manifest = func(m map[string]any) {
				m["layers"].([]any)[0].(map[string]any)["urls"] = []string{"http://127.0.0.1:1/x", "file:///etc/passwd"}
			}
		}), input, "foreign layer", nil},
		{"artifact", change(func(p *picture) {
			p.manifest = func(m map[string]any) { m["artifactType"] = "application/x" }
		}), input, "not an image", nil},
		{"manifest of 5 MiB text", change(func(p *picture) {
			p.manifest = func(m map[string]any) {
				m["annotations"] = map[string]string{"x": strings.Repeat("x", 5<<20)}
			}
		}), limit, "4194304", nil},
		{"configuration of 5 MiB",
			change(func(p *picture) { p.config = func(c map[string]any) { c["x"] = strings.Repeat("x", 5<<20) } }),
			limit, "4194304", nil},
		{"configuration of another kind",
			change(func(p *picture) { p.config = func(c map[string]any) { c["rootfs"] = "x"; c["config"] = 1 } }),
			input, "configuration", nil},
		{"deep configuration", change(func(p *picture) {
			p.config = func(c map[string]any) {
				c["x"] = json.RawMessage(strings.Repeat("[", 9000) + strings.Repeat("]", 9000))
				c["rootfs"] = nil
			}
		}), integrity, ".", nil},
		{"label with escape sequences", func(t *testing.T) picture {
			return picture{labels: map[string]string{"\x1b[31mred\u202e": "x"},
				layers: []blobOf{gzipLayer(t, tarOf(t, goodFiles()...))}}
		}, input, ".", []string{"validate", "unpack"}},
		{"10,000 labels", func(t *testing.T) picture {
			p := picture{labels: map[string]string{}, layers: []blobOf{gzipLayer(t, tarOf(t, goodFiles()...))}}
			for i := range 10_000 {
				p.labels[fmt.Sprint("label", i)] = "x"
			}
			return p
		}, input, ".", []string{"validate", "unpack"}},
		{"database label of a directory", func(t *testing.T) picture {
			p := bundlePicture(t, goodFiles()...)
			p.labels["operators.operatorframework.io.index.database.v1"] = "/manifests"
			return p
		}, input, ".", []string{"validate", "unpack"}},
		{"database that is none", func(t *testing.T) picture {
			p := bundlePicture(t, append(goodFiles(), file("database/index.db", "nonsense"))...)
			p.labels["operators.operatorframework.io.index.database.v1"] = "/database/index.db"
			return p
		}, input, "database", []string{"validate", "unpack"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			p := c.make(t)
			p.put(b, "image")
			r := testregistry.New(t)
			p.add(t, r, "acme/foo", "v1")
			ref := r.Host() + "/acme/foo:v1"
			for _, args := range [][]string{{"render", "oci:image:v1"}, {"render", ref, ref, "-o", "ndjson"},
				{"bundle", "validate", ref}, {"bundle", "unpack", "oci:image:v1", "-o", "out"},
				{"bundle", "unpack", ref, "-o", "out", "--skip-validation"}} {
				if slices.Contains(c.not, args[1]) || slices.Contains(c.not, args[len(args)-1]) {
					continue
				}
				b.refused(c.class, c.text, append([]string{"--use-http", "--no-cache"}, args...)...)
			}
		})
	}
	// annotations.yaml takes precedence over the labels, and paths that lead outside are never followed.
	for name, p := range map[string]picture{"good": bundlePicture(t, goodFiles()...),
		"label with dots": labels("manifests", "../../etc/")(t)} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			p.put(b, "image")
			b.accepted("render", "oci:image:v1")
			b.accepted("bundle", "validate", "oci:image:v1")
			b.accepted("bundle", "unpack", "oci:image:v1", "-o", "out")
			if got := names(t, filepath.Join(b.dir, "out")); len(got) != 2 {
				t.Errorf("unpacked %q", got)
			}
		})
	}
}
