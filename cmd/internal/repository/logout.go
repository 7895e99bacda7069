package repository

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"
	"go.podman.io/image/v5/pkg/docker/config"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// logoutOptions are the flags of "logout".
type logoutOptions struct {
	accountOptions
	all bool
}

// LogoutCommand returns "logout".
func LogoutCommand(p *option.Session) *cli.Command {
	o := &logoutOptions{}
	return &cli.Command{
		Name:      "logout",
		Usage:     "forget the user name and password for a registry",
		ArgsUsage: "REGISTRY[/PATH]",
		Description: `Removes what "login", or podman's, has written for the registry. Nothing is sent to it.
Credentials that are only in another file, such as docker's, stay: that is an error.` +
			program.Examples("bindery logout registry.example.com", "bindery logout --all --authfile auth.json"),
		Flags: program.Flags([]cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "forget all registries", Destination: &o.all},
		}, o.flags()),
		Action: program.Between(0, 1, p.Action(func(_ context.Context, args []string) error { return o.run(p, args) })),
	}
}

func (o *logoutOptions) run(p *option.Session, args []string) error {
	if o.all == (len(args) == 1) {
		return cmdline.Usagef("expected a registry, or --all")
	}
	sys, err := o.store(p)
	if err != nil {
		return err
	}
	for _, file := range []string{sys.AuthFilePath, sys.DockerCompatAuthFilePath} {
		if _, err := os.Stat(file); file != "" && err != nil { // the library would make it
			return &cmdline.Error{Class: cmdline.ClassLocal, Err: err}
		}
	}
	if o.all {
		if err := config.RemoveAllAuthentication(sys); err != nil {
			return &cmdline.Error{Class: cmdline.ClassLocal, Err: err}
		}
		p.Log.Info("logged out of all registries")
		return nil
	}
	at, err := registryOf(args[0])
	if err != nil {
		return err
	}
	if err := config.RemoveAuthentication(sys, at); err != nil {
		e := &cmdline.Error{Class: cmdline.ClassLocal, Object: at, Err: fmt.Errorf("%s: %w", at, err)}
		if other, _ := config.GetCredentials(sys, at); errors.Is(err, config.ErrNotLoggedIn) && other.Username != "" {
			e.Hint = "the credentials are in another file, such as docker's: --compat-auth-file FILE"
		}
		return e
	}
	p.Log.Info(fmt.Sprintf("logged out of %s", at))
	return nil
}
