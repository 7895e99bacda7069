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
func (o *Options) findChartImages(ctx context.Context, get *charts.Getter, c *chart, a *charts.Archive, kube string, report *report) ([]chartImage, error) {
	what, err := helmtemplate.Parse(ctx, a.Data, a.Source, helmtemplate.Limits{})
	if err != nil {
		return nil, err
	}
	if c.repository == "" {
		c.account.Name, c.account.Version = what.Name(), what.Version()
	} else if what.Name() != c.asked.Name {
		return nil, fmt.Errorf("%w: the archive has the chart %s", fault.ErrInvalid, fault.Quote(what.Name()))
	}
	settings, err := o.Charts.settings(get, what.Name(), a.Digest, kube)
	if err == nil {
		err = get.KeepSettings(a.Digest, settings)
	}
	if err != nil {
		return nil, err
	}
	c.account.KubeVersion = settings.KubeVersion
	if what.Library() {
		return nil, nil
	}
	if !settings.Compat && !what.Supports(settings.KubeVersion) {
		report.problem(filter.Warning, c.account.Title(), "name the version of the cluster with --helm-kube-version",
			"it wants Kubernetes %s and is rendered for %s", fault.Short(what.KubeVersion()), settings.KubeVersion)
	}
	found, err := c.renderBoth(ctx, what, settings, report)
	if err != nil {
		return nil, err
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

// renderBoth renders a chart for a plain cluster and for one of OpenShift. One of them is enough, but with oc-mirror's ways the
// plain one is what counts.
func (c *chart) renderBoth(ctx context.Context, what *helmtemplate.Chart, s charts.Settings, report *report) (*chartimages.Found, error) {
	values, err := chartValues(what.Name(), s)
	if err != nil {
		return nil, err
	}
	with := helmtemplate.Options{KubeVersion: s.KubeVersion, APIVersions: s.APIVersions, Values: values, Tests: s.Tests}
	found, err := c.find(ctx, what, with, s.Compat)
	if err != nil && (s.Compat || ctx.Err() != nil) {
		return nil, err
	}
	with.APIVersions = append(slices.Clone(openShiftAPIs), with.APIVersions...)
	more, moreErr := c.find(ctx, what, with, s.Compat)
	switch {
	case moreErr != nil && ctx.Err() != nil:
		return nil, moreErr
	case err != nil && moreErr != nil:
		return nil, err
	case err != nil:
		report.problem(filter.Warning, c.account.Title(), "", "it cannot be rendered for a cluster without the APIs of OpenShift: %v", err)
		return more, nil
	case moreErr != nil:
		report.problem(filter.Warning, c.account.Title(), "", "it cannot be rendered for OpenShift: %v", moreErr)
	default:
		c.addForOpenShift(found, more, s.Compat, report)
	}
	return found, nil
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
func chartValues(name string, s charts.Settings) (map[string]any, error) {
	if len(s.Values) == 0 {
		return nil, nil
	}
	var out map[string]any
	if err := helmtemplate.Unmarshal(s.Values, &out); err != nil {
		return nil, fault.Advise(fmt.Errorf("%w: values of the chart %s in %s: %w", fault.ErrInvalid, name, s.File, err),
			"write fields, such as \"replicas: 2\"")
	}
	return out, nil
}
