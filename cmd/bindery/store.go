//go:build linux && !nobuildah

package main

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"
	"go.podman.io/storage/pkg/reexec"

	"github.com/operator-bindery/bindery/internal/fullbuild"
	"github.com/operator-bindery/bindery/internal/userns"
)

// storeHelper does the work of a process that the library for stores starts this program as, and reports whether this
// is one: it unpacks a layer, in a root directory of its own.
func storeHelper() bool { return reexec.Init() }

// enterStore starts the program again in a user namespace if the command line or a variable of ours names a store of
// images and this process could not use it. Where that cannot be, the command goes on until it needs the store, which
// then says why.
func enterStore(args, environ []string) (status int, entered bool) {
	if !namesStore(args, environ) {
		return 0, false
	}
	return startForStore(nil)
}

// startForStore is [enterStore] where a store is named. stdin, unless nil, is what the process has instead of the
// standard input, which has been read.
func startForStore(stdin []byte) (status int, entered bool) {
	// If the build supports RUN, both use the subordinate ids of the user.
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

// namesStore looks for references to images in a store, and for --load. It goes by the words, because the process that
// waits for the other must have done nothing: whether a command takes a reference there is not looked at.
func namesStore(args, environ []string) bool {
	for i, arg := range args {
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		isFlag := strings.HasPrefix(arg, "-")
		var before string // the flag that the word is the value of, perhaps
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
		case namesStoreImage(arg):
			return true
		}
	}
	return slices.ContainsFunc(environ, func(v string) bool {
		return strings.HasPrefix(v, "BINDERY_") && namesStoreImage(v)
	})
}

// logLibraries lets the libraries for images log as the command does.
func (p *program) logLibraries() {
	logrus.SetOutput(io.Discard)
	logrus.SetLevel(logrus.WarnLevel)
	logrus.AddHook(libraryLog{p})
}

type libraryLog struct{ p *program }

func (l libraryLog) Levels() []logrus.Level {
	return []logrus.Level{logrus.WarnLevel, logrus.ErrorLevel}
}

func (l libraryLog) Fire(e *logrus.Entry) error {
	l.p.log.Warn(e.Message)
	return nil
}
