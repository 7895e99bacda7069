package layouts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
)

// oneImage reads files that hold one image: a directory of the containers tools ("dir:"), or an image of an archive of
// "docker save". It is a [store.Reader].
type oneImage struct {
	store.Single
	blobFiles
}

// openDirectory opens a directory of the containers tools: a manifest, and blobs named by their digests.
func (o *oneImage) openDirectory() error {
	o.name = func(d digest.Digest) string { return d.Encoded() }
	version, err := readFile(o.files, "version")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if text := strings.TrimSpace(string(version)); err == nil && text != "Directory Transport Version: 1.1" &&
		text != "Directory Transport Version: 1.0" {
		return fmt.Errorf("%w: version: unknown version %.80q of a directory with an image", fault.ErrInvalid, text)
	}
	text, err := readFile(o.files, "manifest.json")
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	o.Single = store.NewSingle(text, manifest.GuessMIMEType(text))
	o.Entry = func(ctx context.Context, d digest.Digest) ([]byte, string, error) {
		if err := ctx.Err(); err != nil {
			return nil, "", context.Cause(ctx)
		}
		text, err := readFile(o.files, d.Encoded()+".manifest.json")
		return text, manifest.GuessMIMEType(text), err
	}
	return nil
}

// signatures reads the signatures in a directory of the containers tools.
func (o *oneImage) signatures(_ context.Context, of digest.Digest) ([][]byte, error) {
	prefix := ""
	if of != o.Top.Digest {
		prefix = of.Encoded() + "."
	}
	return sigblob.Numbered(func(n int, limit int64) ([]byte, bool, error) {
		content, err := readFileUpTo(o.files, fmt.Sprintf("%ssignature-%d", prefix, n), limit)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, nil
		}
		return content, err == nil, err
	})
}
