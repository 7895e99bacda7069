//go:build hostile

package hostile

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// builtImage is an image built by bindery, to be damaged.
type builtImage struct {
	manifest, config map[string]any
	layers           [][]byte // archives
}

// buildImage builds an image into a layout and reads it.
func buildImage(t *testing.T, b *box, more ...string) builtImage {
	t.Helper()
	b.accepted(append([]string{"build", "catalog", "cat", "-t", "example.com/a:v1", "--server", "none", "--output",
		"oci:good:v1"}, more...)...)
	blob := func(d any) []byte {
		_, sum, _ := strings.Cut(d.(map[string]any)["digest"].(string), ":")
		content, err := os.ReadFile(filepath.Join(b.dir, "good/blobs/sha256", sum))
		check(t, err)
		return content
	}
	parse := func(text []byte) (v map[string]any) {
		check(t, json.Unmarshal(text, &v))
		return v
	}
	index, err := os.ReadFile(filepath.Join(b.dir, "good/index.json"))
	check(t, err)
	var i builtImage
	i.manifest = parse(blob(parse(index)["manifests"].([]any)[0]))
	i.config = parse(blob(i.manifest["config"]))
	for _, l := range i.manifest["layers"].([]any) {
		z, err := gzip.NewReader(bytes.NewReader(blob(l)))
		check(t, err)
		archive, err := io.ReadAll(z)
		check(t, err)
		i.layers = append(i.layers, archive)
	}
	return i
}

// changed returns the image with its files replaced by the results of change; nil removes a file. All digests of the
// result are valid.
func (i builtImage) changed(t *testing.T, change func(name string, content []byte) []byte) picture {
	t.Helper()
	var p picture
	same := true
	for _, l := range i.layers {
		var out bytes.Buffer
		w, r := tar.NewWriter(&out), tar.NewReader(bytes.NewReader(l))
		for {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			check(t, err)
			content, err := io.ReadAll(r)
			check(t, err)
			if h.Typeflag == tar.TypeReg {
				old := content
				content = change(h.Name, old)
				if same = same && bytes.Equal(old, content); content == nil {
					continue
				}
				h.Size = int64(len(content))
			}
			check(t, w.WriteHeader(h))
			_, err = w.Write(content)
			check(t, err)
		}
		check(t, w.Close())
		p.layers = append(p.layers, gzipLayer(t, out.Bytes()))
	}
	if same {
		t.Error("nothing was changed")
	}
	p.config = func(m map[string]any) {
		for k, v := range i.config {
			if k != "rootfs" {
				m[k] = v
			}
		}
	}
	p.manifest = func(m map[string]any) {
		for n, l := range i.manifest["layers"].([]any) {
			m["layers"].([]any)[n].(map[string]any)["annotations"] = l.(map[string]any)["annotations"]
		}
	}
	return p
}

// Damaged or expensive caches in opm's formats are reported as invalid, quickly.
func TestHostileCachesOfOPM(t *testing.T) {
	t.Parallel()
	b := pushBox(t)
	pogreb, jsons := buildImage(t, b, "--cache", "opm-pogreb"), buildImage(t, b, "--cache", "opm-json")
	one := func(suffix string, f func([]byte) []byte) func(string, []byte) []byte {
		return func(name string, content []byte) []byte {
			if strings.HasSuffix(name, suffix) {
				return f(content)
			}
			return content
		}
	}
	both := func(a, b func(string, []byte) []byte) func(string, []byte) []byte {
		return func(name string, content []byte) []byte { return b(name, a(name, content)) }
	}
	counts := func(level uint8, keys, buckets, split uint32) func(string, []byte) []byte {
		return one("db/index.pmt", func(old []byte) []byte {
			out := bytes.NewBuffer(bytes.Clone(old[:512]))
			check(t, gob.NewEncoder(out).Encode(struct {
				Level                                 uint8
				NumKeys, NumBuckets, SplitBucketIndex uint32
			}{level, keys, buckets, split}))
			return out.Bytes()
		})
	}
	header := func(old []byte, n int) []byte { return append(bytes.Clone(old[:512]), make([]byte, n)...) }
	next := func(file []byte, bucket int, to uint64) []byte {
		binary.LittleEndian.PutUint64(file[512+bucket*512+31*16:], to)
		return file
	}
	type damage struct {
		name   string
		of     builtImage
		change func(string, []byte) []byte
	}
	cases := []damage{
		{"a loop of buckets", pogreb, both(
			one("db/main.pix", func(c []byte) []byte { return next(bytes.Clone(c), 0, 512) }),
			one("db/overflow.pix", func(c []byte) []byte { return next(next(header(c, 1024), 0, 1024), 1, 512) }))},
		{"a bucket beyond the end", pogreb,
			one("db/main.pix", func(c []byte) []byte { return next(bytes.Clone(c), 0, 1<<63) })},
		{"131,072 buckets", pogreb,
			both(counts(17, 0, 1<<17, 0), one("db/main.pix", func(c []byte) []byte { return header(c, 60<<20) }))},
		{"100,000 buckets", pogreb, both(counts(16, 4, 100_000, 100_000-1<<16),
			one("db/main.pix", func(c []byte) []byte { return header(c, 100_000*512) }))},
		{"4 billion buckets", pogreb, counts(31, 1<<31, 1<<32-1, 1<<31-1)},
		{"level of 255", pogreb, counts(255, 1, 1, 0)},
		{"gob that promises much", pogreb, one("db/index.pmt", func(c []byte) []byte {
			return append(bytes.Clone(c[:512]), 0xf8, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
		})},
		{"gob of noise", pogreb, one("db/db.pmt", func(c []byte) []byte {
			return append(bytes.Clone(c[:512]), bytes.Repeat([]byte{0xff, 0x83}, 500_000)...)
		})},
		{"a short log", pogreb, one(".psg", func(c []byte) []byte { return c[:600] })},
		{"an empty log", pogreb, one(".psg", func(c []byte) []byte { return []byte{} })},
		{"a log of 60 MB", pogreb,
			one(".psg", func(c []byte) []byte { return append(bytes.Clone(c), make([]byte, 60<<20)...) })},
		{"no table", pogreb, one("db/main.pix", func([]byte) []byte { return nil })},
		{"a digest of 1 MB", pogreb,
			one("pogreb.v1/digest", func([]byte) []byte { return bytes.Repeat([]byte("\x1b"), 1<<20) })},
		{"another digest", jsons, one("cache/digest", func([]byte) []byte { return []byte("\x1b[31m00") })},
		{"deep packages.json", jsons,
			one("packages.json", func([]byte) []byte { return bytes.Repeat([]byte("["), 4<<20) })},
		{"no packages.json", jsons, one("packages.json", func([]byte) []byte { return nil })},
	}
	for seed := range 10 {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		cases = append(cases, damage{fmt.Sprintf("noise %d", seed), pogreb, func(name string, c []byte) []byte {
			if !strings.Contains(name, "pogreb.v1/db/") || strings.HasSuffix(name, "psg.pmt") {
				return c
			}
			c = bytes.Clone(c)
			for range 3 { // in the used part
				c[random.IntN(min(len(c), 1400))] ^= byte(1 + random.IntN(255))
			}
			return c
		}})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			c.of.changed(t, c.change).put(b, "image")
			for _, args := range [][]string{{"verify", "oci:image:v1"}, {"inspect", "oci:image:v1", "--deep"}} {
				before := b.snapshot()
				o := b.run(args...)
				b.inBudget(args[0], o)
				b.unchanged(args[0], before)
				if bad := strings.Contains(o.stdout,
					"cache"); args[0] == "verify" && (o.status != 1 || !bad || !strings.Contains(o.stdout,
					"different")) {
					t.Errorf("verify: %d, %.500q", o.status, o.stdout+o.stderr)
				}
				if strings.ContainsAny(o.stdout+o.stderr, "\x1b\x00") || len(o.stdout+o.stderr) > 20_000 {
					t.Errorf("%s: %d bytes, or control characters: %.500q", args[0], len(o.stdout+o.stderr),
						o.stdout+o.stderr)
				}
			}
		})
	}
}

// inspect and verify stop early at bombs in the layers of an image; unneeded files are reported and not read.
func TestBombsInCatalogImages(t *testing.T) {
	said := map[string]string{"kind": "packages", "packages": "foo"}
	squeezed := func(t *testing.T, size int64) picture {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, err := io.Copy(w, bigEntry(t, "configs/foo/big.yaml", size))
		check(t, err)
		check(t, w.Close())
		p := catalogPicture(t, said, catalogFiles()...)
		p.layers = append(p.layers, blobOf{z.Bytes(), tarType + "+gzip", ""})
		return p
	}
	sparse := func(t *testing.T) picture {
		e := entryOf(tar.Header{Name: "configs/foo/x", Typeflag: tar.TypeReg, Format: tar.FormatPAX,
			PAXRecords: map[string]string{"comment": "x"}})
		p := catalogPicture(t, said, catalogFiles(e)...)
		archive := tarOf(t, catalogFiles()...)
		var b bytes.Buffer
		b.Write(archive[:len(archive)-1024])
		h := make([]byte, 512)
		copy(h, "configs/foo/sparse.yaml")
		copy(h[100:], "0000644\x000000000\x000000000\x0000000000000\x0000000000000\x00")
		h[156] = 'S'
		copy(h[257:], "ustar  \x00")
		copy(h[386:], "00000000000\x0000000000000\x00")
		copy(h[483:], "77777777777\x00")
		sum := 8 * 32
		for i, c := range h {
			if i < 148 || i >= 156 {
				sum += int(c)
			}
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		b.Write(h)
		b.Write(make([]byte, 1024))
		p.layers = []blobOf{gzipLayer(t, b.Bytes())}
		return p
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T) picture
		text string
	}{
		{"a gzip bomb", func(t *testing.T) picture { return squeezed(t, 700<<20) }, "ratio|uncompressed|bytes|times"},
		{"a sparse file", sparse, "sparse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			c.make(t).put(b, "image")
			b.write("compose.yaml", "references:\n- {name: foo, image: \"oci:image:v1\"}\n")
			b.refused(limit, c.text, "verify", "oci:image:v1")
			b.refused(limit, c.text, "inspect", "oci:image:v1", "--deep")
			b.refused(limit, c.text, "build", "compose", "compose.yaml", "--validate", "--server", "none", "--cache",
				"none", "-t", "example.com/a:v1", "--no-cache", "--dry-run")
			b.accepted("inspect", "oci:image:v1")
		})
	}
}
