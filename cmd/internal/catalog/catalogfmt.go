package catalog

import (
	"bufio"
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

func catalogFormatCommand(p *option.Session) *cli.Command {
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
			&cli.BoolFlag{Name: "check", Usage: "list the files that are not in canonical form, and write nothing"},
			&cli.BoolFlag{Name: "drop-comments", Usage: "remove the comments of YAML files"},
			&cli.DurationFlag{Name: "wait", Value: 10 * time.Second,
				Usage: "wait up to `DURATION` for a concurrent edit of the same catalog"},
			program.JobsFlag(),
		},
		Action: program.Exactly(1, func(c *cli.Context) error { return catalogFormat(p, c) }),
	}
}

func catalogFormat(p *option.Session, c *cli.Context) (err error) {
	path, check := c.Args().First(), c.Bool("check")
	if check && c.Bool("drop-comments") {
		return cmdline.Usagef("--drop-comments has no effect with --check")
	}
	if kind, err := render.Classify(path); err != nil || kind != render.CatalogDirectory {
		return errors.Join(err, &cmdline.Error{Class: cmdline.ClassInput, Object: path,
			Err:  fmt.Errorf("%q is no catalog directory", path),
			Hint: "the files of a catalog directory are formatted; \"migrate\" writes one from a database or an image"})
	}
	dir, err := catalogdir.Open(c.Context, path, catalogdir.Options{Wait: max(c.Duration("wait"), time.Nanosecond),
		Jobs: c.Int("jobs"), ReadOnly: check, Warn: p.WarnAt})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	files, err := dir.Format(c.Context, catalogdir.FormatOptions{Check: check, DropComments: c.Bool("drop-comments")})
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
	if check && len(files) > 0 {
		return &cmdline.ExitStatus{Status: 1}
	}
	return nil
}
