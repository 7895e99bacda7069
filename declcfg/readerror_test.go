package declcfg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/operator-bindery/bindery/declcfg"
)

// brokenFS is a file system in which reading a file fails at the end of its content.
type brokenFS struct {
	fstest.MapFS
	err error
}

func (b brokenFS) Open(name string) (fs.File, error) {
	f, err := b.MapFS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".yaml") {
		return f, err
	}
	return brokenFile{f, b.err}, nil
}

type brokenFile struct {
	fs.File
	err error
}

func (f brokenFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}

// A read error is returned as such, wherever in a file it occurs, and not as a problem of the catalog.
func TestReadErrorsAreNoProblems(t *testing.T) {
	integrity := errors.New("integrity")
	const yaml = "schema: olm.package\nname: a\ndescription: text\n---\nschema: olm.channel\nname: c\npackage: " +
		"a\nentries: [{name: x}]\n"
	const json = `{"schema":"olm.package","name":"a"}` + "\n" + `{"schema":"olm.channel","name":"c","package":"a"}` +
		"\n" + `{"schema":"olm.channel","name":"d","package":"a"}`
	for _, failure := range []error{os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled,
		io.ErrUnexpectedEOF, integrity, fmt.Errorf("body: %w", io.EOF)} {
		for _, text := range []string{yaml, json, "# a comment\n", ""} {
			for cut := 0; cut <= len(text); cut++ {
				_, err := declcfg.Read(context.Background(),
					io.MultiReader(strings.NewReader(text[:cut]), iotest.ErrReader(failure)), "c.yaml",
					declcfg.LoadOptions{})
				fsys := brokenFS{fstest.MapFS{"c.yaml": {Data: []byte(text[:cut])}}, failure}
				_, loadErr := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
				for _, err := range []error{err, loadErr} {
					var invalid *declcfg.ValidationError
					// An error that wraps io.EOF does not mean the end of the stream.
					wanted := errors.Is(failure, io.EOF) || errors.Is(err, failure)
					if err == nil || errors.As(err, &invalid) || !wanted || errors.Is(err, io.EOF) ||
						!strings.HasPrefix(err.Error(), "c.yaml: ") {
						t.Fatalf("%v behind %q: %v", failure, text[:cut], err)
					}
				}
			}
		}
	}
}
