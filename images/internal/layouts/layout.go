package layouts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/filelock"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// The names in an OCI image layout, and the name of a layout in its stage.
const (
	stagedLayout = "layout"
	layoutFile   = v1.ImageLayoutFile
	indexFile    = v1.ImageIndexFile
	blobsDir     = v1.ImageBlobsDir
)

// merge adds the staged layout to the layout in dir, which may be empty. index.json is replaced last, by a rename, so
// that readers see the old or the new one. Changes of tags that others have written meanwhile are made again. After an
// error the files that were added are removed. The caller holds no lock.
func (w *Writer) merge(ctx context.Context, dir string) (err error) {
	lock, err := filelock.LockDir(ctx, dir)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	old, err := ReadIndex(dir)
	if err != nil {
		return err
	}
	if old == nil {
		if err := checkUsable(dir); err != nil {
			return err
		}
	}
	if err := w.reapplyTags(ctx, dir, old); err != nil {
		return err
	}
	var undo []string
	defer func() {
		if err != nil {
			for _, path := range slices.Backward(undo) {
				os.Remove(path)
			}
		}
	}()
	defer guard.Recover(&err)
	if err := linkBlobs(ctx, w.dir, dir, &undo); err != nil {
		return err
	}
	if _, serr := os.Lstat(filepath.Join(dir, layoutFile)); errors.Is(serr, fs.ErrNotExist) {
		undo = append(undo, filepath.Join(dir, layoutFile))
		if err := os.Rename(filepath.Join(w.dir, layoutFile), filepath.Join(dir, layoutFile)); err != nil {
			return err
		}
	}
	merged, err := old.merge(w.now())
	if err != nil {
		return err
	}
	next := filepath.Join(w.dir, "index.next")
	if err := WriteSync(next, merged); err != nil {
		return err
	}
	if err := atomicfs.SyncDir(dir); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	replaced, err := ReplaceFile(next, filepath.Join(dir, indexFile), filepath.Join(w.dir, "index.old"))
	if replaced {
		undo = nil // the new index refers to the files that were added
	}
	return err
}

// checkUsable returns an error for a directory that is neither a layout nor empty.
func checkUsable(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		switch {
		case n.IsDir() && strings.HasPrefix(n.Name(), StagePrefix):
		case n.Name() == layoutFile && n.Type().IsRegular(), n.Name() == blobsDir && n.IsDir(),
			n.Name() == "lost+found":
		default:
			return fmt.Errorf("%s is neither empty nor an OCI image layout: it holds %q", dir, n.Name())
		}
	}
	return nil
}

// linkBlobs links the staged blobs into the layout. They stay in the stage as well: if this run is killed, the next run
// finds there which blobs to remove.
func linkBlobs(ctx context.Context, staged, dir string, undo *[]string) error {
	algorithm := filepath.Join(blobsDir, digest.SHA256.String())
	for _, d := range []string{blobsDir, algorithm} {
		path := filepath.Join(dir, d)
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			*undo = append(*undo, path)
			if err := os.Mkdir(path, 0o755); err != nil {
				return err
			}
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory", path)
		}
	}
	blobs, err := os.ReadDir(filepath.Join(staged, algorithm))
	if err != nil {
		return err
	}
	for _, b := range blobs {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		from, to := filepath.Join(staged, algorithm, b.Name()), filepath.Join(dir, algorithm, b.Name())
		if err := linkBlob(from, to, undo); err != nil {
			return err
		}
	}
	return errors.Join(atomicfs.SyncDir(filepath.Join(dir, algorithm)), atomicfs.SyncDir(filepath.Join(dir, blobsDir)))
}

// linkBlob links a blob into the layout. It replaces a blob of that name with the checked one: the name is the digest,
// so that only a damaged blob changes.
func linkBlob(from, to string, undo *[]string) error {
	err := os.Link(from, to)
	switch {
	case err == nil:
		*undo = append(*undo, to)
		return nil
	case errors.Is(err, fs.ErrExist):
		return os.Rename(from, to)
	case cannotLink(err):
		if _, serr := os.Lstat(to); errors.Is(serr, fs.ErrNotExist) {
			*undo = append(*undo, to)
		}
		return os.Rename(from, to)
	}
	return err
}

// cannotLink tells whether an error means that this hard link is not possible.
func cannotLink(err error) bool {
	return slices.ContainsFunc([]error{syscall.EPERM, syscall.ENOTSUP, syscall.ENOSYS, syscall.EXDEV, syscall.EMLINK,
		errors.ErrUnsupported}, func(no error) bool { return errors.Is(err, no) })
}

// forgetBlobs removes from the layout in dir the blobs of an abandoned stage that index.json does not refer to. The
// caller holds the lock of dir.
func forgetBlobs(dir, staged string) {
	algorithm := filepath.Join(blobsDir, digest.SHA256.String())
	blobs, err := os.ReadDir(filepath.Join(staged, algorithm))
	if err != nil {
		return
	}
	var used map[digest.Digest]bool
	for _, b := range blobs {
		path := filepath.Join(dir, algorithm, b.Name())
		was, err1 := os.Lstat(filepath.Join(staged, algorithm, b.Name()))
		is, err2 := os.Lstat(path)
		if err1 != nil || err2 != nil || !os.SameFile(was, is) {
			continue
		}
		if used == nil {
			if used, err = referenced(dir); err != nil {
				return
			}
		}
		if !used[digest.NewDigestFromEncoded(digest.SHA256, b.Name())] {
			os.Remove(path)
		}
	}
}

// referenced returns the digests that can be reached from a layout's index.json.
func referenced(dir string) (map[digest.Digest]bool, error) {
	index, err := ReadIndex(dir)
	if err != nil {
		return nil, err
	}
	used := map[digest.Digest]bool{}
	if index == nil {
		return used, nil
	}
	read := func(_ context.Context, n *store.Node) error {
		if used[n.Digest] || n.Size > limit.MaxManifest {
			return nil
		}
		content, err := regularfile.Read(BlobPath(dir, n.Digest), limit.MaxManifest)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !json.Valid(content) {
			return nil
		}
		if err == nil {
			n.Parts, err = store.PartsOf(content)
		}
		return err
	}
	visit := func(_ context.Context, n *store.Node) error {
		used[n.Digest] = true
		if n.Parts != nil {
			for _, d := range n.Parts.Blobs {
				used[d.Digest] = true
			}
		}
		return nil
	}
	for _, e := range index.Entries {
		err := store.Walk(context.Background(), store.Node{Descriptor: e.Descriptor},
			store.WalkOptions{Read: read, Visit: visit})
		if err != nil {
			return nil, err
		}
	}
	return used, nil
}

// BlobPath returns the path of a blob in a layout. The digest must be valid.
func BlobPath(dir string, d digest.Digest) string {
	return filepath.Join(dir, blobsDir, d.Algorithm().String(), d.Encoded())
}

// checkLayout returns an error for a directory that is no layout of the known version.
func checkLayout(dir string) error {
	content, err := regularfile.Read(filepath.Join(dir, layoutFile), limit.MaxManifest)
	if err != nil {
		return err
	}
	return checkLayoutVersion(content)
}

// checkLayoutVersion returns an error for another version of the layout.
func checkLayoutVersion(content []byte) error {
	var v v1.ImageLayout
	if err := json.Unmarshal(bytes.TrimSpace(content), &v); err != nil {
		return fmt.Errorf("%w: %s: %v", fault.ErrInvalid, layoutFile, err)
	}
	if v.Version != v1.ImageLayoutVersion {
		return fmt.Errorf("%w: %s: unknown version %.40q of the image layout", fault.ErrInvalid, layoutFile, v.Version)
	}
	return nil
}
