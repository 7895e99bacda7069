// Command opm-server is the server of a catalog image, installed as /bin/opm. It has only the opm commands "serve",
// "registry serve" and "version", so that it stays small. Started as grpc_health_probe it is a health probe.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/serve/probe"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal kills the program.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run runs the program and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if name == "grpc_health_probe" {
		return probe.Run(ctx, args[1:], stdout, stderr)
	}
	err := guard.Call(func() error { return command(ctx, args[1:], stdout, stderr) })
	if bug := (*guard.Panic)(nil); errors.As(err, &bug) {
		err = fmt.Errorf("%w: this is a bug of bindery's server (%s)\n\tat %s", err, version.ServerOPM(),
			strings.Join(bug.Frames, "\n\tat "))
	}
	if err != nil {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		if u, ok := asUsage(err); ok {
			fmt.Fprintln(stderr, u)
		}
		return 1
	}
	return 0
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	// The first argument that is not a flag is the command; as in opm, global flags may precede it.
	for len(args) > 0 && isGlobalFlag(args[0]) {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil
	}
	switch first, rest := args[0], args[1:]; first {
	case "serve":
		return serveCatalog(ctx, rest, stdout, stderr)
	case "registry":
		if len(rest) == 0 || rest[0] != "serve" {
			return usageError{fmt.Errorf("unknown command %q for %q", strings.Join(rest, " "), "opm registry"),
				usageRegistryServe}
		}
		return serveDatabase(ctx, rest[1:], stdout, stderr)
	case "version":
		fmt.Fprintln(stdout, version.ServerOPM())
		return nil
	case "help", "-h", "--help":
		fmt.Fprintln(stdout, usage)
		return nil
	default:
		if strings.HasPrefix(first, "-") {
			return usageError{fmt.Errorf("unknown flag: %s", first), usage}
		}
		return usageError{fmt.Errorf("unknown command %q for %q", first, "opm"), usage}
	}
}
