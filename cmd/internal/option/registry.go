package option

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/version"
)

// Registry is how registries are reached, and which of their images are accepted.
type Registry struct {
	// Given is what flags say of how registries are reached; [Registry.Access] completes it.
	Given                          registries.Options
	Policy                         string
	TLSVerify, RequireSigned       bool
	TrustedKeys, TrustedIdentities cli.StringSlice
	TrustedRoot
	Timeout time.Duration
	// SrcAuthFile and DestAuthFile, unless empty, are in the place of the authfile for what is read and for what is written.
	SrcAuthFile, DestAuthFile string
}

// Flags are the flags of commands that use the content of images.
func (o *Registry) Flags() []cli.Flag {
	flags := o.AccessFlags()
	const group = "registry"
	policy := []cli.Flag{
		&cli.StringFlag{Name: "policy", Usage: "signature policy `FILE` (default the system's policy.json)",
			EnvVars: program.Env("policy"), Category: group, Destination: &o.Policy},
		&cli.StringFlag{Name: "registries-d",
			Usage:   "`DIR` with files that say where signatures are (default the system's registries.d)",
			EnvVars: program.Env("registries-d"), Category: group, Destination: &o.Given.Registry.RegistriesDir},
		&cli.BoolFlag{Name: "require-signed",
			Usage:   "refuse every image that the signature policy accepts without a signature",
			EnvVars: program.Env("require-signed"), Category: group, Destination: &o.RequireSigned},
		&cli.StringSliceFlag{Name: "trusted-key",
			Usage: "refuse every image that no key in `FILE` has signed, in place of what the policy requires; " +
				"can be repeated", EnvVars: program.Env("trusted-key"), Category: group, Destination: &o.TrustedKeys},
		o.identitiesFlag(group),
	}
	return slices.Insert(flags, 5, append(policy, o.RootFlags(group)...)...)
}

// AccessFlags are those of commands that only write beside an image: the policy is about images that are read.
func (o *Registry) AccessFlags() []cli.Flag {
	const group = "registry"
	return []cli.Flag{
		&cli.StringFlag{Name: "authfile",
			Usage:   "credentials `FILE` (default $REGISTRY_AUTH_FILE and the locations of podman and docker)",
			EnvVars: program.Env("authfile"), Category: group, Destination: &o.Given.Registry.AuthFile},
		&cli.BoolFlag{Name: "tls-verify", Value: true, Usage: "verify the certificates of registries; =false accepts any",
			EnvVars: program.Env("tls-verify"), Category: group, Destination: &o.TLSVerify},
		&cli.StringFlag{Name: "ca-file", Usage: "`FILE` with additional certificate authorities",
			EnvVars: program.Env("ca-file"), Category: group, Destination: &o.Given.Registry.CAFile},
		&cli.StringFlag{Name: "cert-dir", Usage: "certificate `DIR` with *.crt, *.cert and *.key files",
			EnvVars: program.Env("cert-dir"), Category: group, Destination: &o.Given.Registry.CertDir},
		&cli.StringFlag{Name: "registries-conf", Usage: "registries.conf `FILE` (default the system's)",
			EnvVars: program.Env("registries-conf"), Category: group, Destination: &o.Given.Registry.RegistriesConf},
		&cli.IntFlag{Name: "retries", Value: 3, Usage: "retry failed registry requests up to `N` times",
			EnvVars: program.Env("retries"), Category: group, Destination: &o.Given.Retries},
		&cli.DurationFlag{Name: "timeout",
			Usage: "stop fetching and copying after `DURATION`, such as 10m; 0 means never", EnvVars: program.Env("timeout"),
			Category: group, Destination: &o.Timeout},
	}
}

// EndsFlags are those of commands that read at one registry and write to another, or with two accounts at one.
func (o *Registry) EndsFlags() []cli.Flag {
	const group = "registry"
	return []cli.Flag{
		&cli.StringFlag{Name: "src-authfile", Usage: "credentials `FILE` for what is read (default that of --authfile)",
			EnvVars: program.Env("src-authfile"), Category: group, Destination: &o.SrcAuthFile},
		&cli.StringFlag{Name: "dest-authfile", Usage: "credentials `FILE` for what is written (default that of --authfile)",
			EnvVars: program.Env("dest-authfile"), Category: group, Destination: &o.DestAuthFile},
	}
}

// SourceAccess is [Registry.Access] for what is read.
func (o *Registry) SourceAccess(p *Session) registries.Options {
	return o.atEnd(p, program.Source, o.SrcAuthFile)
}

// DestAccess is [Registry.Access] for what is written.
func (o *Registry) DestAccess(p *Session) registries.Options {
	return o.atEnd(p, program.Destination, o.DestAuthFile)
}

func (o *Registry) atEnd(p *Session, end, authFile string) registries.Options {
	with := *o
	with.Given.Registry.AuthFile = cmp.Or(authFile, o.Given.Registry.AuthFile)
	with.Given.Registry.End = end
	return with.Access(p)
}

// Access returns how registries are reached. Under opm's name plain HTTP means that no certificate is verified, too.
func (o *Registry) Access(p *Session) registries.Options {
	with := o.Given
	with.Events = p.WarnEvent
	r := &with.Registry
	r.UserAgent, r.PlainHTTP = "bindery/"+strings.TrimPrefix(version.Release(), "v"), p.PlainHTTP
	if skip := p.SkipTLSVerify || r.PlainHTTP && p.Opm; skip || p.Given("tls-verify") {
		skip = skip || !o.TLSVerify
		r.SkipTLSVerify = &skip
	}
	*r = r.Env(os.Getenv)
	return with
}

// PolicyFile returns the file of --policy. An empty value on the command line, such as that of a variable that is not
// set, is an error: the system's policy in its place may accept every image.
func (o *Registry) PolicyFile(p *Session) (string, error) {
	if _, inEnvironment := os.LookupEnv(program.Env("policy")[0]); o.Policy == "" && p.Given("policy") && !inEnvironment {
		return "", cmdline.Usagef("--policy names no file")
	}
	return o.Policy, nil
}

// WithTimeout returns a context that ends at the deadline of --timeout, if there is one.
func (o *Registry) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not done within %v: %w", o.Timeout, context.DeadlineExceeded))
}
