package mirror

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/charts"
	"github.com/operator-bindery/bindery/mirror/charts/chartimages"
	"github.com/operator-bindery/bindery/mirror/charts/helmtemplate"
	"github.com/operator-bindery/bindery/mirror/filter"
)

// openShiftAPIs are the APIs of OpenShift that charts look for.
var openShiftAPIs = []string{"apps.openshift.io/v1", "authorization.openshift.io/v1", "build.openshift.io/v1", "config.openshift.io/v1",
	"console.openshift.io/v1", "image.openshift.io/v1", "machineconfiguration.openshift.io/v1", "monitoring.coreos.com/v1",
	"oauth.openshift.io/v1", "operator.openshift.io/v1", "operators.coreos.com/v1", "operators.coreos.com/v1alpha1",
	"project.openshift.io/v1", "quota.openshift.io/v1", "route.openshift.io/v1", "route.openshift.io/v1/Route",
	"security.openshift.io/v1", "security.openshift.io/v1/SecurityContextConstraints", "template.openshift.io/v1", "user.openshift.io/v1"}

// packChart makes an archive of a directory with a chart.
func packChart(ctx context.Context, dir string) ([]byte, error) {
	c, err := helmtemplate.Load(ctx, dir, helmtemplate.Limits{})
	if err != nil {
		return nil, err
	}
	return c.Pack()
}

// findChartImages renders a chart, and returns the images that it names. It is rendered for a plain cluster and for one of
// OpenShift, as charts keep parts for either; with Compat for a plain one alone, as oc-mirror does.
func (o *Options) findChartImages(ctx context.Context, c *chart, a *charts.Archive, kube string, report *report) ([]chartImage, error) {
	what, err := helmtemplate.Parse(ctx, a.Data, a.Source, helmtemplate.Limits{})
	if err != nil {
		return nil, err
	}
	if c.repository == "" {
		c.account.Name, c.account.Version = what.Name(), what.Version()
	} else if what.Name() != c.asked.Name {
		return nil, fmt.Errorf("%w: the archive has the chart %s", fault.ErrInvalid, fault.Quote(what.Name()))
	}
	c.account.KubeVersion = kube
	if what.Library() {
		return nil, nil
	}
	values, err := o.chartValues(what.Name())
	if err != nil {
		return nil, err
	}
	with := helmtemplate.Options{KubeVersion: kube, APIVersions: o.Charts.APIVersions, Values: values, Tests: o.Charts.Tests}
	found, err := c.find(ctx, what, with, o.Charts.Compat)
	if err != nil {
		return nil, err
	}
	var more *chartimages.Found
	with.APIVersions = append(slices.Clone(openShiftAPIs), with.APIVersions...)
	if more, err = c.find(ctx, what, with, o.Charts.Compat); err != nil && ctx.Err() != nil {
		return nil, err
	} else if err != nil {
		report.problem(filter.Warning, c.account.Title(), "", "it cannot be rendered for OpenShift: %v", err)
	} else {
		c.addForOpenShift(found, more, o.Charts.Compat, report)
	}
	for _, text := range found.Warnings {
		report.problem(filter.Warning, c.account.Title(), "", "%s", strings.TrimPrefix(text, "chart "+what.Name()+": "))
	}
	for _, i := range found.Others {
		if !slices.Contains(c.account.NotMirrored, i.Reference) {
			c.account.NotMirrored = append(c.account.NotMirrored, i.Reference)
		}
	}
	if n := len(c.account.NotMirrored); n > 0 {
		slices.Sort(c.account.NotMirrored)
		report.problem(filter.Warning, c.account.Title(), "write imagePaths for them, or mirror with \"bindery mirror run\"",
			"not mirrored, as oc-mirror does not look there: %s", summaryOf(c.account.NotMirrored))
	}
	var out []chartImage
	for _, i := range found.Images {
		image, err := parseChartImage(i.Reference)
		if err != nil {
			return nil, fmt.Errorf("%w: %s, %s %s: image %s: %w", fault.ErrInvalid, i.Source, i.Kind, i.Name, fault.Quote(i.Reference), err)
		}
		out = append(out, image)
	}
	return out, nil
}

// find renders a chart and finds its images.
func (c *chart) find(ctx context.Context, what *helmtemplate.Chart, o helmtemplate.Options, narrow bool) (*chartimages.Found, error) {
	manifests, err := what.Render(ctx, o)
	if err != nil {
		return nil, err
	}
	return chartimages.Find(ctx, what, manifests, chartimages.Options{ImagePaths: c.asked.ImagePaths, Narrow: narrow})
}

// addForOpenShift adds the images that a chart names on OpenShift alone. With oc-mirror's ways they are not mirrored.
func (c *chart) addForOpenShift(found, more *chartimages.Found, narrow bool, report *report) {
	has := func(list []chartimages.Image, i chartimages.Image) bool {
		return slices.ContainsFunc(list, func(o chartimages.Image) bool { return o.Reference == i.Reference })
	}
	var names []string
	for _, i := range more.Images {
		if has(found.Images, i) {
			continue
		}
		if names = append(names, i.Reference); narrow {
			found.Others = append(found.Others, i)
		} else {
			found.Images = append(found.Images, i)
		}
	}
	for _, i := range more.Others {
		if !has(found.Others, i) && !has(found.Images, i) {
			found.Others = append(found.Others, i)
		}
	}
	for _, text := range more.Warnings {
		if !slices.Contains(found.Warnings, text) && !strings.Contains(text, "of imagePaths") {
			found.Warnings = append(found.Warnings, text)
		}
	}
	if len(names) > 0 && !narrow {
		report.log.info(fmt.Sprintf("%s: it names on OpenShift alone: %s", c.account.Title(), summaryOf(names)))
	}
}

// chartValues are the values that are given for a chart.
func (o *Options) chartValues(name string) (map[string]any, error) {
	text, ok := o.Charts.Values[name]
	if !ok {
		return nil, nil
	}
	var out map[string]any
	if err := helmtemplate.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("%w: values of the chart %s: %w", fault.ErrInvalid, name, err)
	}
	return out, nil
}
