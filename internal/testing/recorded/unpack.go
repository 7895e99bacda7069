package recorded

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// cacheHome is the directory to unpack to. It is determined before a test changes the environment.
var cacheHome, _ = os.UserCacheDir()

// unpacked returns the directory of the unpacked collection. The first process on a machine unpacks it; the directory
// name contains the archive's digest. Processes may unpack concurrently.
var unpacked = sync.OnceValues(func() (string, error) {
	archive, err := os.ReadFile(filepath.Join(SourceRoot(), "testdata", "recorded.tar.zst"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(archive)
	name := filepath.Join("bindery-tests", "recorded-"+hex.EncodeToString(sum[:8]))
	dir := filepath.Join(cacheHome, name)
	if cacheHome == "" || os.MkdirAll(filepath.Dir(dir), 0o755) != nil {
		dir = filepath.Join(os.TempDir(), name)
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return "", err
		}
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "unpack-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := errors.Join(unpack(string(archive), temp), os.Chmod(temp, 0o755)); err != nil {
		return "", fmt.Errorf("unpack the recorded answers: %w", err)
	}
	if err := os.Rename(temp, dir); err != nil {
		if _, other := os.Stat(dir); other != nil {
			return "", err
		}
	}
	return dir, nil
})

// unpack writes the files of the archive. Files whose names end in .zst are stored uncompressed in it, so that the
// archive compresses their common content; they are compressed here, with a fast level.
func unpack(archive, dir string) error {
	// The archive was compressed with a window of 128 MiB.
	z, err := zstd.NewReader(strings.NewReader(archive), zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		return err
	}
	defer z.Close()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	made := map[string]bool{}
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !fs.ValidPath(h.Name) {
			return fmt.Errorf("invalid name %q", h.Name)
		}
		data, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		if strings.HasSuffix(h.Name, ".zst") {
			data = enc.EncodeAll(data, nil)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if parent := filepath.Dir(path); !made[parent] {
			if err := os.MkdirAll(parent, 0o755); err != nil {
				return err
			}
			made[parent] = true
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
}

// SourceRoot returns the root directory of the project: the nearest one above the directory in which the tests were
// started whose go.mod is the project's. The names of source files in a program do not say it: they are short in one that
// is built with -trimpath.
func SourceRoot() string { return sourceRoot }

var sourceRoot = findSourceRoot()

func findSourceRoot() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/operator-bindery/bindery\n") {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}
