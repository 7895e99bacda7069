package main

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/images/lockfile"
	"github.com/operator-bindery/bindery/internal/version"
)

// program is the state that all commands share: the streams, the logger and the name the program was started under.
type program struct {
	name   string
	opm    bool // started as opm
	stdin  io.Reader
	stdout *cmdline.Pipe
	stderr io.Writer
	log    *slog.Logger
	quiet  bool
	bars   bool            // whether progress is drawn
	screen *cmdline.Screen // standard error, with the bars
	// noProgress shows no lines of progress either.
	noProgress bool
	line       cmdline.Line
	session
	// inWords, unless nil, puts advice into the words of another name.
	inWords func(string) string
	// beforeOutput, unless nil, comes before an answer is printed.
	beforeOutput  func() error
	atEnd         []func(done bool) error
	warnedOnce    sync.Map     // the warnings that warnOnce has already logged
	warned        atomic.Int64 // number of warnings about the input
}

// session is what a command shares while it runs: the images that it reads, the caches, and what is made beside the
// image that it writes.
type session struct {
	images     *images.Client   // created on first use
	blobs      *blobcache.Cache // created on first use
	// readPlatform, unless empty, is the platform for which images are read; with readAny any other one may replace it.
	readPlatform v1.Platform
	readAny      bool
	// requireSigned refuses images that are accepted without a signature, as --require-signed does.
	requireSigned bool
	transfer      *transfer      // created on first use
	signing       *signingFlags  // nil if nothing is signed
	supplies      *supplies      // nil if no documents are made
	checking      *pushChecking  // the running check of registries, while an image is built
	lock          *lockfile.Lock // until it is written
	embedded      build.Embedded // the servers embedded in this program
	undoDemote    []string       // the commands that undo "catalog demote"
}

// opmName is the name of opm.
const opmName = "opm"

// kubectlPlugin is the name under which kubectl finds the program, as "kubectl bindery".
const kubectlPlugin = "kubectl-bindery"

// newApp returns the whole command tree.
func newApp(p *program) *cli.App {
	name := "bindery"
	if p.opm {
		name = opmName
	}
	app := &cli.App{
		Name:     name,
		HelpName: p.typed(),
		Version:  version.Release(),
		Usage:    "bind operator bundles into catalogs and catalogs into images",
		Description: `Needs no daemon, no root and no other program. A catalog is file-based (a directory of
JSON or YAML) or a SQLite index database. Images are written to registries, OCI layouts, archives and podman's
storage.

Flags may precede or follow arguments. Separate list values with commas, or repeat the flag.`,
		Flags:  p.globalFlags(),
		Before: p.readGlobals,
		Action: p.root,
		Writer: p.stdout, ErrWriter: p.stderr,
		Commands: []*cli.Command{
			p.buildCommand(),
			p.migrateCommand(),
			p.renderCommand(),
			p.validateCommand(),
			p.listCommand(),
			p.graphCommand(),
			p.diffCommand(),
			p.checkCommand(),
			p.resolveCommand(),
			p.inspectCommand(),
			p.verifyCommand(),
			p.signCommand(),
			p.attestCommand(),
			p.attachCommand(),
			p.copyCommand(),
			p.treeCommand(),
			p.sbomCommand(),
			p.keysCommand(),
			p.serveCommand(),
			p.probeCommand(),
			p.cacheCommand(),
			p.catalogCommand(),
			p.initCommand(),
			p.generateCommand(),
			p.templateCommand(),
			p.bundleCommand(),
			p.indexCommand(),
			p.registryCommand(),
			p.mirrorCommand(),
			p.alphaCommand(),
			hidden(p.templateRenderCommand("render-template")),
			p.schemaCommand(),
			p.versionCommand(),
			p.completionCommand(),
			p.completeCommand(),
			p.manCommand(),
		},
	}
	app.Commands = append(app.Commands, p.ocMirrorCommands()...)
	cmdline.Prepare(app)
	return app
}

// root runs if no command is named.
func (p *program) root(c *cli.Context) error {
	switch {
	case c.Bool("version"):
		return p.printVersion("")
	case p.opm:
		return nil
	}
	return cmdline.WriteHelp(p.stdout, c.App, p.line)
}

// groupCommand is a command that only has subcommands.
func (p *program) groupCommand(name, usage string, commands ...*cli.Command) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, Action: p.group, Subcommands: commands}
}

// group is the action of a command that has only subcommands: a missing subcommand is an error. opm shows the help
// instead.
func (p *program) group(c *cli.Context) error {
	if p.opm || p.line.Help {
		return cmdline.WriteHelp(p.stdout, c.App, p.line)
	}
	var names []string
	for _, sub := range p.line.Leaf().VisibleCommands() {
		names = append(names, sub.Name)
	}
	return cmdline.Usagef("%q needs a command: %s", p.line.Name(c.App.HelpName), strings.Join(names, ", "))
}

func (p *program) globalFlags() []cli.Flag {
	plain := "allow plain HTTP for registries without TLS; with TLS certificates are verified all the same"
	if p.opm {
		plain = "allow plain HTTP for registries, and accept any certificate"
	}
	return []cli.Flag{
		&cli.StringFlag{Name: "log-level", Value: "info",
			Usage:   "log messages of this `LEVEL` and above to standard error (debug|info|warn|error)",
			EnvVars: env("log-level")},
		&cli.StringFlag{Name: "log-format", Usage: "`FORMAT` of log messages (text|json)", EnvVars: env("log-format"),
			DefaultText: "text"},
		&cli.StringFlag{Name: "error-format", Value: "text", Usage: "`FORMAT` of error messages (text|json)",
			EnvVars: env("error-format")},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "log errors only", EnvVars: env("quiet")},
		&cli.BoolFlag{Name: "no-progress", Usage: "show no progress: no bars, no lines", EnvVars: env("no-progress")},
		&cli.BoolFlag{Name: "version", Usage: "print the version"},
		&cli.BoolFlag{Name: "skip-tls-verify", Usage: "accept any certificate of registries; plain HTTP is not used",
			EnvVars: env("skip-tls-verify")},
		&cli.BoolFlag{Name: "use-http", Usage: plain, EnvVars: env("use-http")},
		&cli.BoolFlag{Name: "skip-tls", Usage: "alias of --use-http", Hidden: true},
		&cli.BoolFlag{Name: "debug", Usage: "alias of --log-level debug", Hidden: true},
	}
}

// readGlobals checks the global flags and creates the logger.
func (p *program) readGlobals(c *cli.Context) error {
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
	p.quiet = c.Bool("quiet")
	switch {
	case p.quiet:
		level = slog.LevelError
	case c.Bool("debug"):
		level = slog.LevelDebug
	}
	p.screen = cmdline.NewScreen(p.stderr)
	p.log = p.newLogger(p.screen, p.logFormat(c.String("log-format")), level)
	stderr, ok := p.stderr.(*os.File)
	p.noProgress = c.Bool("no-progress")
	p.bars = ok && cmdline.HasSize(stderr) && !p.quiet && !p.noProgress && c.String("log-format") != "json"
	return nil
}

// logFormat returns the requested log format, or the default for the program's name.
func (p *program) logFormat(asked string) string {
	switch {
	case asked == "json":
		return asked
	case p.opm:
		return "opm"
	}
	return "text"
}
