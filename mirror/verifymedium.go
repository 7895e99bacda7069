package mirror

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/mirror/stock"
)

// VerifyMedium looks whether an archive is whole: every image with every blob, each with its digest. It reads all of
// it.
func VerifyMedium(ctx context.Context, dir string, o VerifyOptions) (_ *Verification, err error) {
	v := &Verification{Catalogs: []VerifiedCatalog{}, Faults: []ImageFault{}, DryRun: o.DryRun}
	reader, err := medium.Open(ctx, dir, medium.ReadOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	leftOut := map[digest.Digest]bool{}
	list, err := reader.LeftOut(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		leftOut[l.Digest] = true
	}
	v.LeftOut = len(leftOut)
	if about := reader.Contents(); about != nil {
		for _, c := range about.Catalogs {
			bundles := map[string]bool{}
			for name, channels := range c.Packages {
				for _, channel := range channels {
					for _, bundle := range channel {
						bundles[name+"/"+bundle] = true
					}
				}
			}
			v.Catalogs = append(v.Catalogs, VerifiedCatalog{Name: c.Path + ":" + c.Tag, Digest: c.Digest,
				Packages: len(c.Packages), Bundles: len(bundles)})
		}
	}
	read := &readBlobs{good: map[digest.Digest]bool{}, progress: progress{events: o.Events}}
	read.progress.add(func(e *Event) {
		for _, path := range reader.Repositories() {
			e.AllImages += len(reader.Tags(path))
		}
		for _, s := range reader.Segments() {
			e.AllBytes += s.Bytes
		}
	})
	check := func(name string) (stock.Repository, error) {
		return &storedRepository{reader.Repository(name), reader, leftOut, read}, nil
	}
	images := func(yield func(stock.Wanted) bool) {
		for _, path := range reader.Repositories() {
			tags := reader.Tags(path)
			for _, tag := range slices.Sorted(maps.Keys(tags)) {
				if !yield(stock.Wanted{Repository: path, Name: tag}) {
					return
				}
			}
		}
	}
	v.Summary, err = stock.Check(ctx, check, images, stock.CheckOptions{Jobs: 2, Sizes: o.DryRun, Done: func(f stock.Finding) {
		read.progress.add(func(e *Event) { e.Images++ })
		wrong := ImageFault{Image: f.Repository + ":" + f.Name}
		for _, p := range f.Problems {
			d := p.Digest
			if d == "" {
				d = reader.Tags(f.Repository)[f.Name]
			}
			if p.Kind != stock.AbsentManifest || !leftOut[d] {
				wrong.Problems = append(wrong.Problems, p.Error())
			}
		}
		if len(wrong.Problems) > 0 {
			v.Faults = append(v.Faults, wrong)
		}
	}})
	v.Repositories = ByRepository(v.Bytes)
	v.Wrong, v.Problems = len(v.Faults), 0
	for _, f := range v.Faults {
		v.Problems += len(f.Problems)
	}
	slices.SortFunc(v.Faults, func(a, b ImageFault) int { return strings.Compare(a.Image, b.Image) })
	return v, err
}

// readBlobs are the blobs of a medium that were read, each once.
type readBlobs struct {
	progress progress

	mu   sync.Mutex
	good map[digest.Digest]bool
}

// storedRepository is a repository on a medium whose blobs are read when they are requested. What the medium leaves out
// counts as there.
type storedRepository struct {
	*medium.ReaderRepository
	reader  *medium.Reader
	leftOut map[digest.Digest]bool
	read    *readBlobs
}

func (s *storedRepository) HasBlob(ctx context.Context, d v1.Descriptor) (bool, error) {
	s.read.mu.Lock()
	good := s.read.good[d.Digest]
	s.read.mu.Unlock()
	if good || s.leftOut[d.Digest] && !s.reader.Has(d.Digest) {
		return true, nil
	}
	r, err := s.Blob(ctx, d)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = io.Copy(s.read, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return false, err
	}
	s.read.mu.Lock()
	s.read.good[d.Digest] = true
	s.read.mu.Unlock()
	return true, nil
}

// Write counts what is read.
func (b *readBlobs) Write(p []byte) (int, error) {
	b.progress.add(func(e *Event) { e.Bytes += int64(len(p)) })
	return len(p), nil
}
