package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checksumFile has the SHA-256 of every file but itself, signatures, and the index of the layout of images: signatures
// of images are entries there. The digests of the images are in images.txt.
const checksumFile = "checksums.txt"

func sha256File(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

func (r *release) checksums() error {
	var out bytes.Buffer
	err := fs.WalkDir(os.DirFS(r.stage), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == layout+"/index.json" {
			return err
		}
		sum, err := sha256File(filepath.Join(r.stage, name))
		fmt.Fprintf(&out, "%s  %s\n", sum, name)
		return err
	})
	if err != nil {
		return err
	}
	return r.write(checksumFile, out.Bytes())
}

// sign signs the checksums and the images, if there is a key.
func (r *release) sign() error {
	if r.key == "" {
		return nil
	}
	tool := filepath.Join(r.scratch, "signfile")
	if err := r.compile(here, tool, "./hack/signfile", "", "-tags="+tags); err != nil {
		return err
	}
	list := filepath.Join(r.stage, checksumFile)
	if _, err := r.command(os.Environ(), tool, r.key, list, list+".sig"); err != nil {
		return err
	}
	names, err := os.ReadFile(filepath.Join(r.stage, imageNames))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no images
	}
	for _, name := range strings.Fields(string(names)) {
		name, _, _ = strings.Cut(name, "@")
		args := []string{"-q", "sign", "oci:" + filepath.Join(r.stage, layout) + name[strings.LastIndex(name, ":"):],
			"--sign-key",
			r.key, "--sign-identity", name}
		if _, ok := os.LookupEnv("BINDERY_SIGN_PASSPHRASE"); !ok {
			args = append(args, "--allow-plain-key")
		}
		if _, err := r.command(os.Environ(), r.host, args...); err != nil {
			return err
		}
	}
	return err
}

// publish moves the files to the output, where those of an earlier release go first. The checksums come last: they say
// that the release is complete.
func (r *release) publish() error {
	err := filepath.WalkDir(r.stage, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644) // whatever the umask
		if d.IsDir() {
			mode = 0o755
		}
		return os.Chmod(name, mode)
	})
	if err != nil {
		return err
	}
	if err := r.clear(); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.stage)
	if err != nil {
		return err
	}
	for _, last := range []bool{false, true} {
		for _, e := range entries {
			if (e.Name() == checksumFile) != last {
				continue
			}
			if err := os.Rename(filepath.Join(r.stage, e.Name()), filepath.Join(r.dist, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear removes the files that the checksums of the output name, and leaves all others.
func (r *release) clear() error {
	list := filepath.Join(r.dist, checksumFile)
	text, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		text = nil
	} else if err != nil {
		return err
	}
	for _, name := range []string{list, list + ".sig"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		_, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || !filepath.IsLocal(name) || strings.HasPrefix(name, layout+"/") {
			continue
		}
		if err := os.Remove(filepath.Join(r.dist, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(r.dist, layout))
}
