package option

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/sqlite"
)

// AllowEmptyFlag accepts a catalog without packages.
func AllowEmptyFlag(category string) cli.Flag {
	return &cli.BoolFlag{Name: "allow-empty", Usage: "accept a catalog that holds no packages, in place of an error",
		Category: category}
}

// AllowsEmpty reports whether the command accepts a catalog without packages: with the flag, or if it answers as opm.
func (p *Session) AllowsEmpty(c *cli.Context) (bool, error) {
	compat, err := p.Compat(c)
	return c.Bool("allow-empty") || compat == sqlite.CompatOPM, err
}

// CheckEmpty refuses a catalog without packages: a mistyped directory would otherwise replace a published catalog by an
// empty one. A command that answers as opm logs a warning instead.
func (p *Session) CheckEmpty(c *cli.Context, catalog string, packages int) error {
	if packages > 0 {
		return nil
	}
	allowed, err := p.AllowsEmpty(c)
	if err != nil {
		return err
	}
	empty := &declcfg.EmptyError{Catalog: redact.Text(catalog)}
	switch {
	case !allowed:
		return &cmdline.Error{Class: cmdline.ClassInput, Object: empty.Catalog, Err: empty}
	case !c.Bool("allow-empty"):
		p.Log.Warn(empty.Error())
	}
	return nil
}
