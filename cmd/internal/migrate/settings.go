package migrate

import (
	"context"
	"encoding/json"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// digestOf returns a digest of the JSON form of a value.
func digestOf(v any) (string, error) {
	text, err := json.Marshal(v)
	return digest.FromBytes(text).String(), err
}

// fileSum returns the digest of a file.
func fileSum(ctx context.Context, path string) (string, error) {
	f, err := regularfile.OpenSeekable(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, err := digest.FromReader(ctxio.Reader{Ctx: ctx, R: f})
	return sum.String(), err
}
