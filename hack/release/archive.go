package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// file is a member of an archive.
type file struct {
	name string
	mode os.FileMode
	text []byte
	from string // has the content, if text is nil
}

// shells are those that the program has completions for, with the names of the files.
var shells = [][2]string{{"bash", "bindery.bash"}, {"zsh", "_bindery"}, {"fish", "bindery.fish"}}

// documents returns what comes with every program: README, licence, notices, manual pages, completions.
func (r *release) documents(p platform) ([]file, error) {
	notices, err := r.notices(p)
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	out := []file{
		{name: "LICENSE", mode: 0o644, text: licence},
		{name: "README.txt", mode: 0o644, text: []byte(r.readme(p))},
		{name: "THIRD-PARTY-NOTICES.txt", mode: 0o644, text: notices},
	}
	for _, shell := range shells {
		text, err := r.command(os.Environ(), r.host, "completion", shell[0])
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: "completions/" + shell[1], mode: 0o644, text: text})
	}
	pages, err := r.manuals()
	return append(out, pages...), err
}

// manuals returns the manual pages of the program and of each command.
func (r *release) manuals() (out []file, err error) {
	dir, err := os.MkdirTemp("", "bindery-man-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := r.command(os.Environ(), r.host, "man", "--to", dir); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(dir, page.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: "man/man1/" + page.Name(), mode: 0o644, text: text})
	}
	return out, nil
}

func (r *release) readme(p platform) string {
	return fmt.Sprintf(`bindery %s for %s

%s is the whole program: put it into a directory of PATH. It needs nothing else.
Under other names, as a link or a copy, it stands in for other programs:

  opm                            the commands and flags of opm
  oc-mirror                      those of oc-mirror v2
  kubectl-bindery                "kubectl bindery"
  grpc_health_probe              the health probe
  initializer, registry-server   opm's former tools of these names

completions/ has completions for bash, zsh and fish, man/ the manual pages.
Documentation: https://github.com/operator-bindery/bindery
`, r.version, p, p.program())
}

// archives writes the archive of each platform: tar.gz, and zip for Windows.
func (r *release) archives() error {
	return concurrently(r.platforms, func(p platform) error {
		members, err := r.documents(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		members = append(members, file{name: p.program(), mode: 0o755, from: r.programs[p]})
		write, suffix := r.tarGz, ".tar.gz"
		if p.os == "windows" {
			write, suffix = r.zip, ".zip"
		}
		return create(filepath.Join(r.stage, r.name(p, suffix)), func(w io.Writer) error { return write(w, members) })
	})
}

// concurrently calls a function for each item, for as many at once as there are processors, and returns all errors.
func concurrently[T any](list []T, do func(T) error) error {
	errs := make([]error, len(list))
	slots := make(chan bool, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for n, item := range list {
		slots <- true
		all.Go(func() {
			errs[n] = do(item)
			<-slots
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// create writes a file that everybody can read, whatever the umask.
func create(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Chmod(0o644), f.Close())
}

// write writes a file of the release.
func (r *release) write(name string, text []byte) error {
	return create(filepath.Join(r.stage, name), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func (f file) open() (io.ReadCloser, int64, error) {
	if f.text != nil {
		return io.NopCloser(strings.NewReader(string(f.text))), int64(len(f.text)), nil
	}
	in, err := os.Open(f.from)
	if err != nil {
		return nil, 0, err
	}
	info, err := in.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, in.Close())
	}
	return in, info.Size(), nil
}

// each calls a function with the directories, as members that end in a slash, and the files of an archive.
func each(members []file, add func(f file, size int64, content io.Reader) error) error {
	seen := map[string]bool{".": true}
	for _, f := range members {
		var parents []string
		for dir := path.Dir(f.name); !seen[dir]; dir = path.Dir(dir) {
			seen[dir], parents = true, append([]string{dir}, parents...)
		}
		for _, dir := range parents {
			if err := add(file{name: dir + "/", mode: os.ModeDir | 0o755}, 0, nil); err != nil {
				return err
			}
		}
		content, size, err := f.open()
		if err != nil {
			return err
		}
		if err := errors.Join(add(f, size, content), content.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) tarGz(w io.Writer, members []file) error {
	z := gzip.NewWriter(w) // the best compression takes twice the time for 1 %
	t := tar.NewWriter(z)
	err := each(members, func(f file, size int64, content io.Reader) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode.Perm()), Size: size, ModTime: r.time,
			Format: tar.FormatUSTAR, Uname: "root", Gname: "root"}
		if f.mode.IsDir() {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil || content == nil {
			return err
		}
		_, err := io.Copy(t, content)
		return err
	})
	return errors.Join(err, t.Close(), z.Close())
}

func (r *release) zip(w io.Writer, members []file) error {
	z := zip.NewWriter(w)
	err := each(members, func(f file, _ int64, content io.Reader) error {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.time}
		h.SetMode(f.mode)
		if f.mode.IsDir() {
			h.Method = zip.Store
		}
		member, err := z.CreateHeader(h)
		if err != nil || content == nil {
			return err
		}
		_, err = io.Copy(member, content)
		return err
	})
	return errors.Join(err, z.Close())
}
