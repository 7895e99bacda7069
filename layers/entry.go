package layers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
)

// Kind is the kind of an [Entry].
type Kind uint8

// The kinds of entries. A whiteout hides the files of lower layers with its name.
const (
	KindFile Kind = iota
	KindDir
	KindSymlink
	KindHardlink
	KindWhiteout
)

// Entry is one name in a layer. Create entries with [File], [Bytes], [Dir], [Hardlink], [Whiteout] and [Opaque]. A
// symbolic link is an Entry of the kind [KindSymlink].
type Entry struct {
	// Name is relative to the root of the image, slash-separated and clean: "configs/foo/catalog.yaml".
	Name string
	Kind Kind
	// Mode has the permission bits and, for directories, the sticky bit. See [Normalize]. Files that are copied from
	// other images may have all three special bits.
	Mode fs.FileMode
	// UID and GID own the entry.
	UID, GID int
	// Xattrs are extended attributes by name, for entries that are copied from other images.
	Xattrs map[string]string
	// Size is the exact length of a file's content in bytes.
	Size int64
	// Link is the target of a link: any path for a symbolic link, a Name of the same layer for a hard link.
	Link string
	// Digest is the sha256 of a file's content, if known. Writing fails with [ErrChanged] if the content differs. See
	// [Layer.Hash].
	Digest digest.Digest
	// Open opens the content of a file. It is called each time the layer is written.
	Open func() (io.ReadCloser, error)
}

// Normalize returns the mode of a file in a layer: 0755 for directories and for files that their owner may execute,
// 0644 for other files. It removes set-uid, set-gid and write permission for others.
func Normalize(mode fs.FileMode) fs.FileMode {
	if mode.IsDir() || mode&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// File returns an entry for the regular file at name in fsys with the path target. Its size and mode are read now; its
// content is opened when the layer is written, and writing fails with [ErrChanged] if its length or modification time
// has changed.
func File(target string, fsys fs.FS, name string) (Entry, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return Entry{}, err
	}
	if !info.Mode().IsRegular() {
		return Entry{}, fmt.Errorf("%q is not a regular file", name)
	}
	return Entry{
		Name: target,
		Mode: Normalize(info.Mode()),
		Size: info.Size(),
		Open: func() (io.ReadCloser, error) {
			f, err := fsys.Open(name)
			if err != nil {
				return nil, err
			}
			return &steadyFile{f, info}, nil
		},
	}, nil
}

// steadyFile fails on Close if the file changed since the layer was planned.
type steadyFile struct {
	fs.File
	was fs.FileInfo
}

func (s *steadyFile) Close() error {
	is, err := s.Stat()
	if err == nil && (is.Size() != s.was.Size() || !is.ModTime().Equal(s.was.ModTime())) {
		err = ErrChanged
	}
	return errors.Join(err, s.File.Close())
}

// Bytes returns a file with the given content, which must not change until the layer is written.
func Bytes(target string, mode fs.FileMode, content []byte) Entry {
	return Entry{
		Name: target,
		Mode: Normalize(mode),
		Size: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	}
}

// Dir returns a directory with exactly the given permission bits and [fs.ModeSticky]. Parent directories of other
// entries need not be given.
func Dir(target string, mode fs.FileMode) Entry {
	return Entry{Name: target, Kind: KindDir, Mode: mode & (fs.ModePerm | fs.ModeSticky)}
}

// Hardlink is a second name of the file called to in the same layer. Hard links are written after everything else.
func Hardlink(target, to string, mode fs.FileMode) Entry {
	return Entry{Name: target, Kind: KindHardlink, Mode: Normalize(mode), Link: to}
}

// Whiteout returns an entry that hides the name in lower layers.
func Whiteout(target string) Entry {
	dir, base := path.Split(target)
	return Entry{Name: dir + whiteoutPrefix + base, Kind: KindWhiteout, Mode: 0o644}
}

// Opaque returns an entry that hides the content of lower layers in a directory of this layer.
func Opaque(dir string) Entry {
	return Entry{Name: dir + "/" + opaqueMarker, Kind: KindWhiteout, Mode: 0o644}
}

// whiteoutPrefix marks a removed name and opaqueMarker a directory that hides its content in lower layers (OCI image
// specification, section "Whiteouts").
const (
	whiteoutPrefix = ".wh."
	opaqueMarker   = ".wh..wh..opq"
)

// The maximum length of a name in a directory, and of a path that readers of layers accept.
const (
	maxComponent = 255
	maxPath      = 1024
)

// checkName refuses names that readers could take for another path or for a whiteout.
func (e Entry) checkName() error {
	switch {
	case e.Name == "" || e.Name == ".":
		return fmt.Errorf("%q: empty name", e.Name)
	case !utf8.ValidString(e.Name):
		return fmt.Errorf("%q: name is not UTF-8", e.Name)
	case strings.ContainsRune(e.Name, 0):
		return fmt.Errorf("%q: NUL in the name", e.Name)
	case !fs.ValidPath(e.Name):
		return fmt.Errorf("%q: path leaves the image root or is not clean", e.Name)
	case len(e.Name) > maxPath:
		return fmt.Errorf("%.80q...: path longer than %d bytes", e.Name, maxPath)
	}
	for part := range strings.SplitSeq(e.Name, "/") {
		if len(part) > maxComponent {
			return fmt.Errorf("%.80q...: name longer than %d bytes", part, maxComponent)
		}
		if strings.HasPrefix(part, whiteoutPrefix) && e.Kind != KindWhiteout {
			return fmt.Errorf("%q: a name that begins with %q would hide other files", e.Name, whiteoutPrefix)
		}
	}
	return nil
}
