package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/internal/atomicfs"
)

func catalogFilterCommand(p *option.Session) *cli.Command {
	o := &filterOptions{}
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
		Flags:  o.catalogFlags(o.flags(), []cli.Flag{o.newFilesFlag()}),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return o.run(ctx, p, args[0]) })),
	}
}

func (o *filterOptions) run(ctx context.Context, p *option.Session, ref string) error {
	places, err := cmdline.List(o.To.Value())
	if err != nil {
		return err
	}
	at := slices.IndexFunc(places, func(place string) bool { return !program.Transports.Has(place) })
	if at < 0 {
		return o.edit(ctx, p, ref, func(ctx context.Context) (change.Edit, error) { return o.filter(ctx, p) })
	}
	to := places[at]
	if len(places) > 1 || p.Given("tag") || o.Push || o.Load {
		return cmdline.Usagef("--to %q is a directory: --tag, --push and --to TRANSPORT:PATH say where an image goes", to)
	}
	if err := o.checkNoImage(p); err != nil {
		return err
	}
	with, err := o.changeOptions(p, to)
	if err != nil {
		return err
	}
	if err := atomicfs.CheckApart(ref, to); err != nil {
		return err
	}
	if err := o.CheckAccount(ref, to); err != nil {
		return err
	}
	e, err := o.filter(ctx, p)
	if err != nil {
		return err
	}
	return o.writeTo(ctx, p, ref, to, with, e)
}

// writeTo writes the edited catalog to another directory.
func (o *EditOptions) writeTo(ctx context.Context, p *option.Session, ref, dir string, with change.Options,
	e change.Edit) (err error) {
	from, err := o.OpenIndex(ctx, p, o.bundles(), ref, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	blobs, r, err := from.Source.Apply(ctx, e)
	if err != nil {
		return editError(p, err)
	}
	if !o.DryRun {
		if err := declcfg.WriteFS(ctx, dir, with.Format, blobs); err != nil {
			return editError(p, err)
		}
	}
	if err := o.ReportAccount(p, ref, r); err != nil {
		return err
	}
	if !o.DryRun {
		p.Log.Info(fmt.Sprintf("wrote %q", dir))
	}
	return LeftOut(r)
}
