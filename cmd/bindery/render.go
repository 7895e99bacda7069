package main

import (
	"bufio"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/cliutil"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

func (p *program) renderCommand() *cli.Command {
	return &cli.Command{
		Name:      "render",
		Usage:     "print catalogs as one stream of blobs",
		ArgsUsage: "REF...",
		Description: "A reference is a catalog directory, an index database or an image in an OCI layout (oci:DIR:TAG). The answer is complete or there is none: nothing is\n" +
			"printed before everything has been read." +
			examples("bindery render catalog -o yaml", "bindery render index.db --migrate", "bindery render index.db catalog"),
		Flags: []cli.Flag{
			catalogFormatFlag(),
			migrateLevelFlag(""),
			&cli.BoolFlag{Name: "migrate", Usage: "take all migration levels"},
			compatFlag(),
			jobsFlag(),
		},
		Action: atLeast(1, p.render),
	}
}

func (p *program) render(c *cli.Context) (err error) {
	format, err := catalogFormat(c)
	if err != nil {
		return err
	}
	if c.IsSet("migrate") && c.IsSet("migrate-level") {
		return cliutil.Usagef("if any flags in the group [migrate migrate-level] are set none of the others can be; [migrate migrate-level] were all set")
	}
	o, err := p.renderOptions(c)
	if err != nil {
		return err
	}
	if c.Bool("migrate") {
		o.Level = edit.LatestLevel()
	}
	o.Reuse = true
	blobs, err := render.References(c.Context, c.Args().Slice(), o)
	if err != nil {
		return err
	}
	var answer cliutil.Spool
	defer func() { err = errors.Join(err, answer.Close()) }()
	w := bufio.NewWriterSize(&answer, 1<<20)
	if err := declcfg.Write(w, format, blobs); err != nil {
		return p.opmMessage(err)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return answer.Flush(c.Context, p.stdout)
}

// renderOptions reads the flags that say how a reference is read.
func (p *program) renderOptions(c *cli.Context) (render.Options, error) {
	o := render.Options{Jobs: c.Int("jobs"), Warn: p.warnAt, Image: p.renderImage}
	var err error
	if o.Level, err = edit.ParseLevel(c.String("migrate-level")); err != nil {
		return o, &cliutil.Error{Class: cliutil.ClassUsage, Object: c.String("migrate-level"), Err: err}
	}
	o.Compat, err = p.compat(c)
	return o, err
}

// compat reads --compat. Under the name opm the answers are opm's.
func (p *program) compat(c *cli.Context) (sqlite.Compat, error) {
	switch c.String("compat") {
	case "opm":
		return sqlite.CompatOPM, nil
	case "":
		if p.opm {
			return sqlite.CompatOPM, nil
		}
		return sqlite.CompatNone, nil
	}
	return "", cliutil.Usagef("invalid --compat value %q, expected (opm)", c.String("compat"))
}
