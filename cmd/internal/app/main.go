package app

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build/containerfile/fullbuild"
	"github.com/operator-bindery/bindery/cmd/internal/app/firstgc"
	checkcmd "github.com/operator-bindery/bindery/cmd/internal/check"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	indexcmd "github.com/operator-bindery/bindery/cmd/internal/index"
	ocmirrorcmd "github.com/operator-bindery/bindery/cmd/internal/ocmirror"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/cmd/internal/rootless"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
	"github.com/operator-bindery/bindery/internal/guard"
)

// The time that a command may take to end after a signal: a server waits for open calls.
const (
	grace       = 5 * time.Second
	serverGrace = 20 * time.Second
)

// Main is the program with the arguments, streams and environment of the process. It does not return.
func Main() {
	if fullbuild.Init() || rootless.StoreHelper() {
		os.Exit(0) // this process ran one RUN or unpacked one layer
	}
	if home, ok := homeOf(os.Getenv, user.LookupId); !ok {
		os.Setenv("HOME", home)
	}
	if status, entered := rootless.EnterStore(os.Args[1:], os.Environ()); entered {
		os.Exit(status)
	}
	os.Exit(Run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// homeOf returns the home directory that container engines set, and false, for a user without one: a pod with an
// arbitrary uid. Otherwise the registry library would fail, or look for credentials in the working directory.
func homeOf(getenv func(string) string, lookup func(uid string) (*user.User, error)) (string, bool) {
	if home := getenv("HOME"); home != "" {
		return home, true
	}
	if u, err := lookup(strconv.Itoa(os.Getuid())); err == nil && u.HomeDir != "" {
		return u.HomeDir, true
	}
	return "/", false
}

// Run runs the program with arguments, of which the first is its name, and returns the exit status.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &option.Session{Program: &program.Program{
		Name:   strings.TrimSuffix(filepath.Base(args[0]), ".exe"),
		Stdin:  stdin,
		Stdout: &cmdline.Pipe{W: stdout},
		Stderr: stderr,
	}}
	// These were parts of opm; their output is opm's.
	p.Opm = p.Name == "opm" || p.Name == "initializer" || p.Name == "registry-server"
	p.Log = p.NewLogger(stderr, p.LogFormat(""), 0)
	p.Embedded.Self = p.ServesItself
	defer rootless.LogLibraries(func(text string) { p.Log.Warn(text) })()
	p.AtEnd = append(p.AtEnd, func(a0 bool) error { return checkcmd.CountWarnings(p, a0) })
	app := New(p)
	if p.Name == ocmirrorcmd.Name {
		args = slices.Concat(args[:1], ocmirrorcmd.Args(args[1:]))
	}
	if tool := indexcmd.ToolNames[p.Name]; tool != nil {
		args = slices.Concat([]string{app.Name}, tool, args[1:])
	}

	line, err := cmdline.Parse(app, args)
	var flags []cli.Flag
	if leaf := line.Leaf(); leaf != nil {
		flags = leaf.Flags
	}
	p.Secrets = secret.TakeEnvironment(args, flags)
	wait, others := grace, []os.Signal(nil)
	if leaf := line.Leaf(); leaf != nil && leaf.Name == "serve" {
		wait, others = serverGrace, []os.Signal{syscall.SIGHUP}
	}
	setMemory(line.Leaf())
	ctx, stop := cmdline.WithSignals(context.Background(), wait, os.Exit, others...)
	defer stop()
	switch {
	case err != nil:
	case line.Help && p.Name != indexcmd.ProbeName:
		err = cmdline.WriteHelp(p.Stdout, app, line)
	default:
		p.Line = line
		err = guard.Call(func() error { return app.RunContext(ctx, line.Args) })
		err = end(p, err)
	}
	return finish(p, ctx, app, line, args, err)
}

// setMemory sets by how much the memory of a command may grow between two collections of garbage.
func setMemory(leaf *cli.Command) {
	percent, limit := 50, int64(math.MaxInt64) // saves a tenth of the memory for a tenth more processor time
	if leaf != nil {
		switch leaf.Name {
		case "add":
			percent = 200 // many small bundles leave much garbage: a third less processor time for a tenth more memory
		case "site":
			percent, limit = 200, 180<<20 // so do pages: a third less, until they take the memory
		case "check":
			percent, limit = 300, 200<<20 // so do thousands of bundles: two fifths less, until they take the memory
		case "delete":
			percent = 20 // most of what is read is kept: the list
		}
	}
	firstgc.Then(percent)
	if limit < debug.SetMemoryLimit(-1) {
		debug.SetMemoryLimit(limit)
	}
}

// end runs the final steps of a command that returned err. A status that is a result is not a failure: an error of a
// final step replaces it.
func end(p *option.Session, err error) error {
	var status *cmdline.ExitStatus
	answered := errors.As(err, &status) && status.Err == nil
	var failed error
	for _, end := range p.AtEnd {
		failed = errors.Join(failed, end((err == nil || answered) && failed == nil))
	}
	switch {
	case failed == nil:
		return err
	case answered:
		return failed
	}
	return errors.Join(err, failed)
}

// finish prints the error and returns the exit status.
func finish(p *option.Session, ctx context.Context, app *cli.App, line cmdline.Line, args []string, err error) int {
	var status *cmdline.ExitStatus
	asked := errors.As(err, &status)
	switch {
	case p.Stdout.Broken():
		return 141
	case err == nil:
		return 0
	case asked && status.Err == nil:
		return status.Status
	}
	if bug := (*guard.Panic)(nil); errors.As(err, &bug) {
		err = bugReport(bug, err, line.Name(app.Name))
	}
	var sig cmdline.Signal
	interrupted := errors.As(context.Cause(ctx), &sig) || errors.As(err, &sig)
	if interrupted {
		err = sig
	}
	showError(p, app, line, args, p.WithHintInWords(hint.WithObject(hint.Add(p.Program, hint.WithClass(program.InFlags(err))))))
	switch {
	case interrupted:
		return sig.Status()
	case asked:
		return status.Status
	}
	return 1
}
