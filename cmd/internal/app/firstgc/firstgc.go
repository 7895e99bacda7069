// Package firstgc delays the first garbage collection of a process until its heap has 14 MiB. It acts when it is
// imported. The heap of a large program's package initialization lives as long as the program, and marking it twice
// takes a quarter of the time of a short command.
package firstgc

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// percent puts the first collection at 14 MiB; Go's default of 100 puts it at 4 MiB.
const percent = 350

// then is the percentage after the first collection.
var then atomic.Int32

func init() {
	then.Store(100) // Go's default
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
		// The object is freed by the first collection, which runs its finalizer. It is large enough not to share an
		// allocation with others.
		runtime.SetFinalizer(new([64]byte), func(*[64]byte) { debug.SetGCPercent(int(then.Load())) })
	}
}

// Then sets the percentage by which the heap may grow between collections after the first. The environment variable
// GOGC takes precedence. Call it before the first collection.
func Then(percent int) { then.Store(int32(percent)) }
