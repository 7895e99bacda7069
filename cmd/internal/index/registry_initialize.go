package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// ProbeName is the name under which the program is a probe with that program's own help.
const ProbeName = "grpc_health_probe"

// ToolNames are other names of the program with the commands that they run.
var ToolNames = map[string][]string{
	ProbeName:         {"probe"},
	"initializer":     {"registry", "initialize"},
	"registry-server": {"registry", "serve"},
}

// initializeOptions are the flags of "registry initialize".
type initializeOptions struct {
	manifests, output string
	permissive        bool
	jobs              int
}

func registryInitializeCommand(p *option.Session) *cli.Command {
	o := &initializeOptions{}
	return &cli.Command{
		Name:  "initialize",
		Usage: "create an index database from package manifests",
		Description: `Every directory with a ClusterServiceVersion is a bundle, and every file with a
packageName is a package. Upgrade edges are those of the ClusterServiceVersions, from each channel head down.
The same directory gives the same database.

With --permissive invalid packages are skipped with a warning. Started as "initializer" the program is this
command.` +
			program.Examples("bindery registry initialize -m manifests -o bundles.db",
				"bindery registry initialize -m manifests --permissive"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "manifests", Destination: &o.manifests, Aliases: []string{"m"}, Value: "manifests",
				Usage: "`DIR` with the package manifests"},
			&cli.StringFlag{Name: "output", Destination: &o.output, Aliases: []string{"o"}, Value: "bundles.db",
				Usage: "database `FILE` to create or replace"},
			&cli.BoolFlag{Name: "permissive", Destination: &o.permissive, Usage: "skip invalid packages"},
			option.JobsFlag(&o.jobs, "work"),
		},
		Action: program.Exactly(0, p.Action(func(ctx context.Context, _ []string) error { return o.run(ctx, p) })),
	}
}

func (o *initializeOptions) run(ctx context.Context, p *option.Session) error {
	dir, out := o.manifests, o.output
	for flag, value := range map[string]string{"manifests": dir, "output": out} {
		if value == "" {
			return cmdline.Usagef("invalid --%s value %q, expected a path", flag, value)
		}
	}
	if err := atomicfs.CheckApart(dir, out); err != nil {
		return err
	}
	if err := isNoOtherFile(out); err != nil {
		return err
	}
	with := render.Options{Jobs: o.jobs, Warn: p.WarnAt, KeepGoing: o.permissive, Account: &render.Account{}}
	blobs := with.RenderManifests(ctx, dir)
	written, err := sqlite.Create(ctx, out, blobs, sqlite.WriteOptions{})
	for _, left := range with.Account.LeftOut {
		p.Log.Warn(fmt.Sprintf("permissive: package %q is skipped: %v", left.Package, left.Reason))
	}
	if err != nil {
		return err
	}
	for _, f := range written.Findings {
		p.Log.Debug("the database stores it in another form", "package", f.Package, "bundle", f.Bundle, "field",
			f.Field, "reason", f.Reason)
	}
	text := fmt.Sprintf("wrote %s with %s to %q", program.Count(written.Packages, "package"), program.Count(written.Bundles, "bundle"),
		out)
	if left := len(with.Account.LeftOut); left > 0 {
		text += fmt.Sprintf("; %s skipped", program.Count(left, "package"))
	}
	p.Log.Info(text)
	return nil
}

// isNoOtherFile refuses to replace a file that is not a database.
func isNoOtherFile(path string) error {
	stat, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && stat.Mode().IsRegular() && stat.Size() == 0 {
		return nil
	}
	if err == nil {
		var kind render.Kind
		if kind, err = render.Classify(path); err == nil && kind != render.Database {
			err = render.ErrFileType
		}
	}
	if errors.Is(err, render.ErrFileType) {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: path,
			Err: fmt.Errorf("%q exists and is not a database", path), Hint: "name another file"}
	}
	return err
}
