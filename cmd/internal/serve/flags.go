package serve

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/olmv1/safety"
	"github.com/operator-bindery/bindery/serve"
)

// server has the flags of every command that serves a catalog.
type server struct {
	option.Catalogs
	serve.Options
}

func (o *server) flags() (flags []cli.Flag) {
	for _, f := range o.Options.Flags() {
		var short []string
		if f.Short != "" {
			short = []string{f.Short}
		}
		switch v := f.Value.(type) {
		case *string:
			flags = append(flags, &cli.StringFlag{Name: f.Name, Aliases: short, Value: *v, Destination: v, DefaultText: f.Default, Usage: f.Usage})
		case *int:
			flags = append(flags, &cli.IntFlag{Name: f.Name, Aliases: short, Value: *v, Destination: v, DefaultText: f.Default, Usage: f.Usage})
		case *time.Duration:
			flags = append(flags, &cli.DurationFlag{Name: f.Name, Aliases: short, Value: *v, Destination: v, DefaultText: f.Default, Usage: f.Usage})
		}
	}
	return append(flags, o.CompatFlag(""))
}

// options checks the flags and returns how the catalog is served.
func (o *server) options(p *option.Session) (serve.Options, error) {
	with := o.Options
	with.Log, with.Version, with.Judge = p.Log, version.Release(), safety.Refused
	// The default is the termination log of a pod; outside of a pod it cannot be written and is not needed.
	if !p.Given("termination-log") && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		with.TerminationLog = ""
	}
	return with, with.Check(p.Given)
}

// runServer serves until ctx ends, and reloads the catalog on SIGHUP.
func runServer(p *option.Session, ctx context.Context, src serve.Source, o serve.Options) error {
	o.Limits.FitProcess(o.Log)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hangups, reload := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	o.Reload = reload
	stderr, ok := p.Stderr.(*os.File)
	onTerminal := ok && term.IsTerminal(int(stderr.Fd()))
	go func() {
		for {
			select {
			case s := <-hangups:
				// SIGHUP from a closed terminal, or while a cache is being filled, must end the program and not reload.
				if o.CacheOnly || onTerminal && !term.IsTerminal(int(stderr.Fd())) {
					cancel(cmdline.Signal{Signal: syscall.SIGHUP})
					return
				}
				select {
				case reload <- s:
				default: // one is waiting already
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	err := serve.Run(ctx, src, o)
	// After an interruption the error says only that the context has ended: return the signal.
	if hangup := (cmdline.Signal{}); err != nil && errors.As(context.Cause(ctx), &hangup) {
		return hangup
	}
	return err
}
