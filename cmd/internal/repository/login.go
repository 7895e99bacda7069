// Package repository has the commands about registries and their repositories: who the user is there, which tags there
// are, and what they stand for.
package repository

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/urfave/cli/v2"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
	"github.com/operator-bindery/bindery/images/registries"
)

// accountOptions are the flags of "login" and "logout".
type accountOptions struct {
	option.Registry
	compatFile string
}

func (o *accountOptions) flags() []cli.Flag {
	return append(o.AccessFlags(), &cli.StringFlag{Name: "compat-auth-file", Destination: &o.compatFile, Category: "registry",
		Usage: "write docker's configuration `FILE` in place of podman's"})
}

// accounts returns where credentials are kept: the file of --authfile or of --compat-auth-file, else the one that is read
// first, as podman decides: that of $REGISTRY_AUTH_FILE or of $DOCKER_CONFIG, else podman's default.
func (o *accountOptions) accounts(p *option.Session) (*registries.Accounts, error) {
	with := o.Access(p).Registry
	if o.compatFile != "" {
		if o.Given.Registry.AuthFile != "" {
			return nil, cmdline.Usagef("--authfile and --compat-auth-file are mutually exclusive")
		}
		with.AuthFile = o.compatFile
	}
	a, err := with.Accounts()
	if err == nil && (o.compatFile != "" || o.Given.Registry.AuthFile != "") {
		a.Docker = o.compatFile != ""
	}
	return a, err
}

// registryOf checks HOST[:PORT][/PATH], for which credentials are kept. The scheme of a URL is dropped, as podman does.
func registryOf(text string) (string, error) {
	at := text
	if u, err := url.Parse(text); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		at = u.Host
	}
	host, _, _ := strings.Cut(at, "/")
	named, err := reference.ParseNormalizedNamed(at + "/x")
	if err != nil || reference.Domain(named) != host || strings.Contains(at, "@") {
		return "", cmdline.Usagef("%.300q is no registry HOST[:PORT], or HOST[:PORT]/PATH without a tag", text)
	}
	return at, nil
}

// loginOptions are the flags of "login".
type loginOptions struct {
	accountOptions
	user, password string
	fromStdin      bool
}

// LoginCommand returns "login".
func LoginCommand(p *option.Session) *cli.Command {
	o := &loginOptions{}
	return &cli.Command{
		Name:      "login",
		Usage:     "keep the user name and password for a registry",
		ArgsUsage: "REGISTRY[/PATH]",
		Description: `Asks the registry whether it takes the user name and the password, and writes them to the
file that podman, skopeo and buildah use too (--authfile, $REGISTRY_AUTH_FILE, $DOCKER_CONFIG, else podman's).
With a path they are for the repositories below it alone. A credential helper is used only if that file, or
registries.conf, names it. On a terminal, what is not given is asked for.` +
			program.Examples("bindery login registry.example.com -u ci --password-stdin",
				"bindery login registry.example.com/acme -u ci --password-stdin --authfile auth.json"),
		Flags: program.Flags([]cli.Flag{
			&cli.StringFlag{Name: "username", Aliases: []string{"u"}, Usage: "`NAME` of the user", Destination: &o.user},
			&cli.BoolFlag{Name: "password-stdin", Usage: "read the password from standard input", Destination: &o.fromStdin},
			&cli.StringFlag{Name: "password", Usage: "the `PASSWORD`, which all users of this machine can read while the " +
				"command runs: --password-stdin is safer", Destination: &o.password},
		}, o.flags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return o.run(ctx, p, args[0]) })),
	}
}

func (o *loginOptions) run(ctx context.Context, p *option.Session, text string) (err error) {
	at, err := registryOf(text)
	if err != nil {
		return err
	}
	accounts, err := o.accounts(p)
	if err != nil {
		return err
	}
	if err := accounts.Check(ctx); err != nil {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: accounts.File, Err: fmt.Errorf("what logins are written to: %w", err)}
	}
	user, secret, err := o.credentials(p, at)
	if err != nil {
		return err
	}
	ctx, cancel := o.WithTimeout(ctx)
	defer cancel()
	with := o.Access(p)
	with.Registry.AuthFile, with.Registry.AuthFiles = "", []string{} // what is kept is about to be replaced, and need not be there
	remote, err := registries.New(ctx, with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remote.Close()) }()
	if err := remote.Login(ctx, at, user, secret); err != nil {
		if registries.IsUnauthorized(err) {
			e := &cmdline.Error{Class: cmdline.Classify(err), Object: at, Err: err,
				Hint: "the registry refused the user name or the password; nothing was written"}
			if answer := (*registries.StatusError)(nil); errors.As(err, &answer) && answer.Status == http.StatusForbidden {
				e.Hint = "the registry forbids it, to this user or from this machine: ask who runs it; nothing was written"
			}
			return e
		}
		return err
	}
	where, err := accounts.Keep(ctx, at, user, secret)
	if err != nil {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: at, Err: fmt.Errorf("the credentials cannot be kept: %w", err)}
	}
	p.Log.Info(fmt.Sprintf("logged in to %s as %s: %s", at, user, where))
	return nil
}

// credentials returns the user name and the password: of the flags, of standard input, or of the terminal.
func (o *loginOptions) credentials(p *option.Session, at string) (user, password string, err error) {
	user, password = o.user, o.password
	switch {
	case o.fromStdin && p.Given("password"):
		return "", "", cmdline.Usagef("--password and --password-stdin are mutually exclusive")
	case o.fromStdin && user == "":
		return "", "", cmdline.Usagef("--password-stdin needs --username")
	case p.Given("password"):
		p.Log.Warn("--password shows the password to all users of this machine: --password-stdin does not")
	case o.fromStdin:
		text, err := secret.ReadAtMost(p.Stdin, maxPassword)
		if err != nil {
			return "", "", fmt.Errorf("the password on standard input: %w", err)
		}
		password = strings.TrimRight(string(text), "\r\n")
	}
	if user != "" && password != "" {
		return user, password, nil
	}
	if o.fromStdin {
		return "", "", cmdline.Usagef("there is no password on standard input")
	}
	in := p.Terminal()
	if in == nil {
		e := cmdline.Usagef("no user name or no password for %s", at)
		e.Hint = "give them with --username NAME --password-stdin"
		return "", "", e
	}
	if user == "" {
		fmt.Fprintf(p.Stderr, "User name for %s: ", at)
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil {
			return "", "", fmt.Errorf("the user name: %w", err)
		}
		user = strings.TrimSpace(line)
	}
	text, err := p.AskSecret(in, "Password: ")
	if err == nil && (user == "" || len(text) == 0) {
		err = cmdline.Usagef("the user name or the password is empty")
	}
	return user, string(text), err
}

// maxPassword is the longest password in bytes: a token of a cloud has a few thousand.
const maxPassword = 64 << 10
