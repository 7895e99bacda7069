package mirror

import (
	"cmp"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/mirror/charts"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
)

// chart is a chart that the image set asks for, or one that cannot be had.
type chart struct {
	// asked is the entry of the image set; of a repository that is wanted whole it has the name and the version.
	asked imageset.Chart
	// repository is where it is; empty for a local chart.
	repository string
	wanted     charts.Wanted
	images     []*item
	failed     error
	account    ChartAccount
}

// ChartAccount is what became of the images of one chart.
type ChartAccount struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Source is the archive's URL, or the path of a local chart.
	Source string        `json:"source"`
	Digest digest.Digest `json:"digest,omitempty"`
	// KubeVersion is the version of Kubernetes that it was rendered for.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// Images is how many images it names. NotMirrored are those that it names where oc-mirror does not look.
	Images      int      `json:"images"`
	NotMirrored []string `json:"notMirrored,omitempty"`
	// Mirrored tells that the destination has all its images but those that are blocked.
	Mirrored bool   `json:"mirrored"`
	Error    string `json:"error,omitempty"`
}

// Title is how messages name a chart.
func (a *ChartAccount) Title() string {
	return strings.TrimSuffix("chart "+cmp.Or(a.Name, a.Source)+" "+a.Version, " ")
}

// fail notes why the images of a chart are not known.
func (c *chart) fail(err error) {
	c.failed = err
	c.account.Error = err.Error()
}

// record is what is kept of a chart: its images at the target, and those that it lacks there; nil if they are not known.
func (c *chart) record() *workdir.RecordedChart {
	if c.failed != nil {
		return nil
	}
	out := &workdir.RecordedChart{Name: c.account.Name, Version: c.account.Version, Images: []workdir.RecordedImage{}}
	if c.repository == "" {
		out.Path = c.asked.Path
	} else {
		out.Repository = charts.RepositoryName(c.repository)
	}
	for _, i := range c.images {
		one := workdir.RecordedImage{Source: i.source, Destination: i.destination}
		if i.isThere() {
			out.Images = append(out.Images, one)
		} else if i.account.Status != Blocked {
			out.Missing = append(out.Missing, one)
		}
	}
	return out
}

// settle fills in the account after the images are copied.
func (c *chart) settle() {
	if c.failed != nil {
		return
	}
	c.account.Mirrored = true
	for _, i := range c.images {
		if i.account != nil && i.failed() {
			c.account.Mirrored = false
			if c.account.Error == "" && i.account.Error != "" { // in the run of a shard others copy it
				c.account.Error = i.name() + ": " + i.account.Error
			}
		}
	}
}
