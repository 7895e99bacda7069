package build

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/limit"
)

// trim leaves out the upper layers of a base that have nothing but its catalog and caches of it: the new image hides
// these, and would carry them for nothing. It stops at the first layer that has something else, so that what it reads
// is little more than what it leaves out.
func (b *base) trim(ctx context.Context, known map[digest.Digest]bool) error {
	hidden, err := b.hidden()
	at, ok := hidden[ConfigsLabel]
	if err != nil || !ok {
		return err
	}
	dirs := []string{at, cataloglayer.CacheDir, opmCacheDir}
	for n := len(b.layers) - 1; n >= 0; n-- {
		l := b.layers[n]
		only, read := known[l.Digest]
		if !read {
			if only, err = b.onlyIn(ctx, l, dirs); err != nil {
				return fmt.Errorf("base image: layer %s: %w", l.Digest, err)
			}
			known[l.Digest] = only
		}
		if !only {
			break
		}
		b.drop()
	}
	return nil
}

// drop leaves out the uppermost layer, with its line in the history and what follows that.
func (b *base) drop() {
	if h := b.history(); len(h) > 0 {
		n := len(h) - 1
		for n > 0 && h[n].EmptyLayer {
			n--
		}
		b.config.History = h[:n]
	}
	b.layers = b.layers[:len(b.layers)-1]
	b.config.RootFS.DiffIDs = b.config.RootFS.DiffIDs[:len(b.layers)]
}

// onlyIn tells whether a layer has nothing but what is in some directories, and directories above them. Whiteouts count
// as files.
func (b *base) onlyIn(ctx context.Context, l Layer, dirs []string) (_ bool, err error) {
	limits := limit.Limits{}.WithDefaults()
	body, _, err := b.blob(ctx, l.Digest)
	if err != nil {
		return false, err
	}
	defer body.Close()
	plain, err := archive.Decompress(body, l.MediaType, l.Size)
	if err != nil {
		return false, err
	}
	defer plain.Close()
	r := tar.NewReader(archive.Bound(plain, limits, l.Size, new(int64)))
	for entries := 0; ; entries++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, archive.Error(err)
		}
		if entries > limits.Entries {
			return false, limit.Errorf(limit.Entries, int64(limits.Entries), "more than %d entries", limits.Entries)
		}
		name, err := archive.EntryName(h)
		if err != nil {
			return false, err
		}
		if !belongsTo(name, h.Typeflag == tar.TypeDir, dirs) {
			return false, nil
		}
	}
}

// belongsTo tells whether an entry of a layer is one of some directories, in one, or a directory above one.
func belongsTo(name string, isDir bool, dirs []string) bool {
	name = path.Clean(name)
	for _, dir := range dirs {
		if name == dir || strings.HasPrefix(name, dir+"/") ||
			isDir && (name == "." || strings.HasPrefix(dir, name+"/")) {
			return true
		}
	}
	return false
}
