package repository

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/registries"
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
		Action: program.Between(0, 1, p.Action(func(ctx context.Context, args []string) error { return o.run(ctx, p, args) })),
	}
}

func (o *logoutOptions) run(ctx context.Context, p *option.Session, args []string) error {
	if o.all == (len(args) == 1) {
		return cmdline.Usagef("expected a registry, or --all")
	}
	accounts, err := o.accounts(p)
	if err != nil {
		return err
	}
	with := o.Access(p).Registry
	if named := o.compatFile != "" || with.AuthFile != ""; named {
		if _, err := os.Stat(accounts.File); err != nil {
			return &cmdline.Error{Class: cmdline.ClassLocal, Err: err}
		}
	}
	if o.all {
		if err := accounts.ForgetAll(ctx); err != nil {
			return &cmdline.Error{Class: cmdline.ClassLocal, Err: err}
		}
		p.Log.Info("logged out of all registries")
		return nil
	}
	at, err := registryOf(args[0])
	if err != nil {
		return err
	}
	err = accounts.Forget(ctx, at)
	if err != nil && !errors.Is(err, registries.ErrNotLoggedIn) {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: at, Err: fmt.Errorf("%s: %w", at, err)}
	}
	other, _ := with.Elsewhere(ctx, at) // an unreadable one is reported by those who need it
	switch {
	case err != nil && other != "":
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: at, Err: fmt.Errorf("%s: %w by %s", at, err, accounts.File),
			Hint: "credentials for it come from " + other + ": name that file with --authfile, or docker's with --compat-auth-file"}
	case err != nil:
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: at, Err: fmt.Errorf("%s: %w", at, err)}
	case other != "":
		p.Log.Warn(fmt.Sprintf("credentials for %s still come from %s", at, other))
	}
	p.Log.Info(fmt.Sprintf("logged out of %s", at))
	return nil
}
