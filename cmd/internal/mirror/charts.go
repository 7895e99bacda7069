package mirror

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/charts"
)

// chartGroup is how help calls the flags.
const chartGroup = "charts"

// ChartFlags say how the charts of an image set are rendered.
func (o *SetOptions) ChartFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "helm-values", Destination: &o.helmValues, Category: chartGroup,
			Usage: "values for a chart, `CHART=FILE`, in place of those that are its defaults; can be repeated"},
		&cli.StringFlag{Name: "helm-kube-version", Destination: &o.Request.Charts.KubeVersion, Category: chartGroup,
			DefaultText: "that of the newest release, or " + mirror.DefaultKubeVersion, Usage: "render charts for `VERSION` of Kubernetes"},
		&cli.StringSliceFlag{Name: "helm-api-versions", Destination: &o.helmAPIs, Category: chartGroup,
			Usage: "render charts for clusters with the API `GROUP/VERSION[/KIND]`, too; can be repeated"},
		&cli.BoolFlag{Name: "helm-tests", Destination: &o.Request.Charts.Tests, Category: chartGroup, Usage: "also mirror the images of charts' tests"},
	}
}

// SkipChartCertificates accepts any certificate of repositories of charts.
func SkipChartCertificates(ctx context.Context, at *option.Registry, with *mirror.Options) (err error) {
	with.Charts.Client, err = newWebClient(ctx, at, true)
	return err
}

// apiVersion is the form of an API: a group, unless it is that of the core, a version, and perhaps a kind.
var apiVersion = lazyregexp.New(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?v[0-9]+[a-z0-9]*(/[A-Z][A-Za-z0-9]*)?$`)

// maxChartValues is the size of a file with values in bytes.
const maxChartValues = 1 << 20

// charts completes what the flags say of charts.
func (o *SetOptions) charts(ctx context.Context) (out mirror.ChartOptions, err error) {
	out = o.Request.Charts
	out.APIVersions = o.helmAPIs.Value()
	if v := out.KubeVersion; v != "" {
		full := charts.FullVersion(v)
		if full == "" {
			return out, cmdline.Usagef("invalid --helm-kube-version value %q, expected a version such as v1.30.0", v)
		}
		out.KubeVersion = "v" + full
	}
	for _, text := range out.APIVersions {
		if !apiVersion().MatchString(text) {
			return out, cmdline.Usagef("invalid --helm-api-versions value %q, expected GROUP/VERSION, GROUP/VERSION/KIND or VERSION, such as "+
				"route.openshift.io/v1", text)
		}
	}
	for _, text := range o.helmValues.Value() {
		name, file, ok := strings.Cut(text, "=")
		if !ok || file == "" || charts.CheckName(name) != nil {
			return out, cmdline.Usagef("invalid --helm-values value %q, expected CHART=FILE", text)
		}
		if _, twice := out.Values[name]; twice {
			return out, cmdline.Usagef("--helm-values names the chart %s twice: join the two files", name)
		}
		content, err := regularfile.ReadNamed(ctx, file, maxChartValues)
		if err != nil {
			return out, &cmdline.Error{Class: cmdline.Classify(err), Object: file, Err: fmt.Errorf("--helm-values %s: %w", file, err)}
		}
		if out.Values == nil {
			out.Values = map[string]mirror.ChartValues{}
		}
		out.Values[name] = mirror.ChartValues{File: file, Text: content}
	}
	return out, nil
}
