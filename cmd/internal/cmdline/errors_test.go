package cmdline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
)

func TestTextOfErrorNeverStartsALine(t *testing.T) {
	var b bytes.Buffer
	if err := WriteText(&b, errors.New("name \"a\nerror: all is well\x1b[2J\"")); err != nil {
		t.Fatal(err)
	}
	if want := "error: name \"a\n  error: all is well\\x1b[2J\"\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

type classed struct{}

func (classed) Error() string           { return "classed" }
func (classed) ErrorClass() fault.Class { return fault.Limit }

func TestClassify(t *testing.T) {
	_, notFound := os.Open("nosuch")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, taken := net.Listen("tcp", listener.Addr().String())
	_, refused := net.DialTimeout("tcp", "127.0.0.1:1", time.Second)
	for name, c := range map[string]struct {
		err  error
		want Class
	}{
		"usage":                {Usagef("x"), ClassUsage},
		"its own":              {fmt.Errorf("wrapped: %w", classed{}), ClassLimit},
		"no such file":         {fmt.Errorf("wrapped: %w", notFound), ClassLocal},
		"no space":             {&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, ClassLocal},
		"a failed rename":      {&os.LinkError{Op: "rename", Old: "x", New: "y", Err: syscall.EIO}, ClassLocal},
		"an error number":      {fmt.Errorf("lock: %w", syscall.ENOLCK), ClassLocal},
		"a port that is taken": {taken, ClassLocal},
		"connection refused":   {refused, ClassNetwork},
		"anything else":        {errors.New("broken"), ClassInput},
	} {
		if got := Classify(c.err); got != c.want {
			t.Errorf("%s: %v has class %d, want %d", name, c.err, got, c.want)
		}
	}
}

func TestWriteJSON(t *testing.T) {
	_, notFound := os.Open("nosuch/file")
	var b bytes.Buffer
	if err := WriteJSON(&b, fmt.Errorf("read <it>: %w", notFound)); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%s: %v", b.String(), err)
	}
	if len(got) != 4 || got["class"] != 7.0 || got["object"] != "nosuch/file" || got["hint"] != "" ||
		got["message"] != "read <it>: open nosuch/file: no such file or directory" {
		t.Errorf("got %s", b.String())
	}
}

func TestLists(t *testing.T) {
	got, err := List([]string{"a=b,c=d", "e=f g", "", `"x=1,2",y=3`})
	if want := "a=b|c=d|e=f g|x=1,2|y=3"; err != nil || strings.Join(got, "|") != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	if _, err := List([]string{`"x`}); err == nil {
		t.Error("an open quote was accepted")
	}
	pairs, err := Pairs("label", []string{"a=b,c=d", "e=one, two,three", "a=z"})
	if err != nil || len(pairs) != 3 || pairs["a"] != "z" || pairs["c"] != "d" || pairs["e"] != "one, two,three" {
		t.Errorf("got %q (%v)", pairs, err)
	}
	for _, bad := range []string{"novalue", "=v", "a=b,=c", "novalue,a=b"} {
		if got, err := Pairs("label", []string{bad}); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}
