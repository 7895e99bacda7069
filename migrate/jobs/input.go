package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/render"
)

// Input identifies the content of a source.
type Input struct {
	Kind render.Kind `json:"kind"`
	// Digest is that of the image's index or manifest, of the database's file, or of all files of a catalog.
	Digest string `json:"digest"`
}

// source is the source of a line as it was when the line began.
type source struct {
	Input
	image *images.Description // of an image
	path  string
	files []fileState // of a database
}

// fileState is the metadata by which a change of a file is detected.
type fileState struct {
	name string
	size int64
	time time.Time
}

// identify determines the current content of a source.
func identify(ctx context.Context, client *images.Client, ref string) (*source, error) {
	kind, err := render.Classify(ref)
	if err != nil {
		return nil, err
	}
	s := &source{Input: Input{Kind: kind}, path: ref}
	switch kind {
	case render.Image:
		if s.image, err = render.Describe(ctx, client, ref); err == nil {
			s.Digest = s.image.Top.String()
		}
	case render.Database:
		if s.files, err = databaseFiles(ref); err == nil {
			s.Digest, err = sumFiles(ctx, s.files)
		}
	default:
		var t Tree
		t, err = sumTree(ctx, ref)
		s.Digest = t.Digest
	}
	return s, err
}

// databaseFiles returns a database's file and its journal files, which have content that is not in it yet.
func databaseFiles(path string) ([]fileState, error) {
	var files []fileState
	for _, name := range []string{path, path + "-wal", path + "-journal"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) && name != path {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, fileState{name, info.Size(), info.ModTime()})
	}
	return files, nil
}

// sumFiles returns the digest of one or several files.
func sumFiles(ctx context.Context, files []fileState) (string, error) {
	h := sha256.New()
	for i, f := range files {
		if i > 0 {
			fmt.Fprintf(h, "\x00%s\x00", f.name[len(files[0].name):])
		}
		if err := sumFile(ctx, h, f.name); err != nil {
			return "", err
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func sumFile(ctx context.Context, w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, ctxio.Reader{Ctx: ctx, R: f})
	return err
}

var errChanged = errors.New("the source changed while it was read")

// check fails if the source changed after the line began.
func (s *source) check(ctx context.Context, image string) error {
	switch s.Kind {
	case render.Image:
		// A local image is identified by its name; its content is verified when it is read.
		if _, now, named := strings.Cut(image, "@sha256:"); named && "sha256:"+now != s.Digest {
			return fmt.Errorf("%w: from %s to sha256:%s", errChanged, s.Digest, now)
		}
	case render.Database:
		now, err := databaseFiles(s.path)
		if err != nil {
			return err
		}
		if !sameFiles(s.files, now) {
			return errChanged
		}
	default:
		t, err := sumTree(ctx, s.path)
		if err != nil {
			return err
		}
		if t.Digest != s.Digest {
			return errChanged
		}
	}
	return nil
}

func sameFiles(a, b []fileState) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].name != b[i].name || a[i].size != b[i].size || !a[i].time.Equal(b[i].time) {
			return false
		}
	}
	return true
}

// Tree identifies the content of a directory.
type Tree struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	// Digest is that of the names and contents of all files, sorted by name.
	Digest string `json:"digest"`
}

// sumTree reads all files of a directory.
func sumTree(ctx context.Context, dir string) (Tree, error) {
	t := Tree{}
	h := sha256.New()
	err := walk(dir, func(name string, info fs.FileInfo) error {
		t.Files++
		t.Bytes += info.Size()
		content := sha256.New()
		if err := sumFile(ctx, content, filepath.Join(dir, name)); err != nil {
			return err
		}
		fmt.Fprintf(h, "%x %s\x00", content.Sum(nil), filepath.ToSlash(name))
		return nil
	})
	t.Digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return t, err
}

// measure is like sumTree, but does not read the files.
func measure(dir string) (Tree, error) {
	t := Tree{}
	err := walk(dir, func(_ string, info fs.FileInfo) error {
		t.Files++
		t.Bytes += info.Size()
		return nil
	})
	return t, err
}

// walk visits the files of a directory sorted by name; links to files are followed.
func walk(dir string, visit func(name string, info fs.FileInfo) error) error {
	// A catalog may be a link to a directory.
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return err // anything but a file is refused when the catalog is read
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return visit(name, info)
	})
}
