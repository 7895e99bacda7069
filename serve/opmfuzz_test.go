package serve_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/internal/opmformat"
	"github.com/operator-bindery/bindery/serve"
)

// mapFS reads a directory into memory.
func mapFS(t testing.TB, dir string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = &fstest.MapFile{Data: text, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// serveWhatFits reads a catalog without blobs with a cache, whatever that holds. If it is taken, everything in it can be read.
func serveWhatFits(t *testing.T, cache fs.FS, format string) {
	s, err := serve.ReadOPM(t.Context(), fstest.MapFS{}, cache, format, slog.New(slog.DiscardHandler))
	if err != nil {
		return
	}
	serve.New(serve.Limits{}, nil).SetStore(serve.NewStore(s.Packages()))
	serve.Dump(t, s, false)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzPogreb reads a log of anybody's, with the digest that belongs to it: nothing else stands before its entries then.
func FuzzPogreb(f *testing.F) {
	_, cache := sample(f, serve.FormatPogreb)
	const name = "pogreb.v1/db/00000-1.psg"
	log := mapFS(f, cache)[name].Data
	f.Add(log)
	f.Add(log[:600])
	f.Add(append(bytes.Clone(log), log[512:]...))
	for _, change := range [][2]string{{`"Head":"a.v1.1.0"`, `"Head":"a.v1.1.1"`}, {`"replaces":"a.v1.0.0"`, `"replaces":"a.v1.0.2"`}, {`"stable"`, `"Stable"`}, {"metas/example", "metas/../../e"}} {
		f.Add(withSums(bytes.Replace(log, []byte(change[0]), []byte(change[1]), 1)))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		log = withSums(log)
		files := fstest.MapFS{name: {Data: log}}
		dir, err := fs.Sub(files, "pogreb.v1/db")
		if err != nil {
			t.Fatal(err)
		}
		db, err := opmformat.OpenDatabase(context.Background(), dir, func(string) (opmformat.Log, error) {
			return opmformat.Log{ReaderAt: bytes.NewReader(log), Size: int64(len(log))}, nil
		})
		if err != nil {
			return
		}
		sum := fnv.New64a()
		for i := range db.Entries {
			value, err := db.Read(&db.Entries[i], nil)
			if err != nil {
				return
			}
			sum.Write([]byte(db.Entries[i].Key))
			sum.Write(value)
		}
		files["pogreb.v1/digest"] = &fstest.MapFile{Data: []byte(hex.EncodeToString(sum.Sum(nil)))}
		serveWhatFits(t, files, serve.FormatPogreb)
	})
}

// withSums gives the records of a log the sums that they should have, as far as it can be followed.
func withSums(log []byte) []byte {
	log = bytes.Clone(log)
	for at := 512; at+6 <= len(log); {
		n := 6 + int(log[at]) + int(log[at+1])<<8 + int(log[at+2]) + int(log[at+3])<<8 + int(log[at+4])<<16 + int(log[at+5]&0x7f)<<24
		if n > len(log)-at-4 {
			break
		}
		binary.LittleEndian.PutUint32(log[at+n:], crc32.ChecksumIEEE(log[at:at+n]))
		at += n + 4
	}
	return log
}

// FuzzOpmJSON reads an index and an answer of anybody's, with the digest that belongs to them.
func FuzzOpmJSON(f *testing.F) {
	_, cache := sample(f, serve.FormatJSON)
	files := mapFS(f, cache)
	index, answer := string(files["cache/packages.json"].Data), string(files["cache/b_only_b.v1.0.0.json"].Data)
	f.Add(index, answer, `{"schema":"x"}`)
	b := index[strings.LastIndex(index, `"b":`):]
	f.Add("{"+b, answer, `[]`)
	f.Add(strings.Replace("{"+b, "b.v1.0.0", "b.v1", 1), answer, ``)
	f.Add("{"+b, `{"csvName":"b.v1.0.0","packageName":"b","channelName":"only","providedApis":[null]}`, `{"a":{"b":[1,null]}}`)
	f.Fuzz(func(t *testing.T, index, answer, custom string) {
		files := fstest.MapFS{
			"cache/packages.json": {Data: []byte(index), Mode: 0o644}, "cache/b_only_b.v1.0.0.json": {Data: []byte(answer), Mode: 0o644},
			"cache/metas/example/b/0.json": {Data: []byte(custom), Mode: 0o644},
		}
		sum := fnv.New64a()
		for _, dir := range []string{"", "cache"} {
			var tree fs.FS = fstest.MapFS{}
			if dir != "" {
				tree, _ = fs.Sub(files, dir)
			}
			nodes, err := opmformat.NodesOf(t.Context(), tree)
			if err == nil {
				err = opmformat.WriteNodes(t.Context(), sum, nodes)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		files["digest"] = &fstest.MapFile{Data: []byte(hex.EncodeToString(sum.Sum(nil))), Mode: 0o644}
		serveWhatFits(t, files, serve.FormatJSON)
	})
}
