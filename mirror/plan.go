package mirror

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/releases"
)

// CatalogPlan is what is kept of one catalog.
type CatalogPlan struct {
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

	// Why says why channels are kept, by PACKAGE/CHANNEL.
	Why map[string]string `json:"-"`
}

// Plan is what a run of an image set would keep and copy, as far as its catalogs say.
type Plan struct {
	Releases         []PlannedRelease   `json:"releases"`
	Catalogs         []*CatalogPlan     `json:"catalogs"`
	AdditionalImages []PlannedImage     `json:"additionalImages"`
	Charts           []PlannedChart     `json:"charts,omitempty"`
	Problems         []imageset.Problem `json:"problems"`
	// Repositories are, in a dry run, what is to be copied to each; a blob that several have counts once.
	Repositories []RepositoryBytes `json:"repositories,omitempty"`
}

// PlannedRelease is a release, as the graphs say. Of one that the image set names itself only the image is known.
type PlannedRelease struct {
	Version      string `json:"version,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	Image        string `json:"image"`
	// Why says by which channel, bound or path it is chosen.
	Why string `json:"why"`
}

// PlannedImage is an additional image.
type PlannedImage struct {
	Name string `json:"name"`
	// Target is the path and the tag at the destination.
	Target  string `json:"target"`
	Blocked string `json:"blocked,omitempty"`
}

// PlanError is why a catalog cannot be planned.
type PlanError struct {
	// Catalog is the catalog as the image set names it.
	Catalog string
	Err     error
}

func (e *PlanError) Error() string { return "catalog " + e.Catalog + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *PlanError) Unwrap() error { return e.Err }

// MakePlan filters the catalogs of an image set and copies no image. Of the options it needs Set, Replace, Filter and Render,
// and for releases Releases: the graph servers alone are asked.
// undelivered has a line for all that is named and that a run would not deliver. An error is one or more of [PlanError].
func (o Options) MakePlan(ctx context.Context) (plan *Plan, undelivered []string, err error) {
	plan = &Plan{Releases: []PlannedRelease{}, Catalogs: []*CatalogPlan{}, AdditionalImages: []PlannedImage{}, Problems: o.Set.Warnings}
	if plan.Problems == nil {
		plan.Problems = []imageset.Problem{}
	}
	var errs []error
	if err := o.planReleases(ctx, plan); ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	} else if err != nil && !o.Filter.Strict && (len(plan.Releases)+len(o.Set.Operators)+len(o.Set.AdditionalImages) > 0 || !o.Set.Helm.IsZero()) {
		undelivered = append(undelivered, "not there: "+err.Error())
	} else if err != nil {
		errs = append(errs, err)
	}
	wanted := o.openCatalogs(ctx, len(plan.Releases)+len(errs)+len(o.Set.AdditionalImages) > 0 || !o.Set.Helm.IsZero(), func(_ int, op imageset.Operator) (*catalog, error) {
		return o.lookAt(ctx, op)
	})
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	for _, c := range wanted.failed() {
		errs = append(errs, &PlanError{c.op.Written, c.failed})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	for _, c := range wanted.absent {
		undelivered = append(undelivered, "not there: "+(&PlanError{c.op.Written, c.failed}).Error())
	}
	for _, c := range wanted.catalogs {
		plan.Catalogs = append(plan.Catalogs, c.plan())
	}
	for _, one := range plan.Catalogs {
		for _, p := range one.Problems {
			switch {
			case p.Absent():
				undelivered = append(undelivered, "not there: catalog "+one.Catalog+": "+p.String())
			case p.Level == filter.Failure:
				undelivered = append(undelivered, "refused: catalog "+one.Catalog+": "+p.String())
			case p.Code == filter.UnusableImage:
				undelivered = append(undelivered, "left out: catalog "+one.Catalog+": "+p.String())
			}
		}
	}
	if plan.AdditionalImages, err = plannedImages(o.Set); err != nil {
		return nil, nil, err
	}
	unread, err := o.planCharts(ctx, plan)
	if err != nil {
		return nil, nil, err
	}
	if o.Filter.Strict || len(plan.Charts)+len(plan.Releases)+len(plan.Catalogs)+len(plan.AdditionalImages) == 0 {
		if err := errors.Join(unread...); err != nil {
			return nil, nil, err
		}
	}
	for _, err := range unread {
		undelivered = append(undelivered, "not there: "+err.Error())
	}
	return plan, undelivered, nil
}

// planReleases adds the releases that the graphs give. Those that are chosen are added with an error, too.
func (o *Options) planReleases(ctx context.Context, plan *Plan) error {
	p := &o.Set.Platform
	if !p.Release.IsZero() {
		plan.Releases = append(plan.Releases, PlannedRelease{Image: p.Release.Name(), Why: "the image set names it"})
		return nil
	}
	if len(p.Channels) == 0 {
		return nil
	}
	choice, err := o.Releases.request(o).Choose(ctx, &releases.Server{Client: o.Releases.Client, OCP: o.Releases.UpdateURL})
	for _, c := range choice.Releases {
		plan.Releases = append(plan.Releases, PlannedRelease{c.Version, c.Architecture, c.Image, c.Why})
	}
	for _, text := range choice.Warnings {
		plan.Problems = append(plan.Problems, imageset.Problem{Field: "platform", Text: text})
	}
	return err
}

// plannedImages maps the additional images.
func plannedImages(set *imageset.Set) ([]PlannedImage, error) {
	out := []PlannedImage{}
	for _, a := range set.AdditionalImages {
		to, err := onMedium.Additional(a)
		if err != nil {
			return nil, err
		}
		image := PlannedImage{Name: a.Written, Target: to.Name()}
		if rule, _, blocked := set.Blocked(a.Name, "", to, onMedium); blocked {
			image.Blocked = rule.Name
		}
		out = append(out, image)
	}
	return out, nil
}

// lookAt filters one catalog, and closes it.
func (o *Options) lookAt(ctx context.Context, op imageset.Operator) (*catalog, error) {
	c := newCatalog(op)
	c.name = asLayout(cmp.Or(o.Replace[op.Written], op.Catalog.PullName()))
	if err := c.open(ctx, o.Render); err != nil {
		return c, err
	}
	if c.index.Image != nil {
		c.digest = c.index.Image.Digest
	}
	return c, errors.Join(c.look(ctx, o.Filter), c.close())
}

// plan is what is kept of the catalog.
func (c *catalog) plan() *CatalogPlan {
	r := c.result
	return &CatalogPlan{Catalog: c.op.Written, Digest: c.digest, Packages: r.Kept, WholeCatalog: r.WholeCatalog,
		Target: onMedium.Catalog(c.op, !r.WholeCatalog, "", c.op.FilterHash(c.digest)).Name(), Others: r.Others, Images: r.Images,
		Problems: append([]filter.Problem{}, r.Problems...), Dependencies: append([]filter.Dependency{}, r.Dependencies...),
		Lost: append([]filter.Lost{}, r.Lost...), Why: r.Why}
}

// asLayout names the image of a layout where the layout's directory alone is given.
func asLayout(source string) string {
	if _, err := os.Stat(filepath.Join(source, "oci-layout")); err == nil {
		return imageset.Ref{Transport: imageset.OCI, Path: source}.PullName()
	}
	return source
}
