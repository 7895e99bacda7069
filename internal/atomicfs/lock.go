package atomicfs

import (
	"os"
	"time"

	"github.com/operator-bindery/bindery/internal/filelock"
)

// tryLock takes the lock of an open file or directory, until it is closed, if no other process has it. On a file system
// without locks it reports false: nothing is taken for stale there.
func tryLock(f *os.File) bool {
	held, _ := filelock.Try(f)
	return held
}

// lockWait is how long a writer tries to get the lock of a directory.
const lockWait = time.Second

// lock takes the lock of an open directory, until it is closed. Other writers hold it for a moment only; but every user
// who can read the directory can hold it for ever, so it is not waited for longer than [lockWait]. It reports false if
// the lock could not be had, also where there are no locks.
func lock(f *os.File) bool {
	for end := time.Now().Add(lockWait); ; time.Sleep(filelock.Poll) {
		held, err := filelock.Try(f)
		if held || err != nil || time.Now().After(end) {
			return held
		}
	}
}
