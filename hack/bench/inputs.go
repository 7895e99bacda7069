package main

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// inputs are the measured catalogs and the database.
type inputs struct {
	database string   // an index database
	catalog  string   // a catalog directory
	others   []string // further catalogs, for the memory ceilings
	migrated string   // the catalog migrated from the database, including manifests
}

func prepare(ctx context.Context, o options, dir string) (*inputs, error) {
	in := &inputs{migrated: filepath.Join(dir, "migrated")}
	packed, err := filepath.Glob(filepath.Join(o.real, "catalog-*.tar.zst"))
	if err != nil {
		return nil, err
	}
	in.database = filepath.Join(dir, "large.db")
	if err := unpack(ctx, o, filepath.Join(o.real, "large.db.zst"), in.database); err != nil {
		return nil, err
	}
	for _, file := range packed {
		to := filepath.Join(dir, "unpacked.tar")
		if err := unpack(ctx, o, file, to); err != nil {
			return nil, err
		}
		top, err := untar(to, filepath.Join(dir, "catalogs"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		in.others = append(in.others, top)
	}
	i := slices.IndexFunc(in.others, func(dir string) bool { return filepath.Base(dir) == "v4.16" })
	if i < 0 {
		return nil, fmt.Errorf("%s has no catalog v4.16", o.real)
	}
	in.catalog = in.others[i]
	in.others = slices.Delete(in.others, i, i+1)
	return in, os.Remove(filepath.Join(dir, "unpacked.tar"))
}

// recorded unpacks the collection of recorded answers and images, once, and returns its directory.
func (b *bench) recorded(ctx context.Context) (string, error) {
	dir, packed := filepath.Join(b.dir, "recorded"), filepath.Join(b.dir, "recorded.tar")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := unpack(ctx, b.options, filepath.Join(b.project, "testdata", "recorded.tar.zst"), packed); err != nil {
		return "", err
	}
	if _, err := untar(packed, dir); err != nil {
		return "", err
	}
	return dir, os.Remove(packed)
}

// unpack decompresses with the project's own helper: the zstd program need not be installed.
func unpack(ctx context.Context, o options, from, to string) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./hack/zstd", "-d", from, to)
	cmd.Dir, cmd.Stderr = o.project, os.Stderr
	return cmd.Run()
}

// untar extracts directories and regular files and returns the archive's top directory.
func untar(archive, to string) (top string, err error) {
	file, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return extract(file, to)
}

func extract(r io.Reader, to string) (top string, err error) {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return top, nil
		}
		if err != nil {
			return "", err
		}
		if !filepath.IsLocal(h.Name) {
			return "", fmt.Errorf("%q leads out of the archive", h.Name)
		}
		path := filepath.Join(to, h.Name)
		if top == "" {
			top = path
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			err = writeFile(path, tr)
		case tar.TypeLink:
			err = os.Link(filepath.Join(to, h.Linkname), path)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, path)
		}
		if err != nil {
			return "", err
		}
	}
}

func writeFile(path string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, r); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// sizeOf returns the total size of the regular files in a tree, or of one file.
func sizeOf(path string) int64 {
	var n int64
	filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}
