package option

import (
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/sqlite"
)

// AllowsEmpty reports whether the command accepts a catalog without packages: with the flag, or if it answers as opm.
func (o *Catalogs) AllowsEmpty(p *Session) (bool, error) {
	compat, err := o.Compat(p)
	return o.AllowEmpty || compat == sqlite.CompatOPM, err
}

// CheckEmpty refuses a catalog without packages: a mistyped directory would otherwise replace a published catalog by an
// empty one. A command that answers as opm logs a warning instead.
func (o *Catalogs) CheckEmpty(p *Session, catalog string, packages int) error {
	if packages > 0 {
		return nil
	}
	allowed, err := o.AllowsEmpty(p)
	if err != nil {
		return err
	}
	empty := &declcfg.EmptyError{Catalog: redact.Text(catalog)}
	switch {
	case !allowed:
		return &cmdline.Error{Class: cmdline.ClassInput, Object: empty.Catalog, Err: empty}
	case !o.AllowEmpty:
		p.Log.Warn(empty.Error())
	}
	return nil
}
