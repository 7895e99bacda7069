package build

import (
	"debug/elf"
	"errors"
	"io"
	"testing"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store/storetest"
)

// readLayers reads every layer of the first image of a survey.
func readLayers(t *testing.T, s *images.Survey) error {
	t.Helper()
	for _, l := range s.Images[0].Layers {
		r, err := s.Images[0].Blob(t.Context(), l)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// An assembled image can be examined before it is copied anywhere.
func TestExamine(t *testing.T) {
	img, _ := build1(t, sampleFS(), Options{})
	calls := 0
	if err := img.Examine(t.Context(), func(s *images.Survey) error {
		calls++
		if s.Digest != img.Digest || s.Repository != "" || len(s.Images) != 1 ||
			len(s.Images[0].Layers) != len(img.Layers) {
			t.Errorf("%+v", s)
		}
		return readLayers(t, s)
	}); err != nil || calls != 1 {
		t.Errorf("%d calls: %v", calls, err)
	}
	wanted := errors.New("no more")
	if err := img.Examine(t.Context(), func(*images.Survey) error { return wanted }); !errors.Is(err, wanted) {
		t.Errorf("got %v", err)
	}
}

// An image with a layer that the cache is wrong about is rebuilt, and examined again.
func TestExamineRebuilds(t *testing.T) {
	o, want, _ := withWrongNote(t)
	img, _ := build1(t, sampleFS(), o)
	if img.Digest == want.Digest {
		t.Fatal("the note is not used")
	}
	var seen []string
	if err := img.Examine(t.Context(), func(s *images.Survey) error {
		seen = append(seen, s.Digest.String())
		return readLayers(t, s)
	}); err != nil {
		t.Fatal(err)
	}
	if img.Digest != want.Digest || len(seen) != 2 || seen[1] != want.Digest.String() {
		t.Errorf("%s after %v, want %s", img.Digest, seen, want.Digest)
	}
}

// An assembled image is a place that is read: with one manifest, with an index, and with layers that are compressed when
// they are read.
func TestStore(t *testing.T) {
	one := index1(t, database("rows"), Options{Servers: []Server{server(t, "amd64", elf.EM_X86_64)}})
	many := catalog(t, CatalogInput{FS: sampleFS()}, Options{Servers: []Server{server(t, "amd64", elf.EM_X86_64),
		server(t, "arm64", elf.EM_AARCH64)}})
	for _, img := range []*Image{one, many} {
		storetest.TestReader(t, img.Store(), img.Top().Digest.String())
	}
}
