package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/internal/ctxio"
)

// digester is a reader that hashes what it reads.
type digester struct {
	r    io.Reader
	hash hash.Hash
	size int64
}

func (d *digester) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	d.hash.Write(b[:n])
	d.size += int64(n)
	return n, err
}

// digestFiles returns the digests of the existing files. No file is parsed.
func digestFiles(ctx context.Context, fsys fs.FS, files []string) (map[string]SourceFile, error) {
	var mu sync.Mutex
	digests := make(map[string]SourceFile, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, name := range files {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			f, err := fsys.Open(name)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			defer f.Close()
			h := sha256.New()
			size, err := ctxio.Copy(h, f)
			if err != nil {
				return err
			}
			s := SourceFile{Name: name, Size: size}
			h.Sum(s.Digest[:0])
			mu.Lock()
			digests[name] = s
			mu.Unlock()
			return nil
		})
	}
	return digests, g.Wait()
}
