package app

import (
	"github.com/urfave/cli/v2"

	buildcmd "github.com/operator-bindery/bindery/cmd/internal/build"
	bundlecmd "github.com/operator-bindery/bindery/cmd/internal/bundle"
	cachecmd "github.com/operator-bindery/bindery/cmd/internal/cache"
	catalogcmd "github.com/operator-bindery/bindery/cmd/internal/catalog"
	checkcmd "github.com/operator-bindery/bindery/cmd/internal/check"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	indexcmd "github.com/operator-bindery/bindery/cmd/internal/index"
	migratecmd "github.com/operator-bindery/bindery/cmd/internal/migrate"
	mirrorcmd "github.com/operator-bindery/bindery/cmd/internal/mirror"
	ocmirrorcmd "github.com/operator-bindery/bindery/cmd/internal/ocmirror"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	readcmd "github.com/operator-bindery/bindery/cmd/internal/read"
	repositorycmd "github.com/operator-bindery/bindery/cmd/internal/repository"
	schemacmd "github.com/operator-bindery/bindery/cmd/internal/schema"
	servecmd "github.com/operator-bindery/bindery/cmd/internal/serve"
	signcmd "github.com/operator-bindery/bindery/cmd/internal/sign"
	"github.com/operator-bindery/bindery/internal/version"
)

// New returns the whole command tree.
func New(p *option.Session) *cli.App {
	name := "bindery"
	if p.Opm {
		name = program.OpmName
	}
	if p.Name == ocmirrorcmd.Name {
		p.InWords = ocmirrorcmd.Words(p.Program)
	}
	app := &cli.App{
		Name:     name,
		HelpName: p.Typed(),
		Version:  version.Release(),
		Usage:    "bind operator bundles into catalogs and catalogs into images",
		Description: `Needs no daemon, no root and no other program. A catalog is file-based (a directory of
JSON or YAML) or a SQLite index database. Images are written to registries, OCI layouts, archives and podman's
storage.

Flags may precede or follow arguments. Separate list values with commas, or repeat the flag.`,
		Flags:  p.GlobalFlags(),
		Before: p.ReadGlobals,
		Action: func(c *cli.Context) error { return root(p, c) },
		Writer: p.Stdout, ErrWriter: p.Stderr,
	}
	for _, g := range groups(p) {
		for _, c := range g.commands {
			c.Category = g.title
		}
		app.Commands = append(app.Commands, g.commands...)
	}
	app.Commands = append(app.Commands, ocmirrorcmd.Commands(p)...)
	cmdline.Prepare(app)
	return app
}

// group is a heading in the help of the program, with the commands below it.
type group struct {
	title    string
	commands []*cli.Command
}

func groups(p *option.Session) []group {
	return []group{
		{"Build", []*cli.Command{buildcmd.Command(p), migratecmd.Command(p), bundlecmd.Command(p)}},
		{"Read and check", []*cli.Command{readcmd.RenderCommand(p), readcmd.ListCommand(p), readcmd.GraphCommand(p),
			readcmd.DiffCommand(p), signcmd.InspectCommand(p), checkcmd.ValidateCommand(p), checkcmd.CheckCommand(p),
			checkcmd.ResolveCommand(p)}},
		{"Edit", []*cli.Command{catalogcmd.Command(p), catalogcmd.InitCommand(p), readcmd.TemplateCommand(p),
			readcmd.GenerateCommand(p)}},
		{"Publish and sign", []*cli.Command{signcmd.CopyCommand(p), signcmd.SignCommand(p), signcmd.VerifyCommand(p),
			signcmd.AttestCommand(p), signcmd.AttachCommand(p), signcmd.TreeCommand(p), signcmd.SBOMCommand(p),
			signcmd.KeysCommand(p)}},
		{"Registries", []*cli.Command{repositorycmd.LoginCommand(p), repositorycmd.LogoutCommand(p),
			repositorycmd.TagsCommand(p), repositorycmd.DigestCommand(p), repositorycmd.UntagCommand(p)}},
		{"Mirror", []*cli.Command{mirrorcmd.Command(p)}},
		{"Serve", []*cli.Command{servecmd.Command(p), servecmd.ProbeCommand(p)}},
		{"Under opm's names", []*cli.Command{indexcmd.Command(p), indexcmd.RegistryCommand(p), alphaCommand(p),
			program.Hidden(readcmd.TemplateRenderCommand(p, "render-template"))}},
		{"More", []*cli.Command{cachecmd.Command(p), schemacmd.Command(p), versionCommand(p), completionCommand(p),
			completeCommand(p), manCommand(p)}},
	}
}

// root runs if no command is named.
func root(p *option.Session, c *cli.Context) error {
	switch {
	case c.Bool("version"):
		return printVersion(p, program.Text)
	case p.Opm:
		return nil
	}
	return cmdline.WriteHelp(p.Stdout, c.App, p.Line)
}
