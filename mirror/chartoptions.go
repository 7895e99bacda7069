package mirror

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/nearest"
	"github.com/operator-bindery/bindery/internal/webclient"
	"github.com/operator-bindery/bindery/mirror/charts"
)

// ChartOptions are how the charts of an image set are got and rendered.
type ChartOptions struct {
	// Client asks repositories, and [Options].Images registries. With [FromDisk] neither is asked.
	Client *webclient.Client
	// Values are values by the names of charts, which replace those of the charts.
	Values map[string]ChartValues
	// KubeVersion, unless empty, is the version of Kubernetes that charts are rendered for. Otherwise it is that of the newest
	// release of the run, or [DefaultKubeVersion].
	KubeVersion string
	// APIVersions are further APIs of the cluster, GROUP/VERSION or GROUP/VERSION/KIND.
	APIVersions []string
	// Compat keeps to what oc-mirror does: charts are rendered for its version of Kubernetes without OpenShift, and images are
	// taken from where it looks; what others there are is noted as not mirrored. Pinned image sets keep the rules of versions.
	Compat bool
	// Tests counts the images of tests, too.
	Tests bool
}

// ChartValues are values in YAML, and the file that has them.
type ChartValues struct {
	File string
	Text []byte
}

// DefaultKubeVersion is the version of Kubernetes that charts are rendered for where no release says which, and
// compatKubeVersion that of oc-mirror.
const (
	DefaultKubeVersion = "v1.33.0"
	compatKubeVersion  = "v1.20.0"
)

// settings are what a chart is rendered with: what is kept of the run that wrote the archive, so that the images are those of the
// archive, or else what the options say. An option that is given and differs from what is kept is an error.
func (o *ChartOptions) settings(get *charts.Getter, name string, chart digest.Digest, kube string) (charts.Settings, error) {
	values, given := o.Values[name]
	now := charts.Settings{KubeVersion: kube, APIVersions: slices.Compact(slices.Sorted(slices.Values(o.APIVersions))), Tests: o.Tests, Compat: o.Compat,
		Values: values.Text, File: values.File}
	kept, err := get.KeptSettings(chart)
	if err != nil || kept == nil {
		return now, err
	}
	differs := func(flag, was, is string) (charts.Settings, error) {
		return now, fault.Advise(fmt.Errorf("%w: the archive was written with %s %s, and %s is given", fault.ErrInvalid, flag, was, is),
			"leave the flag out, or write the archive with the other value")
	}
	switch list := strings.Join(kept.APIVersions, ","); {
	case o.KubeVersion != "" && o.KubeVersion != kept.KubeVersion:
		return differs("--helm-kube-version", kept.KubeVersion, o.KubeVersion)
	case len(now.APIVersions) > 0 && !slices.Equal(now.APIVersions, kept.APIVersions):
		return differs("--helm-api-versions", cmp.Or(list, "(none)"), strings.Join(now.APIVersions, ","))
	case o.Tests && !kept.Tests:
		return differs("--helm-tests", "false", "true")
	case given && string(values.Text) != string(kept.Values):
		was := "(none)"
		if kept.File != "" {
			was = "working-dir/" + kept.File
		}
		return differs("--helm-values", name+"="+was, name+"="+values.File+" with another text")
	}
	return *kept, nil
}

// checkValues returns an error if values are given for a chart that the image set does not have.
// Where the name of a chart is not known, as it cannot be read, there is none.
func (o *ChartOptions) checkValues(list []*chart) error {
	var names []string
	for _, c := range list {
		if c.failed != nil && (c.repository == "" || c.account.Name == "") {
			return nil // its name is not known
		}
		names = append(names, c.account.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Values)) {
		if slices.Contains(names, name) {
			continue
		}
		err := fault.New(fault.Usage, fmt.Sprintf("--helm-values %s=%s: the image set has no chart %s", name, o.Values[name].File, fault.Quote(name)))
		if len(names) == 0 {
			return fault.Advise(err, "it names no chart: leave the flag out")
		}
		if near, ok := nearest.Name(name, names); ok {
			return fault.Advise(err, "did you mean "+fault.Quote(near)+"?")
		}
		return fault.Advise(err, "name a chart of it: "+summaryOf(slices.Compact(slices.Sorted(slices.Values(names)))))
	}
	return nil
}
