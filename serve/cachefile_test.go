package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/operator-bindery/bindery/internal/api"
)

func TestEncodingIsDeterministic(t *testing.T) {
	want := encodeSample(t, sampleA)
	for range 20 {
		if got := encodeSample(t, sampleA); !bytes.Equal(got, want) {
			t.Fatal("two encodings of one package differ")
		}
	}
	c := parse(t, sampleA)
	slices.Reverse(c.Channels)
	slices.Reverse(c.Bundles)
	got, err := EncodePackage(c, nil, SourceFile{Name: "a/catalog.yaml", Size: int64(len(sampleA)), Packages: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the order of channels and bundles in the catalog changes the file")
	}
}

func TestEncodePackageRefuses(t *testing.T) {
	skeleton := parse(t, sampleB)
	skeleton.Bundles[0].Properties = slices.DeleteFunc(skeleton.Bundles[0].Properties, isObject)
	skeleton.Bundles[0].HasObjects = true
	if _, err := EncodePackage(skeleton, nil); err == nil {
		t.Error("a skeleton was encoded")
	}
	if _, err := EncodePackage(parse(t, sampleA+sampleB), nil); err == nil {
		t.Error("two packages were encoded as one")
	}
	noHead := parse(t, sampleB)
	noHead.Channels[0].Entries[0].Replaces = "b.v1.0.0"
	if _, err := EncodePackage(noHead, nil); err == nil {
		t.Error("a channel without a head was encoded")
	}
}

// open opens and verifies a file as a starting server does.
func open(b []byte) error {
	p, err := openBytes(b)
	if err != nil {
		return err
	}
	return p.Verify(context.Background())
}

func TestEveryChangedByteIsNoticed(t *testing.T) {
	file := encodeSample(t, sampleA)
	if err := open(file); err != nil {
		t.Fatal(err)
	}
	for i := range file {
		for _, change := range []byte{0x01, 0x80, 0xff} {
			file[i] ^= change
			if err := open(file); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
				t.Errorf("byte %d of %d changed by %#x: %v", i, len(file), change, err)
			}
			file[i] ^= change
		}
	}
}

func TestEveryTruncationIsNoticed(t *testing.T) {
	file := encodeSample(t, sampleA)
	for n := range file {
		if err := open(file[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes of %d: %v", n, len(file), err)
		}
	}
	if err := open(append(bytes.Clone(file), 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("one byte more: %v", err)
	}
}

// TestAnswersOfChangedFile changes a file while it is served: answers are right, or errors.
func TestAnswersOfChangedFile(t *testing.T) {
	file := encodeSample(t, sampleA)
	p, err := openBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	c := newCatalog(&store{packages: []*Package{p}}, 1<<20)
	r := &registry{reader: reader{budget: &budget{limit: 1 << 20, wait: 1}}}
	req := &api.GetBundleRequest{PkgName: "a", ChannelName: "stable", CsvName: "a.v1.1.0"}
	right, err := r.getBundle(t.Context(), c, req)
	if err != nil {
		t.Fatal(err)
	}
	want := right.data.Materialize()
	right.data.Free()
	lost := 0
	for i := range file {
		file[i] ^= 0x10
		got, err := r.getBundle(t.Context(), c, req)
		file[i] ^= 0x10
		switch {
		case status.Code(err) == codes.DataLoss:
			lost++
		case err != nil:
			t.Errorf("byte %d: %v", i, err)
		case !bytes.Equal(got.data.Materialize(), want):
			t.Errorf("byte %d: a wrong answer", i)
		}
		got.data.Free()
	}
	if lost == 0 {
		t.Error("no change was noticed")
	}
}

func FuzzOpenPackage(f *testing.F) {
	f.Add(encodeSample(f, sampleA))
	f.Add(encodeSample(f, sampleB))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := openBytes(b)
		if err != nil {
			return
		}
		if err := p.Verify(t.Context()); err != nil {
			return
		}
		askEverything(t, p)
	})
}

// FuzzIndex reads indexes without a checksum.
func FuzzIndex(f *testing.F) {
	for _, text := range []string{sampleA, sampleB, sampleNone} {
		file := encodeSample(f, text)
		var h header
		if err := h.parse(file, int64(len(file))); err != nil {
			f.Fatal(err)
		}
		f.Add(file[h.indexOffset:], h.indexOffset)
	}
	f.Fuzz(func(t *testing.T, b []byte, records uint64) {
		x, err := decodeIndex(b, records)
		if err != nil {
			return
		}
		if !bytes.Equal(x.encode(), b) {
			t.Error("an index is read that is not written like that")
		}
		if records < 1<<20 { // as much as the file of such an index has
			askEverything(t, &Package{index: *x, r: bytes.NewReader(nil)})
		}
	})
}

// askEverything requests everything in a package; the answers may be errors.
func askEverything(t *testing.T, p *Package) {
	c := newCatalog(&store{packages: []*Package{p}}, 1<<20)
	r := &registry{reader: reader{budget: &budget{limit: 1 << 20, wait: 1}}}
	send := func(a answer) error { a.data.Free(); return nil }
	get := func(a answer, _ error) { a.data.Free() }
	ctx := t.Context()
	_ = r.listPackages(ctx, c, nil, send)
	_ = r.listBundles(ctx, c, nil, send)
	get(r.getPackage(ctx, c, &api.GetPackageRequest{Name: p.name}))
	for i := range p.channels {
		ch := &p.channels[i]
		get(r.getBundleForChannel(ctx, c, &api.GetBundleInChannelRequest{PkgName: p.name, ChannelName: ch.name}))
		for j := range ch.entries {
			name := p.entryName(&ch.entries[j])
			get(r.getBundle(ctx, c, &api.GetBundleRequest{PkgName: p.name, ChannelName: ch.name, CsvName: name}))
			get(r.getBundleThatReplaces(ctx, c,
				&api.GetReplacementRequest{PkgName: p.name, ChannelName: ch.name, CsvName: name}))
			_ = r.getChannelEntriesThatReplace(ctx, c, &api.GetAllReplacementsRequest{CsvName: name}, send)
		}
	}
	for _, k := range p.gvks {
		_ = sendProviders(ctx, c, k.gvk, true, send)
		_ = sendProviders(ctx, c, k.gvk, false, send)
		get(r.getDefaultBundleThatProvides(ctx, c,
			&api.GetDefaultProviderRequest{Group: k.group, Version: k.version, Kind: k.kind}))
	}
}

// Layers contain cache files and are cached by their inputs. If the bytes of a cache file change, encoderGeneration has
// to be raised (or formatVersion, if readers are affected): otherwise the layer cache returns old layers.
func TestCacheFileIsGolden(t *testing.T) {
	got, err := EncodePackage(parse(t, sampleA), nil,
		SourceFile{Name: "a/catalog.yaml", Size: int64(len(sampleA)), Packages: 1})
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string]string{"native 1.2": "13c56fbcd57e315b1bf5a2962549b35a279e4269c48e2e76e226420b31177be9"}
	if sum := fmt.Sprintf("%x", sha256.Sum256(got)); golden[CacheID()] != sum {
		t.Errorf("%s: %s, want %s", CacheID(), sum, golden[CacheID()])
	}
}

// Records larger than a single read are verified completely.
func TestVerifyLargeRecords(t *testing.T) {
	text := `{"schema":"x","package":"b","data":"` + strings.Repeat("a", 3*verifyPiece) + `"}` + "\n"
	file := encodeSample(t, sampleB+"---\n"+text)
	if err := open(file); err != nil {
		t.Fatal(err)
	}
	p, err := openBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for rec := range p.records() {
		if rec.length <= verifyPiece {
			continue
		}
		for _, at := range []uint64{rec.offset, rec.offset + verifyPiece, rec.offset + uint64(rec.length) - 1} {
			damaged := bytes.Clone(file)
			damaged[at] ^= 1
			if err := open(damaged); !errors.Is(err, ErrCorrupt) {
				t.Errorf("byte %d of %d: %v", at-rec.offset, rec.length, err)
			}
			checked++
		}
	}
	if checked != 3 {
		t.Errorf("%d places were checked", checked)
	}
}

// Whenever the context ends, no file of a cache directory stays open.
func TestCacheDirIsClosedWhenItsContextEnds(t *testing.T) {
	name := CacheFileName("a")
	files := fstest.MapFS{name: {Data: encodeSample(t, sampleA), Mode: 0o644}}
	for n := int64(1); ; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		fsys := &countingFS{FS: files}
		fsys.read = func() {
			if fsys.reads.Add(1) == n {
				cancel()
			}
		}
		dir, err := readCacheDir(ctx, fsys)
		if err == nil {
			err = dir.close()
		}
		if open := fsys.open.Load(); open != 0 {
			t.Errorf("the context ends in read %d: %d files are open (%v)", n, open, err)
		}
		if fsys.reads.Load() < n {
			break
		}
	}
}

// countingFS counts the reads and the files that are open.
type countingFS struct {
	fs.FS
	read        func()
	open, reads atomic.Int64
}

type countingFile struct {
	fs.File
	io.ReaderAt
	of *countingFS
}

func (c *countingFS) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if at, ok := f.(io.ReaderAt); ok && err == nil {
		if info, _ := f.Stat(); info.IsDir() {
			return f, nil
		}
		c.open.Add(1)
		return &countingFile{f, at, c}, nil
	}
	return f, err
}

func (f *countingFile) ReadAt(b []byte, at int64) (int, error) {
	f.of.read()
	return f.ReaderAt.ReadAt(b, at)
}

func (f *countingFile) Close() error {
	f.of.open.Add(-1)
	return f.File.Close()
}
