package medium

import (
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/operator-bindery/bindery/internal/memfs"
)

// timeFormat is how times are written: RFC 3339 in UTC.
const timeFormat = time.RFC3339

// Files returns the files of the run in the archive, the last one of several: working-dir/... and isc_TIME. Files are
// read in their segments.
func (r *Reader) Files() fs.FS {
	files := map[string]file{}
	for name, s := range r.files {
		files[name] = file{atEpoch(memfs.File(path.Base(name), s.size)), s}
	}
	return memfs.New(files, func(base string) memfs.Info { return atEpoch(memfs.Dir(base)) },
		func(f file) (io.ReadCloser, error) { return r.openSpan(f.span) })
}

// file is a file of the archive.
type file struct {
	memfs.Info
	span span
}

func atEpoch(info memfs.Info) memfs.Info {
	info.Time = time.Unix(0, 0)
	return info
}
