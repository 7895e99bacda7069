// Command bindery binds operator bundles into catalogs and catalogs into images.
//
// Started as opm it is a drop-in replacement for opm: the same commands and flags, with opm's format of errors and
// logs, and started as oc-mirror it takes that program's. Started as grpc_health_probe it is a health probe; started as
// initializer or registry-server it is opm's former tool of that name.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/firstgc"
	"github.com/operator-bindery/bindery/cmd/internal/fullbuild"
)

// The time that a command may take to end after a signal: a server waits for open calls.
const (
	grace       = 5 * time.Second
	serverGrace = 20 * time.Second
)

func main() {
	if fullbuild.Init() || storeHelper() {
		return // this process ran one RUN or unpacked one layer
	}
	if home, ok := homeOf(os.Getenv, user.LookupId); !ok {
		os.Setenv("HOME", home)
	}
	if status, entered := enterStore(os.Args[1:], os.Environ()); entered {
		os.Exit(status)
	}
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
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

// run is the whole program: it returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{
		name:   strings.TrimSuffix(filepath.Base(args[0]), ".exe"),
		stdin:  stdin,
		stdout: &cmdline.Pipe{W: stdout},
		stderr: stderr,
	}
	// These were parts of opm; their output is opm's.
	p.opm = p.name == "opm" || p.name == "initializer" || p.name == "registry-server"
	p.log = p.newLogger(stderr, p.logFormat(""), 0)
	p.embedded.Self = p.servesItself
	if p.name == ocMirrorName {
		p.inWords = ocMirrorWords
	}
	p.logLibraries()
	p.atEnd = append(p.atEnd, p.countWarnings)
	app := newApp(p)
	if p.name == ocMirrorName {
		args = slices.Concat(args[:1], ocMirrorArgs(args[1:]))
	}
	if tool := toolNames[p.name]; tool != nil {
		args = slices.Concat([]string{app.Name}, tool, args[1:])
	}

	line, err := cmdline.Parse(app, args)
	wait, others := grace, []os.Signal(nil)
	if leaf := line.Leaf(); leaf != nil && leaf.Name == "serve" {
		wait, others = serverGrace, []os.Signal{syscall.SIGHUP}
	}
	percent := 50 // saves a tenth of the memory for a tenth more processor time
	if leaf := line.Leaf(); leaf != nil && leaf.Name == "add" {
		percent = 200 // many small bundles leave much garbage: a third less processor time for a tenth more memory
	}
	firstgc.Then(percent)
	ctx, stop := cmdline.WithSignals(context.Background(), wait, os.Exit, others...)
	defer stop()
	switch {
	case err != nil:
	case line.Help && p.name != probeName:
		err = cmdline.WriteHelp(p.stdout, app, line)
	default:
		p.line = line
		err = p.end(app.RunContext(ctx, line.Args))
	}
	return p.finish(ctx, app, line, args, err)
}

// end runs the final steps of a command that returned err. A status that is a result is not a failure: an error of a
// final step replaces it.
func (p *program) end(err error) error {
	var status *cmdline.ExitStatus
	answered := errors.As(err, &status) && status.Err == nil
	var failed error
	for _, end := range p.atEnd {
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
func (p *program) finish(ctx context.Context, app *cli.App, line cmdline.Line, args []string, err error) int {
	var status *cmdline.ExitStatus
	asked := errors.As(err, &status)
	switch {
	case p.stdout.Broken():
		return 141
	case err == nil:
		return 0
	case asked && status.Err == nil:
		return status.Status
	}
	var sig cmdline.Signal
	interrupted := errors.As(context.Cause(ctx), &sig) || errors.As(err, &sig)
	if interrupted {
		err = sig
	}
	p.showError(app, line, args, p.withHintInWords(withObject(p.withHint(withClass(err)))))
	switch {
	case interrupted:
		return sig.Status()
	case asked:
		return status.Status
	}
	return 1
}
