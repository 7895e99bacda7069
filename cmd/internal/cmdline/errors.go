package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/shape"
)

// Class is the class of an error. It is part of the JSON form of an error and never the exit status of a command.
type Class = fault.Class

// The classes.
const (
	ClassUsage     = fault.Usage
	ClassInput     = fault.Input
	ClassNetwork   = fault.Network
	ClassIntegrity = fault.Integrity
	ClassLimit     = fault.Limit
	ClassLocal     = fault.Local
	ClassConflict  = fault.Conflict
	ClassBug       = fault.Bug
)

// Error is an error with a class and advice for the user. Object is the subject of the error (a path, a reference, a
// flag); Hint is one sentence on what to do. Both may be empty. List are lines that come last, after the hint; in the JSON
// form they end the message.
type Error struct {
	Class  Class
	Object string
	Hint   string
	List   iter.Seq[string]
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usagef returns an error of class [ClassUsage].
func Usagef(format string, args ...any) *Error {
	return &Error{Class: ClassUsage, Err: fmt.Errorf(format, args...)}
}

// ExitStatus is an error with an exit status other than 1. Err may be nil: then nothing is printed.
type ExitStatus struct {
	Status int
	Err    error
}

func (e *ExitStatus) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}
func (e *ExitStatus) Unwrap() error { return e.Err }

// Classify returns the class of an error: that of its outermost [Error], else the one that [fault.ClassOf] finds, else
// that of the system error that it wraps, else [ClassInput].
func Classify(err error) Class {
	var e *Error
	if errors.As(err, &e) && e.Class != 0 {
		return e.Class
	}
	system := systemClass(err)
	class := fault.ClassOf(err)
	// A file that cannot be read while an image is uploaded is not the registry's fault.
	if class == 0 || class == ClassNetwork && system == ClassLocal {
		return system
	}
	return class
}

// systemClass returns the class of a file system or network error; [ClassInput] for other errors.
func systemClass(err error) Class {
	var netErr net.Error
	var path *fs.PathError
	var link *os.LinkError
	var sys *os.SyscallError
	var op *net.OpError
	var errno syscall.Errno
	switch {
	case errors.As(err, &op) && op.Op == "listen":
		return ClassLocal
	case errors.As(err, &op):
		return ClassNetwork
	case errors.As(err, &path), errors.As(err, &link), errors.As(err, &sys), errors.As(err, &errno):
		// Checked before net.Error, which system error numbers implement too.
		return ClassLocal
	case errors.As(err, &netErr) && !errors.Is(err, context.DeadlineExceeded):
		return ClassNetwork
	}
	return ClassInput
}

// JSONError is the form of --error-format json.
type JSONError struct {
	Class   Class  `json:"class"`
	Message string `json:"message"`
	Object  string `json:"object"`
	Hint    string `json:"hint"`
}

// WriteJSON writes err as one line of JSON with the keys class, message, object and hint, without credentials. Unprintable
// characters are escaped, as the line may be read on a terminal.
func WriteJSON(w io.Writer, err error) error {
	message, hint := shape.Plain(err.Error(), err), ""
	list := func(func(string) bool) {}
	var e *Error
	if errors.As(err, &e) {
		if hint = e.Hint; e.List != nil {
			list = e.List
		}
	}
	// The fields of JSONError. A list may be very long: its lines are added to the message one by one.
	_, werr := fmt.Fprintf(w, `{"class":%s,"message":%s`, jsonText(Classify(err)),
		strings.TrimSuffix(jsonText(message), `"`))
	for line := range list {
		quoted := jsonText(line)
		_, lerr := io.WriteString(w, `\n`+quoted[1:len(quoted)-1])
		werr = errors.Join(werr, lerr)
	}
	_, oerr := fmt.Fprintf(w, `","object":%s,"hint":%s}`+"\n", jsonText(object(err)), jsonText(hint))
	return errors.Join(werr, oerr)
}

// jsonText is a text or a class as a string of JSON that is safe on a terminal, without credentials.
func jsonText(text any) string {
	if s, ok := text.(string); ok {
		text = strings.ToValidUTF8(s, "\uFFFD")
	}
	quoted, err := canon.Encode(text)
	if err != nil {
		panic(err) // a string
	}
	return string(printable.JSON(redact.JSON(quoted)))
}

// object returns the object of the outermost [Error], else the path of a failed file operation.
func object(err error) string {
	var e *Error
	if errors.As(err, &e) && e.Object != "" {
		return e.Object
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Path
	}
	return ""
}

// WriteText writes err as "error: ..." and its hint as "hint: ...", then its list. Further lines are indented, so that
// quoted input never starts a line, and everything is cleaned with [printable.Text].
func WriteText(w io.Writer, err error) error {
	_, werr := fmt.Fprintf(w, "error: %s\n", printable.Indent(printable.Text(shape.Plain(err.Error(), err))))
	var e *Error
	if errors.As(err, &e) && e.Hint != "" {
		_, herr := fmt.Fprintf(w, "hint: %s\n", printable.Indent(printable.Text(e.Hint)))
		werr = errors.Join(werr, herr)
	}
	if e != nil && e.List != nil {
		for line := range e.List {
			_, lerr := fmt.Fprintln(w, printable.Indent(printable.Text(line)))
			werr = errors.Join(werr, lerr)
		}
	}
	return werr
}
