package catalog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit/change"
)

func catalogFilterCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name:      "filter",
		Usage:     "keep only selected packages, channels and versions of a catalog",
		ArgsUsage: "CATALOG",
		Description: catalogEditHelp + ` With --to DIR the catalog is not changed, and the result is written to
that directory, which must be absent or empty.

VERSIONS is a range such as ">=1.2.0 <2.0.0", for a package or for one channel. Upgrade edges are joined
across removed bundles, so that installations of removed versions can still upgrade. The file of --selection
has a list "packages" of objects with name and, optionally, versions (or minVersion and maxVersion),
headsOnly, defaultChannel and a list "channels" of objects with name and versions.` +
			program.Examples("bindery catalog filter index.db --package etcd:alpha --heads-only",
				"bindery catalog filter catalog -p etcd@>=0.9.2 --to filtered --catalog-format yaml",
				"bindery catalog filter index.db --selection selection.yaml --to filtered",
				"bindery catalog filter index.db -p etcd:clusterwide-alpha --default-channel etcd=clusterwide-alpha "+
					"--dry-run --explain"),
		Flags:  catalogFlags(filterFlags(), []cli.Flag{newFilesFlag()}),
		Action: program.Exactly(1, func(c *cli.Context) error { return catalogFilter(p, c) }),
	}
}

func catalogFilter(p *option.Session, c *cli.Context) error {
	places, err := cmdline.List(c.StringSlice("to"))
	if err != nil {
		return err
	}
	at := slices.IndexFunc(places, func(place string) bool { return !program.Transports.Has(place) })
	if at < 0 {
		return catalogEdit(p, c, func() (change.Edit, error) { return filterEdit(p, c) })
	}
	to := places[at]
	if len(places) > 1 || c.IsSet("tag") || c.Bool("push") || c.Bool("load") {
		return cmdline.Usagef("--to %q is a directory: --tag, --push and --to TRANSPORT:PATH say where an image goes", to)
	}
	if err := checkNoImage(p, c); err != nil {
		return err
	}
	ref := c.Args().First()
	o, err := changeOptions(p, c, to)
	if err != nil {
		return err
	}
	if err := option.CheckApart(ref, to); err != nil {
		return err
	}
	if err := CheckAccount(p, c, ref, to); err != nil {
		return err
	}
	e, err := filterEdit(p, c)
	if err != nil {
		return err
	}
	return editTo(p, c, ref, to, o, e)
}

// editTo writes the edited catalog to another directory.
func editTo(p *option.Session, c *cli.Context, ref, dir string, o change.Options, e change.Edit) (err error) {
	from, err := p.OpenIndex(c, ref, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	blobs, r, err := from.Source.Apply(c.Context, e)
	if err != nil {
		return editError(p, err)
	}
	if !c.Bool("dry-run") {
		if err := declcfg.WriteFS(c.Context, dir, o.Format, blobs); err != nil {
			return editError(p, err)
		}
	}
	if err := ReportAccount(p, c, ref, r); err != nil {
		return err
	}
	if !c.Bool("dry-run") {
		p.Log.Info(fmt.Sprintf("wrote %q", dir))
	}
	return LeftOut(r)
}
