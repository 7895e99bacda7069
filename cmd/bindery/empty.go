package main

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/sqlite"
)

// allowEmptyFlag accepts a catalog without packages.
func allowEmptyFlag(category string) cli.Flag {
	return &cli.BoolFlag{Name: "allow-empty", Usage: "accept a catalog that holds no packages, in place of an error",
		Category: category}
}

// allowsEmpty reports whether the command accepts a catalog without packages: with the flag, or if it answers as opm.
func (p *program) allowsEmpty(c *cli.Context) (bool, error) {
	compat, err := p.compat(c)
	return c.Bool("allow-empty") || compat == sqlite.CompatOPM, err
}

// checkEmpty refuses a catalog without packages: a mistyped directory would otherwise replace a published catalog by an
// empty one. A command that answers as opm logs a warning instead.
func (p *program) checkEmpty(c *cli.Context, catalog string, packages int) error {
	if packages > 0 {
		return nil
	}
	allowed, err := p.allowsEmpty(c)
	if err != nil {
		return err
	}
	empty := &declcfg.EmptyError{Catalog: redact.Text(catalog)}
	switch {
	case !allowed:
		return &cmdline.Error{Class: cmdline.ClassInput, Object: empty.Catalog, Err: empty}
	case !c.Bool("allow-empty"):
		p.log.Warn(empty.Error())
	}
	return nil
}
