package provenance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
)

// maxFiles bounds the files of a tree.
const maxFiles = 1_000_000

// Tree returns the digest of a tree of files: the SHA-256 of the list of the SHA-256 of each file, as
//
//	find . -type f | sed 's,^\./,,' | LC_ALL=C sort | xargs sha256sum | sha256sum
//
// prints it (in-toto calls this algorithm dirHash1 and Go h1). Modes and times do not count. files are the names to
// count; nil means all regular files but those in directories called ".git". A name with a line feed is an error.
func Tree(ctx context.Context, fsys fs.FS, files []string) (digest.Digest, error) {
	if files == nil {
		var err error
		if files, err = regularFiles(fsys); err != nil {
			return "", err
		}
	}
	files = slices.Sorted(slices.Values(files))
	list := sha256.New()
	for _, name := range files {
		if strings.ContainsRune(name, '\n') {
			return "", fmt.Errorf("%w: the name of the file %.200q has a line feed", fault.ErrInvalid, name)
		}
		sum, err := File(ctx, fsys, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(list, "%s  %s\n", sum.Encoded(), name)
	}
	return digest.NewDigestFromEncoded(digest.SHA256, hex.EncodeToString(list.Sum(nil))), nil
}

// File returns the digest of a file.
func File(ctx context.Context, fsys fs.FS, name string) (_ digest.Digest, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := digest.SHA256.Digester()
	if _, err := io.Copy(sum.Hash(), ctxio.Reader{Ctx: ctx, R: f}); err != nil {
		return "", err
	}
	return sum.Digest(), nil
}

func regularFiles(fsys fs.FS) (files []string, err error) {
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		case len(files) == maxFiles:
			return fmt.Errorf("%w: more than %d files", fault.ErrLimit, maxFiles)
		}
		files = append(files, name)
		return nil
	})
	return files, err
}
