package serve_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/serve"
)

// cacheBytes is a cache file as docs/explain/caches.md describes it, to be damaged.
type cacheBytes struct {
	header, records, index []byte
}

func splitCache(b []byte) cacheBytes {
	at := binary.LittleEndian.Uint64(b[24:])
	return cacheBytes{bytes.Clone(b[:104]), bytes.Clone(b[104:at]), bytes.Clone(b[at:])}
}

// sealed assembles the file with correct sizes and checksums, so that only the content is wrong.
func (c cacheBytes) sealed() []byte {
	size := len(c.header) + len(c.records) + len(c.index)
	binary.LittleEndian.PutUint64(c.header[16:], uint64(size))
	binary.LittleEndian.PutUint64(c.header[24:], uint64(len(c.header)+len(c.records)))
	binary.LittleEndian.PutUint64(c.header[32:], uint64(len(c.index)))
	sum := sha256.Sum256(c.index)
	copy(c.header[40:], sum[:])
	return c.sealedHeader()
}

// sealedHeader assembles the file with an arbitrary header and its correct checksum.
func (c cacheBytes) sealedHeader() []byte {
	sum := sha256.Sum256(c.header[:72])
	copy(c.header[72:], sum[:])
	return slices.Concat(c.header, c.records, c.index)
}

// places returns the offsets of the parts of an index.
func (c cacheBytes) places() map[string]int {
	at := 0
	places := map[string]int{}
	number := func() int {
		v, n := binary.Uvarint(c.index[at:])
		at += n
		return int(v)
	}
	text := func() { n := number(); at += n }
	record := func() { number(); number(); at += 4 }
	list := func(name string, each func(i int)) {
		places[name] = at
		for i := range number() {
			each(i)
		}
	}
	places["name"] = at
	text()
	places["flag"] = at
	at++
	places["default"] = at
	text()
	places["record"] = at
	record()
	places["record crc"] = at - 4
	list("sources", func(int) {
		places["source name"] = at
		text()
		places["source size"] = at
		number()
		places["source digest"] = at
		at += 32
		places["source packages"] = at
		number()
	})
	list("bundles", func(i int) {
		places["bundle name"] = at
		text()
		places["bundle flag"] = at
		at++
		places["light"] = at
		record()
		places["light crc"] = at - 4
		places["heavy"] = at
		record()
		places["heavy crc"] = at - 4
	})
	list("channels", func(int) {
		places["channel name"] = at
		text()
		places["head"] = at
		number()
		list("entries", func(int) {
			places["entry"] = at
			number()
			text()
			text()
			list("skips", func(int) { text() })
		})
	})
	list("APIs", func(int) {
		text()
		text()
		text()
		list("providers", func(int) {
			places["provider"] = at
			number()
		})
	})
	list("customs", func(int) {
		text()
		places["custom"] = at
		record()
	})
	places["end"] = at
	return places
}

// number replaces the number at a place of the index.
func (c cacheBytes) number(place string, v uint64) []byte {
	at, ok := c.places()[place]
	if !ok {
		panic(place)
	}
	_, n := binary.Uvarint(c.index[at:])
	c.index = slices.Concat(c.index[:at], binary.AppendUvarint(nil, v), c.index[at+n:])
	return c.sealed()
}

// text replaces the string at a place of the index.
func (c cacheBytes) text(place, s string) []byte {
	at := c.places()[place]
	length, n := binary.Uvarint(c.index[at:])
	c.index = slices.Concat(c.index[:at], binary.AppendUvarint(nil, uint64(len(s))), []byte(s),
		c.index[at+n+int(length):])
	return c.sealed()
}

// flip changes a byte at a place of the index.
func (c cacheBytes) flip(place string) []byte {
	c.index[c.places()[place]] ^= 0x02
	return c.sealed()
}

// scene is a catalog with its cache.
type scene struct {
	t              *testing.T
	catalog, cache string
	m              model
}

// theCatalog is a constant small catalog with everything that a cache file can contain.
func theCatalog() *declcfg.Catalog {
	r := newRandom(3)
	c := &declcfg.Catalog{}
	for _, name := range []string{"a", "b", "d"} {
		r.pkg(c, name)
		r.custom(c, name)
	}
	r.custom(c, "")
	return c
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, catalog: t.TempDir(), cache: filepath.Join(t.TempDir(), "cache"), m: model{theCatalog()}}
	newRandom(3).writeAs(t, s.catalog, s.m.catalog, filePerPackage, ".json")
	s.fill()
	return s
}

// copy copies the scene to other directories.
func (s *scene) copy(t *testing.T) *scene {
	t.Helper()
	dir := t.TempDir()
	c := &scene{t: t, catalog: filepath.Join(dir, "catalog"), cache: filepath.Join(dir, "cache"), m: s.m}
	c.must(os.CopyFS(c.catalog, os.DirFS(s.catalog)))
	c.must(os.CopyFS(c.cache, os.DirFS(s.cache)))
	return c
}

func (s *scene) fill() {
	s.t.Helper()
	if err := load(s.t, directorySource(s.t, s.catalog),
		serve.LoadOptions{CacheDir: s.cache, MustWrite: true}).Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) path(name string) string { return filepath.Join(s.cache, name) }

func (s *scene) read(name string) []byte {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name))
	s.must(err)
	return b
}

func (s *scene) write(name string, b []byte) {
	s.t.Helper()
	s.must(os.WriteFile(s.path(name), b, 0o644))
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// harm is the effect of a cache's damage.
type harm int

const (
	noticed  harm = iota // refused if integrity is enforced, otherwise repaired or not used
	harmless             // no damage at all
	blocking             // detected, and the obstacle is not removed
)

type damage struct {
	name string
	do   func(s *scene)
	harm harm
}

// changed is damage to the bytes of one cache file.
func changed(name string, change func(b []byte) []byte) damage {
	return damage{name, func(s *scene) { s.write("a.cache", change(s.read("a.cache"))) }, noticed}
}

// inside is damage inside a file with correct checksums.
func inside(name string, change func(c cacheBytes) []byte) damage {
	return changed(name, func(b []byte) []byte { return change(splitCache(b)) })
}

func damages() []damage {
	list := []damage{
		changed("all zero", func(b []byte) []byte { return make([]byte, len(b)) }),
		changed("all ones", func(b []byte) []byte { return bytes.Repeat([]byte{0xff}, len(b)) }),
		changed("text", func([]byte) []byte { return []byte("not found\n") }),
		changed("another program's magic",
			func(b []byte) []byte { return append([]byte("SQLite format 3\x00"), b[16:]...) }),
		changed("one byte more", func(b []byte) []byte { return append(b, 0) }),
		changed("1 MiB of zeros more", func(b []byte) []byte { return append(b, make([]byte, 1<<20)...) }),
		changed("twice", func(b []byte) []byte { return append(b, b...) }),
		changed("first half is zero", func(b []byte) []byte { clear(b[:len(b)/2]); return b }),
		changed("second half is zero", func(b []byte) []byte { clear(b[len(b)/2:]); return b }),
		changed("one page is zero", func(b []byte) []byte { clear(b[512:1024]); return b }),
		changed("without its first byte", func(b []byte) []byte { return b[1:] }),
		changed("line ends changed",
			func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }),
		changed("not UTF-8 made UTF-8",
			func(b []byte) []byte { return []byte(strings.ToValidUTF8(string(b), "\ufffd")) }),
		changed("an older half and a newer half",
			func(b []byte) []byte { return slices.Concat(b[:len(b)/2], bytes.ToUpper(b[len(b)/2:])) }),

		inside("older version", func(c cacheBytes) []byte { c.header[8] = 0; return c.sealed() }),
		inside("newer version", func(c cacheBytes) []byte { c.header[8] = 2; return c.sealed() }),
		inside("version of four bytes", func(c cacheBytes) []byte { c.header[11] = 0x80; return c.sealed() }),
		inside("size is too small", func(c cacheBytes) []byte { c.sealed(); c.header[16]--; return c.sealedHeader() }),
		inside("size is huge", func(c cacheBytes) []byte { c.sealed(); c.header[23] = 0xff; return c.sealedHeader() }),
		inside("index is at 0", func(c cacheBytes) []byte { clear(c.header[24:32]); return c.sealedHeader() }),
		inside("index is behind the end", func(c cacheBytes) []byte { c.header[31] = 0x7f; return c.sealedHeader() }),
		inside("index is huge", func(c cacheBytes) []byte { c.header[39] = 0x7f; return c.sealedHeader() }),
		inside("index wraps around", func(c cacheBytes) []byte {
			binary.LittleEndian.PutUint64(c.header[32:], -binary.LittleEndian.Uint64(c.header[24:]))
			return c.sealedHeader()
		}),
		inside("index is empty", func(c cacheBytes) []byte { c.index = nil; return c.sealed() }),
		inside("index has bytes left over",
			func(c cacheBytes) []byte { c.index = append(c.index, 0); return c.sealed() }),
		inside("index ends early", func(c cacheBytes) []byte { c.index = c.index[:len(c.index)-1]; return c.sealed() }),
		inside("index has a long form of a number", func(c cacheBytes) []byte {
			c.index = slices.Concat([]byte{0x81, 0x00}, c.index[1:])
			return c.sealed()
		}),
		inside("records have a gap after them",
			func(c cacheBytes) []byte { c.records = append(c.records, 0); return c.sealed() }),
		inside("records are missing", func(c cacheBytes) []byte { c.records = nil; return c.sealed() }),
		inside("package is another", func(c cacheBytes) []byte { return c.text("name", "b") }),
		inside("package is none", func(c cacheBytes) []byte { return c.text("name", "") }),
		inside("package leads out", func(c cacheBytes) []byte { return c.text("name", "../../a") }),
		inside("package has no olm.package",
			func(c cacheBytes) []byte { c.index[c.places()["flag"]] = 0; return c.sealed() }),
		inside("flag is 2", func(c cacheBytes) []byte { c.index[c.places()["flag"]] = 2; return c.sealed() }),
		inside("default channel is not there", func(c cacheBytes) []byte { return c.text("default", "nosuch") }),
		inside("default channel is empty", func(c cacheBytes) []byte { return c.text("default", "") }),
		inside("no sources", func(c cacheBytes) []byte {
			p := c.places()
			c.index = slices.Concat(c.index[:p["sources"]], []byte{0}, c.index[p["bundles"]:])
			return c.sealed()
		}),
		inside("source leads out", func(c cacheBytes) []byte { return c.text("source name", "../../../etc/passwd") }),
		inside("source is absolute", func(c cacheBytes) []byte { return c.text("source name", "/etc/passwd") }),
		inside("source is a directory", func(c cacheBytes) []byte { return c.text("source name", "a") }),
		inside("source has no name", func(c cacheBytes) []byte { return c.text("source name", "") }),
		inside("source is of another package",
			func(c cacheBytes) []byte { return c.text("source name", "b/catalog.json") }),
		inside("source has another size", func(c cacheBytes) []byte { return c.number("source size", 7) }),
		inside("source has a huge size", func(c cacheBytes) []byte { return c.number("source size", 1<<63) }),
		inside("source has another digest", func(c cacheBytes) []byte { return c.flip("source digest") }),
		inside("source has parts of no package", func(c cacheBytes) []byte { return c.number("source packages", 0) }),
		inside("source has parts of many packages",
			func(c cacheBytes) []byte { return c.number("source packages", 99) }),
		inside("entry is of no bundle", func(c cacheBytes) []byte { return c.number("entry", 1<<20) }),
		inside("head is no entry", func(c cacheBytes) []byte { return c.number("head", 1<<31) }),
		inside("provider is no bundle", func(c cacheBytes) []byte { return c.number("provider", 1<<32) }),
		inside("bundle has another name", func(c cacheBytes) []byte { return c.text("bundle name", "") }),
		inside("channel has no name", func(c cacheBytes) []byte { return c.text("channel name", "") }),
		inside("record begins elsewhere", func(c cacheBytes) []byte { return c.number("record", 105) }),
		inside("record is behind the end", func(c cacheBytes) []byte { return c.number("light", 1<<40) }),
		inside("heavy record is the light one", func(c cacheBytes) []byte { return c.number("heavy", 104) }),
		inside("custom record is at 0", func(c cacheBytes) []byte { return c.number("custom", 0) }),
		inside("checksum of the package", func(c cacheBytes) []byte { return c.flip("record crc") }),
		inside("checksum of a light record", func(c cacheBytes) []byte { return c.flip("light crc") }),
		inside("checksum of a heavy record", func(c cacheBytes) []byte { return c.flip("heavy crc") }),
	}
	for i, place := range []string{"sources", "bundles", "channels", "entries", "skips", "APIs", "providers",
		"customs"} {
		for _, n := range []uint64{0, 1 << (20 + 6*i)} {
			list = append(list, inside(fmt.Sprintf("%s: %d of them", place, n), func(c cacheBytes) []byte {
				if v, _ := binary.Uvarint(c.index[c.places()[place]:]); v == n {
					n = v + 1
				}
				return c.number(place, n)
			}))
		}
	}
	for _, n := range []int{0, 8, 103, 104, 105} {
		list = append(list, changed(fmt.Sprintf("ends after %d bytes", n), func(b []byte) []byte { return b[:n] }))
	}
	for _, part := range []int{1, 5, 8} {
		list = append(list,
			changed(fmt.Sprintf("ends after %d ninths", part), func(b []byte) []byte { return b[:len(b)*part/9] }))
	}
	for part := range 12 {
		list = append(list, changed(fmt.Sprintf("a bit in part %d of 12", part), func(b []byte) []byte {
			b[len(b)*part/12] ^= 1 << (part % 8)
			return b
		}))
	}
	return append(list, directoryDamages()...)
}

// directoryDamages are damages to files as a whole. Those that need FIFOs and the like are in another file.
func directoryDamages() []damage {
	remove := func(s *scene, name string) { s.t.Helper(); s.must(os.Remove(s.path(name))) }
	rename := func(s *scene, from, to string) { s.t.Helper(); s.must(os.Rename(s.path(from), s.path(to))) }
	link := func(s *scene, target string) { remove(s, "a.cache"); s.must(os.Symlink(target, s.path("a.cache"))) }
	list := []damage{
		{"as it was filled", func(*scene) {}, harmless},
		{"removed", func(s *scene) { remove(s, "a.cache") }, noticed},
		{"all removed", func(s *scene) { s.must(os.RemoveAll(s.cache)); s.must(os.Mkdir(s.cache, 0o755)) }, noticed},
		{"no directory", func(s *scene) { s.must(os.RemoveAll(s.cache)) }, noticed},
		{"swapped", func(s *scene) {
			rename(s, "a.cache", "x")
			rename(s, "b.cache", "a.cache")
			rename(s, "x", "b.cache")
		}, noticed},
		{"one in the place of another", func(s *scene) { s.write("a.cache", s.read("b.cache")) }, noticed},
		{"one of no package in the place of another", func(s *scene) { s.write("a.cache", s.read("_.cache")) },
			noticed},
		{"one copied", func(s *scene) { s.write("a-copy.cache", s.read("a.cache")) }, noticed},
		{"renamed", func(s *scene) { rename(s, "a.cache", "A.cache") }, noticed},
		{"that of a package which is not there", func(s *scene) {
			s.write("gone.cache", splitCache(s.read("a.cache")).text("name", "gone"))
		}, noticed},
		{"a file of odd name", func(s *scene) { s.write("\x1b[31m\n.cache", []byte("x")) }, noticed},
		{"leftovers of a killed writer", func(s *scene) { s.write(".a.cache.bindery-0123", []byte("x")) }, harmless},
		{"a foreign file", func(s *scene) { s.write("mine.txt", []byte("x")) }, blocking},
		{"a foreign directory", func(s *scene) { s.must(os.Mkdir(s.path("mine"), 0o755)) }, blocking},
		{"a directory in the place of a file",
			func(s *scene) { remove(s, "a.cache"); s.must(os.Mkdir(s.path("a.cache"), 0o755)) }, blocking},
		{"a file in the place of the directory", func(s *scene) {
			s.must(os.RemoveAll(s.cache))
			s.must(os.WriteFile(s.cache, []byte("x"), 0o644))
		}, blocking},
		{"link to itself", func(s *scene) { link(s, "a.cache") }, blocking},
		{"link to nothing", func(s *scene) { link(s, "nothing") }, blocking},
		{"link to another", func(s *scene) { link(s, "b.cache") }, blocking},
		{"link out", func(s *scene) { link(s, filepath.Join(s.catalog, "a", "catalog.json")) }, blocking},
		{"link to a good file that is hidden", func(s *scene) {
			rename(s, "a.cache", ".a")
			s.must(os.Symlink(".a", s.path("a.cache")))
		}, harmless},
		{"hard link", func(s *scene) { s.must(os.Link(s.path("a.cache"), s.path(".a"))) }, harmless},
		{"directory is a link", func(s *scene) {
			s.must(os.Rename(s.cache, s.cache+"-real"))
			s.must(os.Symlink(s.cache+"-real", s.cache))
		}, harmless},
		{"cache of another catalog", func(s *scene) {
			other := newRandom(4)
			c := &declcfg.Catalog{}
			other.pkg(c, "a")
			other.pkg(c, "b")
			s.refill(c)
		}, noticed},
		{"cache of an older catalog", func(s *scene) {
			c := theCatalog()
			c.Packages[0].Description += " as it was"
			s.refill(c)
		}, noticed},
		{"one file is older", func(s *scene) {
			now := s.read("b.cache")
			c := theCatalog()
			c.Bundles[0].RelatedImages = nil
			c.Packages[0].Description += " as it was"
			s.refill(c)
			s.write("b.cache", now)
		}, noticed},
		{"sparse and huge", func(s *scene) { s.must(os.Truncate(s.path("a.cache"), 1<<40)) }, noticed},
		{"sparse, huge and sealed", func(s *scene) {
			c := splitCache(s.read("a.cache"))
			const size = 1 << 40
			c.sealed()
			binary.LittleEndian.PutUint64(c.header[16:], size)
			binary.LittleEndian.PutUint64(c.header[24:], size-uint64(len(c.index)))
			c.sealedHeader()
			s.write("a.cache", c.header)
			s.must(os.Truncate(s.path("a.cache"), size-int64(len(c.index))))
			f, err := os.OpenFile(s.path("a.cache"), os.O_WRONLY|os.O_APPEND, 0)
			s.must(err)
			_, err = f.Write(c.index)
			s.must(errors.Join(err, f.Close()))
		}, noticed},
		{"a thousand files more", func(s *scene) {
			for i := range 1000 {
				s.write(fmt.Sprintf("x%d.cache", i), nil)
			}
		}, noticed},
	}
	return append(list, systemDamages()...)
}

// refill fills the cache from another catalog.
func (s *scene) refill(c *declcfg.Catalog) {
	s.t.Helper()
	now := s.catalog
	s.catalog = s.t.TempDir()
	newRandom(3).writeAs(s.t, s.catalog, c, filePerPackage, ".json")
	s.must(os.RemoveAll(s.cache))
	s.fill()
	s.catalog = now
}

// None of more than a hundred kinds of damage gives a wrong answer, and none prevents serving the catalog unless
// integrity is enforced.
func TestDamagedCacheGivesNoWrongAnswer(t *testing.T) {
	server := serve.New(serve.Limits{}, nil)
	client := startServer(t, server)
	good := newScene(t)
	// The answers of the undamaged cache equal the model's, and all later answers must equal these.
	server.SetStore(load(t, directorySource(t, good.catalog), serve.LoadOptions{CacheDir: good.cache}))
	questions := good.m.summary()
	want := make([][]proto.Message, len(questions))
	for i, q := range questions {
		if d := client.differs(t.Context(), good.m, q); d != "" {
			t.Fatal(d)
		}
		var err error
		if want[i], err = client.ask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	right := func(t *testing.T) {
		t.Helper()
		for i, q := range questions {
			if got, err := client.ask(t.Context(), q); err != nil || !slices.EqualFunc(got, want[i], proto.Equal) {
				t.Errorf("%s: %v: got %s, want %s", q, err, clip(got), clip(want[i]))
			}
		}
	}
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			s := good.copy(t)
			d.do(s)
			store, err := serve.Load(t.Context(), directorySource(t, s.catalog),
				serve.LoadOptions{CacheDir: s.cache, EnforceIntegrity: true})
			if err == nil {
				server.SetStore(store)
				right(t)
			}
			if refused := errors.Is(err, serve.ErrIntegrity); refused != (d.harm != harmless) {
				t.Fatalf("enforced: %v", err)
			}
			var log bytes.Buffer
			o := serve.LoadOptions{CacheDir: s.cache, Log: slog.New(slog.NewTextHandler(&log, nil))}
			server.SetStore(load(t, directorySource(t, s.catalog), o))
			right(t)
			if said := strings.Contains(log.String(), "building cache"); said != (d.harm != harmless) {
				t.Errorf("log: %s", log.String())
			}
			if strings.ContainsRune(log.String(), 0x1b) {
				t.Errorf("a control character is in the log: %q", log.String())
			}
			if d.harm == blocking {
				return
			}
			// The damage has been repaired.
			o = serve.LoadOptions{CacheDir: s.cache, EnforceIntegrity: true, Log: failingLog(t)}
			server.SetStore(load(t, directorySource(t, s.catalog), o))
			right(t)
		})
	}
}
