package medium

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
)

// localError is an error of writing, which no other attempt to read mends.
type localError struct{ error }

func (e localError) Unwrap() error { return e.error }

// fetch copies a blob. If it breaks off, it is opened again where it was. Failures to open are final: sources repeat
// requests themselves. The digest is compared at the end, over all attempts.
func fetch(ctx context.Context, d v1.Descriptor, open openAt, to io.Writer) error {
	f := &fetching{d: d, to: to, sum: sha256.New()}
	for failed := 0; ; {
		before := f.done
		err := f.attempt(ctx, open)
		if err == nil {
			break
		}
		var local localError
		switch {
		case errors.As(err, &local):
			return local.error
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case f.opened < 0, errors.Is(err, fault.ErrIntegrity), errors.Is(err, fs.ErrNotExist), f.done == d.Size:
			return err
		}
		if failed++; f.done > before {
			failed = 1
		}
		if failed >= attempts {
			return err
		}
	}
	if got := digest.NewDigest(digest.SHA256, f.sum); got != d.Digest {
		return fmt.Errorf("%w: digest mismatch: %s instead of %s", fault.ErrIntegrity, got, d.Digest)
	}
	return nil
}

type fetching struct {
	d    v1.Descriptor
	to   io.Writer
	sum  hash.Hash
	done int64
	// opened is where the content was opened; negative if it could not be.
	opened int64
}

var fetchBuffers = sync.Pool{New: func() any { return new([fetchBuffer]byte) }}

// attempt reads the rest of a blob.
func (f *fetching) attempt(ctx context.Context, open openAt) (err error) {
	f.opened = -1
	r, err := open(ctx, f.done)
	if err != nil {
		return err
	}
	f.opened = f.done
	defer func() { err = errors.Join(err, r.Close()) }()
	b := fetchBuffers.Get().(*[fetchBuffer]byte)
	defer fetchBuffers.Put(b)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := fill(r, b[:])
		if f.done+int64(n) > f.d.Size {
			return fmt.Errorf("%s: %w: size is more than %d bytes", f.d.Digest, fault.ErrIntegrity, f.d.Size)
		}
		if werr := f.write(b[:n]); werr != nil {
			return localError{werr}
		}
		f.done += int64(n)
		if err == io.EOF && f.done < f.d.Size {
			return fmt.Errorf("%s: %w: %d of %d bytes", f.d.Digest, io.ErrUnexpectedEOF, f.done, f.d.Size)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// write takes the digest of content and writes it, both at the same time if there is much of it.
func (f *fetching) write(b []byte) error {
	if len(b) < fetchBuffer/4 {
		f.sum.Write(b)
		_, err := f.to.Write(b)
		return err
	}
	summed := make(chan struct{})
	go func() {
		f.sum.Write(b)
		close(summed)
	}()
	_, err := f.to.Write(b)
	<-summed
	return err
}

// fill reads until the buffer is full or the reader fails or ends.
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = r.Read(b[n:])
		n += more
	}
	return n, err
}
