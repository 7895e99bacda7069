package layers

import (
	"crypto/sha256"
	"hash"
	"io"

	"github.com/opencontainers/go-digest"
)

// Verified is the file with a content that ends in [ErrChanged], in place of [io.EOF], if it has another digest than the one
// that is known. Other entries, and files without a digest, stay as they are.
func (e Entry) Verified() Entry {
	if e.Kind != KindFile || e.Digest == "" {
		return e
	}
	open, want := e.Open, e.Digest
	e.Open = func() (io.ReadCloser, error) {
		r, err := open()
		if err != nil {
			return nil, err
		}
		return &verified{ReadCloser: r, h: sha256.New(), want: want}, nil
	}
	return e
}

type verified struct {
	io.ReadCloser
	h    hash.Hash
	want digest.Digest
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	v.h.Write(p[:n])
	if err == io.EOF && digest.NewDigest(digest.SHA256, v.h) != v.want {
		err = ErrChanged
	}
	return n, err
}
