package catalog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/edit/catalogdir"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/render"
)

// formatOptions are the flags of "catalog fmt".
type formatOptions struct {
	check, dropComments bool
	wait                time.Duration
	jobs                int
}

func catalogFormatCommand(p *option.Session) *cli.Command {
	o := &formatOptions{}
	return &cli.Command{
		Name:      "fmt",
		Usage:     "write the files of a catalog directory in canonical form",
		ArgsUsage: "DIR",
		Description: "The canonical form is that of \"migrate\" and \"render\": of each package olm.package, its channels " +
			"and bundles by name, other schemas, its deprecations; entries of channels keep their order. Files " +
			"keep their names and stay JSON or YAML. Standard output lists the files that were changed, one per line; " +
			"with --check those that would be, and the exit status is 1 if there are any. The canonical form has no " +
			"comments: a file with comments is an error, unless --drop-comments is given." +
			program.Examples("bindery catalog fmt catalog --drop-comments", "bindery catalog fmt catalog --check"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "list the files that are not in canonical form, and write nothing",
				Destination: &o.check},
			&cli.BoolFlag{Name: "drop-comments", Usage: "remove the comments of YAML files", Destination: &o.dropComments},
			&cli.DurationFlag{Name: "wait", Value: 10 * time.Second, Destination: &o.wait,
				Usage: "wait up to `DURATION` for a concurrent edit of the same catalog"},
			option.JobsFlag(&o.jobs, ""),
		},
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			return formatCatalog(ctx, p, o, args[0])
		})),
	}
}

func formatCatalog(ctx context.Context, p *option.Session, o *formatOptions, path string) (err error) {
	if o.check && o.dropComments {
		return cmdline.Usagef("--drop-comments has no effect with --check")
	}
	if kind, err := render.Classify(path); err != nil || kind != render.CatalogDirectory {
		return errors.Join(err, &cmdline.Error{Class: cmdline.ClassInput, Object: path,
			Err:  fmt.Errorf("%q is no catalog directory", path),
			Hint: "the files of a catalog directory are formatted; \"migrate\" writes one from a database or an image"})
	}
	dir, err := catalogdir.Open(ctx, path, catalogdir.Options{Wait: max(o.wait, time.Nanosecond),
		Jobs: o.jobs, ReadOnly: o.check, Warn: p.WarnAt})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	files, err := dir.Format(ctx, catalogdir.FormatOptions{Check: o.check, DropComments: o.dropComments})
	if errors.Is(err, catalogdir.ErrComments) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: path, Err: err,
			Hint: "--drop-comments removes the comments of all files"}
	}
	if err != nil {
		return err
	}
	b := bufio.NewWriter(p.Stdout)
	for _, name := range files {
		fmt.Fprintln(b, printable.Cell(filepath.Join(path, filepath.FromSlash(name))))
	}
	if err := b.Flush(); err != nil {
		return err
	}
	if o.check && len(files) > 0 {
		return &cmdline.ExitStatus{Status: 1}
	}
	return nil
}
