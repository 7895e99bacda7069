//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package rootless

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"
	"go.podman.io/storage/pkg/reexec"

	"github.com/operator-bindery/bindery/build/containerfile/fullbuild"
	"github.com/operator-bindery/bindery/internal/userns"
)

// StoreHelper does the work of a process that the storage library starts from this program, and reports whether this is
// such a process: it unpacks a layer in its own root directory.
func StoreHelper() bool { return reexec.Init() }

// EnterStore starts the program again in a user namespace if the arguments or BINDERY_* variables name podman's image
// store and this process could not use it. If no namespace can be created, the command continues until it needs the
// store, whose error then explains the cause.
func EnterStore(args, environ []string) (status int, entered bool) {
	if !NamesStore(args, environ) {
		return 0, false
	}
	return StartForStore(nil)
}

// StartForStore is like [EnterStore] without the check for a store. stdin, unless nil, replaces standard input, which
// has been read.
func StartForStore(stdin []byte) (status int, entered bool) {
	// In programs that support RUN, stores use the user's subordinate ids too.
	if fullbuild.Available && userns.Needed() {
		var in io.Reader
		if stdin != nil {
			in = bytes.NewReader(stdin)
		}
		if status, entered, err := fullbuild.Enter(in); err == nil {
			return status, entered
		}
	}
	return userns.Enter(stdin)
}

// NamesStore looks for --load and for references to images in a store. It only searches the words, because command
// parsing has not happened: the waiting process must not have done anything.
func NamesStore(args, environ []string) bool {
	for i, arg := range args {
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		isFlag := strings.HasPrefix(arg, "-")
		var before string // the preceding flag, whose value the word may be
		if i > 0 && strings.HasPrefix(args[i-1], "-") {
			before = strings.TrimLeft(args[i-1], "-")
		}
		switch {
		case isFlag && name == "load":
			load, err := strconv.ParseBool(value)
			if !given || err == nil && load {
				return true
			}
		case isFlag && textFlags[name], textFlags[before]:
		case NamesStoreImage(arg):
			return true
		}
	}
	return slices.ContainsFunc(environ, func(v string) bool {
		return strings.HasPrefix(v, "BINDERY_") && NamesStoreImage(v)
	})
}

// LogLibraries passes the warnings of the image libraries to a function, until stop is called.
func LogLibraries(warn func(string)) (stop func()) {
	logrus.SetOutput(io.Discard)
	logrus.SetLevel(logrus.WarnLevel)
	hooks := logrus.LevelHooks{}
	hooks.Add(libraryLog(warn))
	before := logrus.StandardLogger().ReplaceHooks(hooks)
	return func() { logrus.StandardLogger().ReplaceHooks(before) }
}

type libraryLog func(string)

func (libraryLog) Levels() []logrus.Level {
	return []logrus.Level{logrus.WarnLevel, logrus.ErrorLevel}
}

func (l libraryLog) Fire(e *logrus.Entry) error {
	l(e.Message)
	return nil
}
