package mirror

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// planOptions are the flags of "mirror plan".
type planOptions struct {
	SetOptions
	option.Reading
	output string
}

func mirrorPlanCommand(p *option.Session) *cli.Command {
	o := &planOptions{}
	return &cli.Command{
		Name:  "plan",
		Usage: "show which releases, packages, channels and bundles a configuration keeps",
		Description: mirrorHelp + `

Shows what is kept and why, and what is wrong with it or should be known: names that a catalog does not have,
default channels without a bundle, dependencies that nothing kept satisfies, installed versions that lose
their way to the kept head. If a run would not deliver all that is named, the last lines list what is not there,
with the nearest names, and the exit status is 4.

Releases are chosen from the graphs of updates; each is listed with the channel, and the bound or path, that
chooses it. Nothing but the graph servers is asked for them.

--catalog reads a catalog elsewhere: SOURCE is a catalog directory, an OCI layout, an archive or an image. No
image is copied.` +
			program.Examples("bindery mirror plan -c imageset.yaml",
				"bindery mirror plan -c imageset.yaml --catalog registry.example.com/acme/catalog:v1=index.db -o json",
				"bindery mirror plan -c imageset.yaml --with-dependencies --installed etcd=0.9.0"),
		Flags: program.Flags(o.SetOptions.flags(), []cli.Flag{
			program.AnswerFlag(&o.output),
		}, o.sourceFlags(), []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Destination: &o.Request.DryRun, Usage: "also read the manifests of the images, for the size of each repository",
				EnvVars: program.Env("dry-run")},
		}, o.ReleaseFlags(), o.ChartFlags(), o.filterFlags(), o.Reading.Flags()),
		Action: program.Exactly(0, p.Action(func(ctx context.Context, _ []string) error { return o.run(ctx, p) })),
	}
}

func (o *planOptions) run(ctx context.Context, p *option.Session) error {
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	with, err := o.Prepare(ctx, p, imageset.Image, &o.Registry)
	if err != nil {
		return err
	}
	if err := checkTemplates(ctx, with.Set); err != nil {
		return err
	}
	if with.Render, err = o.bundles().Options(ctx, p); err != nil {
		return err
	}
	plan, absent, err := with.MakePlan(ctx)
	if err != nil {
		return planError(err)
	}
	for _, problem := range plan.Problems[len(with.Set.Warnings):] {
		p.Log.Warn(problem.Error())
	}
	var incomplete error
	if with.DryRun {
		if plan.Repositories, incomplete = o.planSizes(ctx, p, with); plan.Repositories == nil {
			return incomplete
		}
	}
	if incomplete == nil && len(absent) > 0 {
		hint := mendNames(with.Config)
		if len(absent) == 1 && len(plan.Catalogs) == len(with.Set.Operators) {
			hint = "" // the line about releases has its own
		}
		incomplete = &cmdline.ExitStatus{Status: 4, Err: &cmdline.Error{Class: cmdline.ClassInput, Object: with.Config,
			Hint: hint, List: slices.Values(absent),
			Err: errors.New("a run would not deliver all that " + with.Config + " asks for")}}
	}
	if err := p.SaveLock(); err != nil {
		return err
	}
	if format.IsDocument() {
		return errors.Join(p.PrintValue(format, plan), incomplete)
	}
	return errors.Join(printMirrorPlan(p, plan), incomplete)
}

// planSizes reads the manifests of the images, as a dry run to an archive does.
func (o *planOptions) planSizes(ctx context.Context, p *option.Session, with mirror.Options) (_ []mirror.RepositoryBytes,
	err error) {
	dir, manifests, err := WorkDirectory(ctx, p)
	if err != nil {
		return nil, err
	}
	with.Mode, with.All, with.ParallelImages, with.Now = mirror.ToDisk, true, min(o.Jobs, 64), time.Now().UTC()
	with.Log = slog.New(slog.DiscardHandler) // the plan has what it would say
	if with.Images, err = mirrorSource(ctx, p, &o.Images, nil, manifests); err != nil {
		return nil, err
	}
	p.AtEnd = append(p.AtEnd, func(bool) error { return with.Images.Close() })
	with.Spec = indeximage.Spec{Embedded: &p.Embedded, Registry: o.Access(p).Registry, Program: version.Program(), Log: p.Log,
		Images: with.Render.Images, Build: build.Options{MaxLayers: 100, Jobs: o.Jobs, Dir: dir,
			Compression: layers.Gzip}}
	if with.Workspace, err = mirror.OpenWorkspace(filepath.Join(dir, "plan")); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, with.Workspace.Close()) }()
	account, err := RunMirror(ctx, p, with)
	if account == nil {
		return nil, err
	}
	var incomplete *mirror.IncompleteError
	if !errors.As(err, &incomplete) {
		return account.Repositories, err
	}
	return account.Repositories, incompleteStatus(p, with, incomplete, account)
}

// bundles is how catalogs are read.
func (o *planOptions) bundles() *option.Bundles {
	return &option.Bundles{Images: o.Images, Jobs: o.Jobs}
}

// planError makes an error of the command of one that a filter returns.
func planError(err error) error {
	var wrong *mirror.PlanError
	var invalid *filter.Error
	if errors.As(err, &wrong) && errors.As(err, &invalid) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: wrong.Catalog, Err: err}
	}
	return err
}
