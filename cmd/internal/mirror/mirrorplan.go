package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	catalogcmd "github.com/operator-bindery/bindery/cmd/internal/catalog"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

func mirrorPlanCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name:  "plan",
		Usage: "show which packages, channels and bundles of catalogs a configuration keeps",
		Description: mirrorHelp + `

Shows what is kept and why, and what is wrong with it or should be known: names that a catalog does not have,
default channels without a bundle, dependencies that nothing kept satisfies, installed versions that lose
their way to the kept head. If a run would not deliver all that is named, the last lines list what is not there,
with the nearest names, and the exit status is 4.

--catalog reads a catalog elsewhere: SOURCE is a catalog directory, an OCI layout, an archive or an image. No
image is copied.` +
			program.Examples("bindery mirror plan -c imageset.yaml",
				"bindery mirror plan -c imageset.yaml --catalog registry.example.com/acme/catalog:v1=index.db -o json",
				"bindery mirror plan -c imageset.yaml --with-dependencies --installed etcd=0.9.0"),
		Flags: program.Flags(imageSetFlags(), []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "`FORMAT` (text|json)"},
			&cli.StringSliceFlag{Name: "catalog",
				Usage: "read `REF=SOURCE`: the catalog SOURCE in place of the catalog REF; can be repeated"},
			&cli.StringSliceFlag{Name: "installed",
				Usage: "look only for the way of `PACKAGE=VERSION` to the kept head; can be repeated"},
			&cli.BoolFlag{Name: "dry-run", Usage: "also read the manifests of the images, for the size of each repository",
				EnvVars: program.Env("dry-run")},
		}, filterPolicyFlags(), option.ReadFlags()),
		Action: program.Exactly(0, func(c *cli.Context) error { return mirrorPlan(p, c) }),
	}
}

// catalogPlan is what is kept of one catalog.
type catalogPlan struct {
	Catalog string `json:"catalog"`
	// Target is the path and the tag at the destination.
	Target string `json:"target"`
	// Digest is that of the image; empty if the catalog is no image.
	Digest       digest.Digest       `json:"digest,omitempty"`
	Packages     filter.Kept         `json:"packages"`
	WholeCatalog bool                `json:"wholeCatalog,omitempty"`
	Others       int                 `json:"others"`
	Images       int                 `json:"images"`
	Problems     []filter.Problem    `json:"problems"`
	Dependencies []filter.Dependency `json:"dependencies"`
	Lost         []filter.Lost       `json:"lost"`

	result *filter.Result
}

// Planned is the answer of the command.
type Planned struct {
	Catalogs         []*catalogPlan     `json:"catalogs"`
	AdditionalImages []plannedImage     `json:"additionalImages"`
	Problems         []imageset.Problem `json:"problems"`
	// Repositories are, in a dry run, what is to be copied to each; a blob that several have counts once.
	Repositories []mirror.RepositoryBytes `json:"repositories,omitempty"`
}

type plannedImage struct {
	Name string `json:"name"`
	// Target is the path and the tag at the destination.
	Target  string `json:"target"`
	Blocked string `json:"blocked,omitempty"`
}

func mirrorPlan(p *option.Session, c *cli.Context) error {
	format := c.String("output")
	if format != "text" && format != "json" {
		return cmdline.Usagef("invalid --output value %q, expected (text|json)", format)
	}
	set, err := ImageSet(p, c, imageset.Image)
	if err != nil {
		return err
	}
	o, err := FilterPolicy(p, c)
	if err != nil {
		return err
	}
	sources, err := catalogSources(c, set)
	if err != nil {
		return err
	}
	if err := checkTemplates(c.Context, set); err != nil {
		return err
	}
	plan := Planned{Catalogs: []*catalogPlan{}, AdditionalImages: []plannedImage{}, Problems: set.Warnings}
	if plan.Problems == nil {
		plan.Problems = []imageset.Problem{}
	}
	var errs []error
	var absent []string
	var results []*filter.Result
	for _, op := range set.Operators {
		one, err := planCatalog(p, c, op, sources[op.Written], o)
		if mirror.NotThere(err) && sources[op.Written] == "" && !o.Strict && len(set.Operators) > 1 {
			absent = append(absent, "not there: "+err.Error())
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		plan.Catalogs = append(plan.Catalogs, one)
		results = append(results, one.result)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	filter.DropMetDependencies(results)
	for _, one := range plan.Catalogs {
		one.Problems = append([]filter.Problem{}, one.result.Problems...)
		for _, p := range one.Problems {
			switch {
			case p.Absent():
				absent = append(absent, "not there: catalog "+one.Catalog+": "+p.String())
			case p.Level == filter.Failure:
				absent = append(absent, "refused: catalog "+one.Catalog+": "+p.String())
			case p.Code == filter.UnusableImage:
				absent = append(absent, "left out: catalog "+one.Catalog+": "+p.String())
			}
		}
	}
	if plan.AdditionalImages, err = plannedImages(set); err != nil {
		return err
	}
	var incomplete error
	if c.Bool("dry-run") {
		if plan.Repositories, incomplete = planSizes(p, c, set, sources, o); plan.Repositories == nil {
			return incomplete
		}
	}
	if incomplete == nil && len(absent) > 0 {
		incomplete = &cmdline.ExitStatus{Status: 4, Err: &cmdline.Error{Class: cmdline.ClassInput, Object: c.String("config"),
			Hint: mendNames(c.String("config")), List: absent,
			Err: errors.New("a run would not deliver all that " + c.String("config") + " asks for")}}
	}
	if err := p.SaveLock(); err != nil {
		return err
	}
	if format == "json" {
		return errors.Join(p.PrintJSON(plan), incomplete)
	}
	return errors.Join(printMirrorPlan(p, &plan), incomplete)
}

// planSizes reads the manifests of the images, as a dry run to an archive does.
func planSizes(p *option.Session, c *cli.Context, set *imageset.Set, sources map[string]string,
	fo filter.Options) (_ []mirror.RepositoryBytes, err error) {
	dir, manifests, err := MirrorWork(p, c)
	if err != nil {
		return nil, err
	}
	o := mirror.Options{Mode: mirror.ToDisk, Set: set, Config: c.String("config"), Replace: sources, Filter: fo,
		DryRun: true, All: true, Jobs: c.Int("jobs"), Now: time.Now().UTC(),
		Log: slog.New(slog.DiscardHandler)} // the plan has what it would say
	if o.Images, err = mirrorSource(p, c, option.RegistryOptions(p, c), nil, manifests); err != nil {
		return nil, err
	}
	p.AtEnd = append(p.AtEnd, func(bool) error { return o.Images.Close() })
	if o.Render, err = p.BundleOptions(c); err != nil {
		return nil, err
	}
	o.Base = mirror.KeepBase
	o.Spec = indeximage.Spec{Embedded: &p.Embedded, Registry: option.RegistryOptions(p, c), Program: version.Program(), Log: p.Log,
		Images: o.Render.Images, Build: build.Options{MaxLayers: 100, Jobs: c.Int("jobs"), Dir: dir,
			Compression: layers.Gzip}}
	if o.Workspace, err = mirror.OpenWorkspace(filepath.Join(dir, "plan")); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Workspace.Close()) }()
	account, err := RunMirror(p, c.Context, o)
	if account == nil {
		return nil, err
	}
	var incomplete *mirror.IncompleteError
	if !errors.As(err, &incomplete) {
		return account.Repositories, err
	}
	return account.Repositories, incompleteStatus(p, o, incomplete, account)
}

// plannedImages maps the additional images.
func plannedImages(set *imageset.Set) ([]plannedImage, error) {
	out := []plannedImage{}
	for _, a := range set.AdditionalImages {
		to, err := (imageset.Target{}).Additional(a)
		if err != nil {
			return nil, err
		}
		image := plannedImage{Name: a.Written, Target: to.Name()}
		if rule, _, blocked := set.Blocked(a.Name, "", to, imageset.Target{}); blocked {
			image.Blocked = rule.Name
		}
		out = append(out, image)
	}
	return out, nil
}

// planCatalog filters one catalog. The source is where it is read, empty for the reference itself.
func planCatalog(p *option.Session, c *cli.Context, op imageset.Operator, source string,
	o filter.Options) (_ *catalogPlan, err error) {
	if source == "" {
		source = op.Catalog.PullName()
	}
	r, resolved, err := filterCatalog(p, c, asLayout(source), op, o)
	var wrong *filter.Error
	if errors.As(err, &wrong) {
		return nil, &cmdline.Error{Class: cmdline.ClassInput, Object: op.Written,
			Err: fmt.Errorf("catalog %s: %w", op.Written, err)}
	}
	if err != nil {
		return nil, fmt.Errorf("catalog %s: %w", op.Written, err)
	}
	one := &catalogPlan{Catalog: op.Written, Digest: resolved, Packages: r.Kept, WholeCatalog: r.WholeCatalog,
		Others: r.Others,
		Images: r.Images, Dependencies: append([]filter.Dependency{}, r.Dependencies...),
		Lost: append([]filter.Lost{}, r.Lost...), result: r}
	one.Target = (imageset.Target{}).Catalog(op, !r.WholeCatalog, "", op.FilterHash(one.Digest)).Name()
	return one, nil
}

// errPlanned ends an edit whose result is not wanted.
var errPlanned = errors.New("planned")

// filterCatalog applies an operator entry to the skeleton of a catalog. It also returns the digest of the catalog's
// image, if it is one.
func filterCatalog(p *option.Session, c *cli.Context, source string, op imageset.Operator,
	o filter.Options) (r *filter.Result, resolved digest.Digest, err error) {
	index, err := p.OpenIndex(c, source, "")
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	e := change.Edit{Whole: catalogcmd.None(), Scope: filter.Scope(op, o), Apply: func(_ context.Context,
		s *change.State) (*declcfg.Catalog, *edit.Account, error) {
		var err error
		if r, err = filter.Apply(s.Catalog, op, o); err == nil {
			err = errPlanned
		}
		return nil, nil, err
	}}
	if _, _, err := index.Source.Apply(c.Context, e); !errors.Is(err, errPlanned) {
		return nil, "", err
	}
	if index.Image != nil {
		resolved = index.Image.Digest
	}
	return r, resolved, nil
}

// asLayout names the image of a layout where the layout's directory alone is given.
func asLayout(source string) string {
	if _, err := os.Stat(filepath.Join(source, "oci-layout")); err == nil {
		return imageset.Ref{Transport: imageset.OCI, Path: source}.PullName()
	}
	return source
}
