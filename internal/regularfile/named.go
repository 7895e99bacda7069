package regularfile

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
)

// OpenNamed opens a file that the user names, for reading it once from its start. It is opened as it is named: mounted
// secrets and configurations are links to links, and the pipe of "<(command)" is a link to what has no name. Pipes and
// devices are read to their end, which the end of the context is as well, also where no program writes to a FIFO.
func OpenNamed(ctx context.Context, path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() {
		f, err := os.Open(path) // its error says "open"
		if err != nil {
			return nil, err
		}
		return &named{ctx, f, func() bool { return true }}, nil
	}
	if info.Mode()&(fs.ModeDir|fs.ModeSocket) != 0 {
		return nil, &KindError{path, info.Mode(), ""}
	}
	type result struct {
		f   *os.File
		err error
	}
	opened := make(chan result, 1)
	go func() { // a FIFO is not open before somebody writes to it
		f, err := os.Open(path)
		opened <- result{f, err}
	}()
	select {
	case r := <-opened:
		if r.err != nil {
			return nil, r.err
		}
		// What cannot have a deadline has always something to read.
		stop := context.AfterFunc(ctx, func() { _ = r.f.SetReadDeadline(time.Unix(1, 0)) })
		return &named{ctx, r.f, stop}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", path, context.Cause(ctx))
	}
}

// named is a file whose reading ends with a context.
type named struct {
	ctx  context.Context
	file *os.File
	stop func() bool
}

func (n *named) Read(p []byte) (int, error) {
	if n.ctx.Err() != nil {
		return 0, context.Cause(n.ctx)
	}
	got, err := n.file.Read(p)
	if err != nil && n.ctx.Err() != nil {
		err = context.Cause(n.ctx)
	}
	return got, err
}

func (n *named) Close() error {
	n.stop()
	return n.file.Close()
}

// ReadNamed reads a file of at most limit bytes as [OpenNamed] opens it. Of what is no regular file the content is
// kept: a pipe gives it once, and a run may read the file again.
func ReadNamed(ctx context.Context, path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Size() > limit {
		return nil, longer(path, limit)
	}
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		return readNamed(ctx, path, limit)
	}
	k := keptOf(info)
	k.Lock()
	defer k.Unlock()
	if !k.read {
		if k.content, err = readNamed(ctx, path, limit); err != nil {
			return nil, err
		}
		k.read = true
	}
	if int64(len(k.content)) > limit {
		return nil, longer(path, limit)
	}
	return append([]byte{}, k.content...), nil
}

// ReadMounted is like [ReadNamed], for a small file.
func ReadMounted(ctx context.Context, path string) ([]byte, error) {
	return ReadNamed(ctx, path, maxMounted)
}

// maxMounted is the maximum size in bytes for ReadMounted.
const maxMounted = 4 << 20

func readNamed(ctx context.Context, path string, limit int64) ([]byte, error) {
	f, err := OpenNamed(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, longer(path, limit)
	}
	return content, nil
}

// kept is what was read of a file that can be read once.
type kept struct {
	sync.Mutex
	is      fs.FileInfo
	read    bool
	content []byte
}

// keptFiles are the files of which the content is kept. Like pipes, they are those of the process.
var keptFiles struct {
	sync.Mutex
	all []*kept
}

func keptOf(info fs.FileInfo) *kept {
	keptFiles.Lock()
	defer keptFiles.Unlock()
	for _, k := range keptFiles.all {
		if os.SameFile(k.is, info) {
			return k
		}
	}
	k := &kept{is: info}
	keptFiles.all = append(keptFiles.all, k)
	return k
}

// OpenSeekable opens a file that the user names and that is read in any order, or more than once: a regular file, a
// link to one, or /dev/null, which is empty. A pipe is a [*KindError], at once.
func OpenSeekable(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil {
		if err := CheckSeekable(path, info); err != nil {
			return nil, err
		}
	}
	return os.Open(path)
}

// CheckSeekable returns the error of [OpenSeekable] for a file that is there.
func CheckSeekable(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() || isNull(info) {
		return nil
	}
	hint := ""
	if info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0 {
		hint = ", and is not read from its start to its end: write it to a file first"
	}
	return &KindError{path, info.Mode(), hint}
}

// IsNull tells whether a path names /dev/null, also through links.
func IsNull(path string) bool {
	info, err := os.Stat(path)
	return err == nil && isNull(info)
}

func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(null, info)
}

// KindError is the error about what the user names and is no file of the kind that is needed.
type KindError struct {
	Path string
	Mode fs.FileMode
	hint string
}

func (e *KindError) Error() string {
	kind := "not a file"
	switch {
	case e.Mode.IsDir():
		kind = "a directory"
	case e.Mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case e.Mode&fs.ModeSocket != 0:
		kind = "a socket"
	case e.Mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	if e.hint != "" {
		return fmt.Sprintf("%q is %s%s", e.Path, kind, e.hint)
	}
	return fmt.Sprintf("%q is %s, expected a file", e.Path, kind)
}

// ErrorClass returns [fault.Local]: the file is at fault, not its content.
func (e *KindError) ErrorClass() fault.Class { return fault.Local }

func longer(path string, limit int64) error {
	return fmt.Errorf("%s: %w: longer than %d bytes", path, fault.ErrLimit, limit)
}
