package atomicfs

import (
	"os"
	"time"

	"github.com/operator-bindery/bindery/internal/filelock"
)

// tryLock locks an open file or directory until it is closed and reports whether it succeeded. Without success another
// process holds the lock, or the file system has no locks: nothing counts as stale there.
func tryLock(f *os.File) bool {
	held, _ := filelock.Try(f)
	return held
}

// lockWait is how long a writer waits for the lock of a directory.
const lockWait = time.Second

// lock locks an open directory until it is closed. Writers hold this lock briefly, but any user who can read the
// directory can hold it forever: it waits at most [lockWait]. It reports false if the lock could not be taken or the
// file system has no locks.
func lock(f *os.File) bool {
	for end := time.Now().Add(lockWait); ; time.Sleep(filelock.Poll) {
		held, err := filelock.Try(f)
		if held || err != nil || time.Now().After(end) {
			return held
		}
	}
}
