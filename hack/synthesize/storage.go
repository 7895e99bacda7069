package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// blob is a blob in the storage.
type blob struct {
	hex  string
	size int64
}

// keep writes a blob as docker's registry has it on disk.
func (w *world) keep(content io.Reader) (blob, error) {
	dir := filepath.Join(w.storage, "docker/registry/v2/blobs/sha256")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return blob{}, err
	}
	f, err := os.CreateTemp(dir, ".new")
	if err != nil {
		return blob{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), content)
	err = errors.Join(err, f.Close())
	b := blob{hex: hex.EncodeToString(sum.Sum(nil)), size: n}
	at := filepath.Join(dir, b.hex[:2], b.hex)
	if err == nil {
		err = os.MkdirAll(at, 0o755)
	}
	if _, missing := os.Stat(filepath.Join(at, "data")); errors.Is(missing, fs.ErrNotExist) {
		w.blobs++
		w.bytes += n
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(at, "data"))
	}
	if err != nil {
		return blob{}, errors.Join(err, os.Remove(f.Name()))
	}
	return b, nil
}

// link writes a link of a repository in the storage.
func (w *world) link(repository, at string, b blob) error {
	dir := filepath.Join(w.storage, "docker/registry/v2/repositories", repository, at)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "link"), []byte("sha256:"+b.hex), 0o644)
}

// layer is a layer with one file of pseudo-random bytes, which depend on its name.
func (w *world) layer(repository, name string, size int64) (blob, error) {
	b, there := w.layers[name]
	if !there {
		seed := sha256.Sum256([]byte(name))
		size /= w.divide
		var header, end bytes.Buffer
		t := tar.NewWriter(&header)
		err := t.WriteHeader(&tar.Header{Name: "content/" + hex.EncodeToString(seed[:8]), Mode: 0o644, Size: size})
		if err != nil {
			return blob{}, err
		}
		end.Write(make([]byte, 1024+(512-size%512)%512))
		content := io.LimitReader(rand.NewChaCha8(seed), size)
		if b, err = w.keep(io.MultiReader(&header, content, &end)); err != nil {
			return blob{}, err
		}
		if w.layers == nil {
			w.layers = map[string]blob{}
		}
		w.layers[name] = b
	}
	return b, w.link(repository, "_layers/sha256/"+b.hex, b)
}

// number is a number of a name, for choosing.
func number(name string) uint64 {
	sum := sha256.Sum256([]byte("number of " + name))
	return binary.BigEndian.Uint64(sum[:])
}
