// Package firstgc puts off the first garbage collection of a process until its heap has 12 MiB, from when the package is
// imported: what the packages of a large program make when they are initialized lives as long as the program, and
// looking through it twice is a quarter of the time of a short command.
package firstgc

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// percent makes the first collection begin at 12 MiB; with Go's own, 100, that is at 4 MiB.
const percent = 300

// then is the percentage from the first collection on.
var then atomic.Int32

func init() {
	then.Store(100) // the default of Go
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
		// The object goes with the first collection, and shares its memory with no other.
		runtime.SetFinalizer(new([64]byte), func(*[64]byte) { debug.SetGCPercent(int(then.Load())) })
	}
}

// Then sets the percentage by which the heap may grow between collections after the first. The variable GOGC of the
// environment counts instead, if it is there. It is called before the first collection.
func Then(percent int) { then.Store(int32(percent)) }
