package mirror

import (
	"cmp"
	"context"
	"fmt"

	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/mirror/charts"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// PlannedChart is a chart with the images that it names.
type PlannedChart struct {
	ChartAccount
	Images []PlannedImage `json:"images"`
}

// planCharts adds the charts with their images. Nothing is kept of them. unread are the errors of the charts that cannot be had.
func (o *Options) planCharts(ctx context.Context, plan *Plan) (unread []error, err error) {
	if o.Set.Helm.IsZero() {
		return nil, o.Charts.checkValues(nil)
	}
	quiet := *o
	quiet.Log = nil // what is found is in the plan, whose problems the caller logs
	report := newReport(&quiet)
	get := &charts.Getter{Client: o.Charts.Client, Registry: chartRegistry{cmp.Or(o.Images, o.Render.Images)}, Pack: packChart}
	list, err := o.listCharts(ctx, get, report)
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, r := range plan.Releases {
		versions = append(versions, r.Version)
	}
	found := make([][]chartImage, len(list))
	err = guard.Each(ctx, max(o.ParallelImages, 4), list, func(ctx context.Context, n int, c *chart) error {
		if c.failed == nil {
			var err error
			if found[n], err = o.readChart(ctx, get, c, o.kubeVersion(versions), report); err != nil {
				c.fail(err)
			}
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return nil, err
	}
	if err := o.Charts.checkValues(list); err != nil {
		return nil, err
	}
	for n, c := range list {
		if c.failed != nil {
			unread = append(unread, fmt.Errorf("%s: %w", c.account.Title(), c.failed))
			continue
		}
		one := PlannedChart{ChartAccount: c.account, Images: []PlannedImage{}}
		one.ChartAccount.Images = len(found[n])
		for _, i := range found[n] {
			to := onMedium.Image(i.named)
			image := PlannedImage{Name: i.source.Name(), Target: to.Name()}
			if rule, _, blocked := o.Set.Blocked(i.source, "", to, onMedium); blocked {
				image.Blocked = rule.Name
			}
			one.Images = append(one.Images, image)
		}
		plan.Charts = append(plan.Charts, one)
	}
	for _, p := range report.account.Problems {
		plan.Problems = append(plan.Problems, imageset.Problem{Field: "helm", Text: p.String()})
	}
	return unread, nil
}
