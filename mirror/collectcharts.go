package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/mirror/charts"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// maxCharts is how many charts a run reads.
const maxCharts = 20_000

// collectCharts gets the charts, renders them, and lists their images. What is wrong with one is in it.
func (r *run) collectCharts(ctx context.Context) error {
	if r.o.Set.Helm.IsZero() {
		return r.o.Charts.checkValues(nil)
	}
	files := r.found.files
	get := &charts.Getter{Client: r.o.Charts.Client, Registry: chartRegistry{cmp.Or(r.o.Images, r.o.Render.Images)},
		Stored: files.own, Save: files.keep, SaveLocal: r.o.Mode == ToDisk, Pack: packChart}
	if r.places.input != nil {
		get.Client, get.Stored = nil, files.stored
	}
	list, err := r.o.listCharts(ctx, get, r.report)
	if err != nil {
		return err
	}
	r.found.charts = list
	found := make([][]chartImage, len(list))
	err = guard.Each(ctx, r.o.ParallelImages, list, func(ctx context.Context, n int, c *chart) error {
		if c.failed == nil {
			var err error
			if found[n], err = r.o.readChart(ctx, get, c, r.kubeVersion(), r.report); err != nil {
				c.fail(err)
			}
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	if err := r.o.Charts.checkValues(list); err != nil {
		return err
	}
	for n, c := range list {
		for _, image := range found[n] {
			to := r.o.destination().Image(image.named)
			i := r.found.items.add(image.source, to, ChartImage, c.asked.Platforms)
			i.nameOnMedium(onMedium.Image(image.named))
			if !slices.Contains(c.images, i) {
				c.images = append(c.images, i)
			}
		}
		c.account.Images = len(c.images)
	}
	return get.Finish(files.own)
}

// listCharts lists the charts of the image set, the local ones first. What is wrong with one is in it; the error is that of the
// context, or about too many.
func (o *Options) listCharts(ctx context.Context, get *charts.Getter, report *report) (out []*chart, err error) {
	h := &o.Set.Helm
	for _, c := range h.Local {
		out = append(out, &chart{asked: c, account: ChartAccount{Name: c.Name, Source: c.Path}})
	}
	for _, of := range h.Repositories {
		source := charts.RepositoryName(of.URL)
		if of.All {
			all, odd, err := get.All(ctx, of.URL)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				c := &chart{repository: of.URL, account: ChartAccount{Source: source}}
				c.fail(err)
				out = append(out, c)
			}
			if len(odd) > 0 {
				report.problem(filter.Warning, source, "", "the index has what is left out: %s", summaryOf(odd))
			}
			for _, w := range all {
				out = append(out, &chart{asked: imageset.Chart{Name: w.Name, Version: w.Version()}, repository: of.URL, wanted: w,
					account: ChartAccount{Name: w.Name, Version: w.Version(), Source: source}})
			}
		}
		for _, asked := range of.Charts {
			c := &chart{asked: asked, repository: of.URL, account: ChartAccount{Name: asked.Name, Version: asked.Version, Source: source}}
			rule, err := charts.ParseRule(asked.Version)
			if err == nil {
				c.wanted, err = get.Find(ctx, of.URL, asked.Name, rule)
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				c.fail(err)
			}
			out = append(out, c)
		}
		if len(out) > maxCharts {
			return nil, fmt.Errorf("%w: %d charts (limit %d): name those that are needed", fault.ErrLimit, len(out), maxCharts)
		}
	}
	return out, nil
}

// summaryOf names the first of many.
func summaryOf(list []string) string {
	text := strings.Join(list[:min(len(list), 3)], ", ")
	if more := len(list) - 3; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// readChart gets a chart and finds its images.
func (o *Options) readChart(ctx context.Context, get *charts.Getter, c *chart, kube string, report *report) ([]chartImage, error) {
	var archive *charts.Archive
	var err error
	if c.repository == "" {
		archive, err = get.Local(ctx, c.asked.Path)
	} else {
		archive, err = get.Get(ctx, c.wanted)
	}
	if err != nil {
		return nil, err
	}
	c.account.Digest = archive.Digest
	if c.repository != "" {
		c.account.Version, c.account.Source = archive.Version, archive.Source
	}
	return o.findChartImages(ctx, get, c, archive, kube, report)
}

// kubeVersion is the version of Kubernetes that charts are rendered for.
func (r *run) kubeVersion() string {
	var versions []string
	for _, one := range r.found.releases {
		versions = append(versions, one.chosen.Version)
	}
	return r.o.kubeVersion(versions)
}

// kubeVersion is the version of Kubernetes that charts are rendered for beside releases with the given versions: OpenShift 4.N has
// Kubernetes 1.(N+13).
func (o *Options) kubeVersion(releases []string) string {
	switch {
	case o.Charts.KubeVersion != "":
		return o.Charts.KubeVersion
	case o.Charts.Compat:
		return compatKubeVersion
	}
	newest := 0
	for _, v := range releases {
		minor := 0
		if n, err := fmt.Sscanf(v, "4.%d.", &minor); n == 1 && err == nil {
			newest = max(newest, minor)
		}
	}
	if newest == 0 {
		return DefaultKubeVersion
	}
	return fmt.Sprintf("v1.%d.0", newest+13)
}

// chartFailures are the errors of the charts that cannot be had.
func (f *collection) chartFailures() (errs []error) {
	for _, c := range f.charts {
		if c.failed != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.account.Title(), c.failed))
		}
	}
	return errs
}

// settleCharts notes what became of the charts, when their images are copied.
func (r *run) settleCharts() {
	for _, c := range r.found.charts {
		c.settle()
	}
}

// addCharts adds the charts that could not be read to an error.
func (f *collection) addCharts(e *IncompleteError) {
	for _, c := range f.charts {
		if c.failed == nil {
			continue
		}
		e.UnreadCharts = append(e.UnreadCharts, c.account.Title())
		e.Cause = cmp.Or(e.Cause, c.failed)
		e.First = cmp.Or(e.First, c.account.Title()+": "+c.account.Error)
	}
}

// chartImage is an image that a chart names.
type chartImage struct {
	source imageset.Ref
	// named is what its place at the destination is made of: the name without the registry that is implied.
	named imageset.Ref
}

// dockerHub are the names of Docker Hub.
var dockerHub = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// parseChartImage reads the name of an image as a cluster does: without a registry it is one of Docker Hub, where one without a
// slash is in library.
func parseChartImage(text string) (image chartImage, err error) {
	ref, err := imageset.ParseRef(text)
	if err == nil && !ref.InRegistry() {
		err = errors.New("it is in no registry")
	}
	if err != nil {
		return chartImage{}, err
	}
	image = chartImage{ref, ref}
	if slices.Contains(dockerHub, ref.Host) {
		image.source.Host = "docker.io"
		if !strings.Contains(ref.Path, "/") {
			image.source.Path = "library/" + ref.Path
		}
		image.named = image.source
		image.named.Path = ref.Path
		return image, nil
	}
	var none *imageset.NoRegistryError
	if !errors.As(ref.CheckRegistry(), &none) {
		return image, nil
	}
	image.source, err = imageset.ParseRef(none.Full)
	if image.named = image.source; ref.Host == "" {
		image.named.Path = ref.Path
	}
	return image, err
}

// chartRegistry reads charts at registries.
type chartRegistry struct{ client *images.Client }

// Tags lists the tags of a repository.
func (c chartRegistry) Tags(ctx context.Context, repository string) ([]string, error) {
	return c.client.UnverifiedTags(ctx, repository)
}

// Open opens a chart.
func (c chartRegistry) Open(ctx context.Context, name string) (store.Reader, v1.Descriptor, func() error, error) {
	at, err := c.client.Open(ctx, name)
	if err != nil {
		return nil, v1.Descriptor{}, nil, err
	}
	return at, at.Top, at.Close, nil
}
