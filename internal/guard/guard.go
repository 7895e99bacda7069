// Package guard turns panics into errors, so that a bug ends one command, one request or one job: what is half written is
// removed by what removes it after any error, and a server goes on.
//
// A panic ends the process unless the goroutine that it is in recovers. So goroutines that do more than wait run what
// they do by [Each], in a [Group] or by [Call]; hack/imports refuses golang.org/x/sync/errgroup.
package guard

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Panic is a panic as an error, of the class [fault.Bug].
type Panic struct {
	// Value is what the panic was called with, as text.
	Value string
	// Frames are the innermost functions at the panic, each as "FUNCTION FILE:LINE", the innermost first.
	Frames []string
}

func (p *Panic) Error() string { return "internal error: " + p.Value }

// ErrorClass returns [fault.Bug].
func (p *Panic) ErrorClass() fault.Class { return fault.Bug }

// Call calls f and returns its error. If f panics, the error is a [*Panic].
func Call(f func() error) (err error) {
	defer Recover(&err)
	return f()
}

// Recover replaces the error that a function returns by a [*Panic] if the function panics. It is deferred after what
// cleans up because of the error, which then runs after it:
//
//	defer func() {
//		if err != nil {
//			out.Abort()
//		}
//	}()
//	defer guard.Recover(&err)
func Recover(err *error) {
	if value := recover(); value != nil {
		p, ok := value.(*Panic)
		if !ok {
			p = &Panic{fault.Short(fmt.Sprint(value)), frames()}
		}
		*err = p
	}
}

// maxFrames is how many functions are named.
const maxFrames = 24

// module is the beginning of the names of the project's functions.
const module = "github.com/operator-bindery/bindery/"

// frames returns the functions at a panic that is being recovered.
func frames() []string {
	pcs := make([]uintptr, 4*maxFrames)
	calls := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	var out []string
	for more, after := true, false; more && len(out) < maxFrames; {
		var f runtime.Frame
		f, more = calls.Next()
		switch {
		case f.Function == "runtime.gopanic":
			after, out = true, nil // of a panic in a panic the first one counts
		case after && !strings.HasPrefix(f.Function, "runtime."):
			out = append(out, fmt.Sprintf("%s %s:%d", strings.TrimPrefix(f.Function, module),
				f.File[strings.LastIndex(f.File, "/")+1:], f.Line))
		}
	}
	return out
}
