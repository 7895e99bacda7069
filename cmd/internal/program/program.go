package program

import (
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
)

// Program is what all commands share: the streams, the logger and the name the program was started under.
type Program struct {
	Name   string
	Opm    bool // started as opm
	Stdin  io.Reader
	Stdout *cmdline.Pipe
	Stderr io.Writer
	Log    *slog.Logger
	Quiet  bool
	// Secrets were in the environment, from which they are gone.
	Secrets secret.Environment
	bars    bool            // whether progress is drawn
	screen  *cmdline.Screen // standard error, with the bars
	// noProgress shows no lines of progress either.
	noProgress bool
	// PlainHTTP and SkipTLSVerify are the global flags --use-http and --skip-tls-verify.
	PlainHTTP, SkipTLSVerify bool
	// Command is the command line of the command that runs.
	Command  *cli.Context
	Line     cmdline.Line
	transfer *transfer // created on first use
	// InWords, unless nil, is [Program.WordsFor] for another name.
	InWords func(text, end string) string
	// beforeOutput, unless nil, comes before an answer is printed.
	BeforeOutput func() error
	AtEnd        []func(done bool) error
	warnedOnce   sync.Map     // the warnings that warnOnce has already logged
	Warned       atomic.Int64 // number of warnings about the input
}

// OpmName is the name of opm.
const OpmName = "opm"

// KubectlPlugin is the name under which kubectl finds the program, as "kubectl bindery".
const KubectlPlugin = "kubectl-bindery"

// Action returns the action of a command whose flags are bound to the options that run reads. The number of arguments is
// checked by [Exactly] and the like.
func (p *Program) Action(run func(ctx context.Context, args []string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		p.Command = c
		return run(c.Context, c.Args().Slice())
	}
}

// Given reports whether a flag is on the command line or in the environment.
func (p *Program) Given(flag string) bool { return p.Command.IsSet(flag) }

// GivenHere reports whether a flag is on the command line, and not in the environment for all commands.
func (p *Program) GivenHere(flag string) bool { return p.Given(flag) && os.Getenv(Env(flag)[0]) == "" }

// Filled refuses flags that are given and empty, as a variable of a script is that is not set.
func (p *Program) Filled(flags ...string) error {
	for _, flag := range flags {
		if values, ok := p.Command.Value(flag).(cli.StringSlice); ok && slices.Contains(values.Value(), "") ||
			!ok && p.Given(flag) && p.Command.String(flag) == "" {
			return cmdline.Usagef("--%s is empty", flag)
		}
	}
	return nil
}

// GroupCommand is a command that only has subcommands.
func (p *Program) GroupCommand(name, usage string, commands ...*cli.Command) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, Action: p.Group, Subcommands: commands}
}

// Group is the action of a command that has only subcommands: a missing subcommand is an error. opm shows the help
// instead.
func (p *Program) Group(c *cli.Context) error {
	if p.Opm || p.Line.Help {
		return cmdline.WriteHelp(p.Stdout, c.App, p.Line)
	}
	var names []string
	for _, sub := range p.Line.Leaf().VisibleCommands() {
		names = append(names, sub.Name)
	}
	return cmdline.Usagef("%q needs a command: %s", p.Line.Name(c.App.HelpName), strings.Join(names, ", "))
}

func (p *Program) GlobalFlags() []cli.Flag {
	plain := "allow plain HTTP for registries without TLS; with TLS certificates are verified all the same"
	if p.Opm {
		plain = "allow plain HTTP for registries, and accept any certificate"
	}
	return []cli.Flag{
		&cli.StringFlag{Name: "log-level", Value: "info",
			Usage:   "log messages of this `LEVEL` and above to standard error (debug|info|warn|error)",
			EnvVars: Env("log-level")},
		&cli.StringFlag{Name: "log-format", Usage: "`FORMAT` of log messages (text|json)", EnvVars: Env("log-format"),
			DefaultText: "text"},
		&cli.StringFlag{Name: "error-format", Value: "text", Usage: "`FORMAT` of error messages (text|json)",
			EnvVars: Env("error-format")},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "log errors only", EnvVars: Env("quiet")},
		&cli.BoolFlag{Name: "no-progress", Usage: "show no progress: no bars, no lines", EnvVars: Env("no-progress")},
		&cli.BoolFlag{Name: "version", Usage: "print the version"},
		&cli.BoolFlag{Name: "skip-tls-verify", Usage: "accept any certificate of registries; plain HTTP is not used",
			EnvVars: Env("skip-tls-verify")},
		&cli.BoolFlag{Name: "use-http", Usage: plain, EnvVars: Env("use-http")},
		&cli.BoolFlag{Name: "skip-tls", Usage: "alias of --use-http", Hidden: true},
		&cli.BoolFlag{Name: "debug", Usage: "alias of --log-level debug", Hidden: true},
	}
}

// ReadGlobals checks the global flags and creates the logger.
func (p *Program) ReadGlobals(c *cli.Context) error {
	for _, f := range []string{"log-format", "error-format"} {
		if v := c.String(f); v != "" && v != "text" && v != "json" {
			return cmdline.Usagef("invalid --%s value %q, expected (text|json)", f, v)
		}
	}
	level, err := cmdline.ParseLevel(c.String("log-level"))
	if err != nil {
		return err
	}
	switch {
	case c.Bool("skip-tls") && c.Bool("use-http"):
		return cmdline.Usagef("invalid flag combination: skip-tls and use-http cannot both be true")
	case c.Bool("skip-tls") && c.Bool("skip-tls-verify"):
		return cmdline.Usagef("invalid flag combination: skip-tls and skip-tls-verify cannot both be true")
	case c.Bool("use-http") && c.Bool("skip-tls-verify"):
		return cmdline.Usagef("invalid flag combination: use-http and skip-tls-verify cannot both be true")
	}
	p.PlainHTTP, p.SkipTLSVerify = c.Bool("use-http") || c.Bool("skip-tls"), c.Bool("skip-tls-verify")
	p.Quiet = c.Bool("quiet")
	switch {
	case p.Quiet:
		level = slog.LevelError
	case c.Bool("debug"):
		level = slog.LevelDebug
	}
	p.screen = cmdline.NewScreen(p.Stderr)
	p.Log = p.NewLogger(p.screen, p.LogFormat(c.String("log-format")), level)
	stderr, ok := p.Stderr.(*os.File)
	p.noProgress = c.Bool("no-progress")
	p.bars = ok && cmdline.HasSize(stderr) && !p.Quiet && !p.noProgress && c.String("log-format") != "json"
	return nil
}

// LogFormat returns the requested log format, or the default for the program's name.
func (p *Program) LogFormat(asked string) string {
	switch {
	case asked == "json":
		return asked
	case p.Opm:
		return "opm"
	}
	return "text"
}
