package mirror

import (
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/mirror/charts"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
)

// deleteChart is a chart whose images are deleted.
type deleteChart struct {
	Name       string `json:"name"`
	Version    string `json:"version,omitempty"`
	Repository string `json:"repository,omitempty"`
	Path       string `json:"path,omitempty"`
}

// recorded is the chart as the record has it.
func (c deleteChart) recorded() workdir.RecordedChart {
	return workdir.RecordedChart{Name: c.Name, Version: c.Version, Repository: c.Repository, Path: c.Path}
}

// recordedCharts returns the charts of a record that an image set asks for, and what it asks for that the record does not have. Of
// a rule the newest version counts that was mirrored.
func recordedCharts(h *imageset.Helm, rec *workdir.Record) (found []workdir.RecordedChart, missing []string) {
	for _, c := range h.Local {
		n := len(found)
		for _, r := range rec.Charts {
			if r.Repository == "" && r.Path == c.Path {
				found = append(found, r)
			}
		}
		if len(found) == n {
			missing = append(missing, "chart "+c.Path)
		}
	}
	for _, of := range h.Repositories {
		name, n := charts.RepositoryName(of.URL), len(found)
		if of.All {
			for _, r := range rec.Charts {
				if r.Repository == name {
					found = append(found, r)
				}
			}
			if len(found) == n {
				missing = append(missing, "charts of "+name)
			}
		}
		for _, c := range of.Charts {
			var own []workdir.RecordedChart
			var versions []string
			for _, r := range rec.Charts {
				if r.Repository == name && r.Name == c.Name {
					own, versions = append(own, r), append(versions, r.Version)
				}
			}
			rule, err := charts.ParseRule(c.Version)
			if err != nil {
				continue // the image set was checked
			}
			if at := rule.Choose(versions); at >= 0 {
				found = append(found, own[at])
			} else {
				missing = append(missing, strings.TrimSuffix("chart "+c.Name+" "+c.Version, " ")+" of "+name)
			}
		}
	}
	return found, missing
}

// addCharts adds the images of the charts that the image set names, as the workspace has a record of them.
func (l *DeleteList) addCharts(o *DeleteOptions, report *report, rec *workdir.Record, wanted map[string]DeleteItem) {
	found, missing := recordedCharts(&o.Set.Helm, rec)
	for _, text := range missing {
		report.addProblem(Problem{Level: filter.Failure, Object: text, Message: "the workspace has no record that it was mirrored to " + o.Target.String()})
	}
	for _, c := range found {
		one := deleteChart{c.Name, c.Version, c.Repository, c.Path}
		if slices.Contains(l.Charts, one) {
			continue
		}
		l.Charts = append(l.Charts, one)
		for _, i := range c.Images {
			at := i.Destination.String()
			key := at + "@" + i.Source.Digest.String()
			if _, ok := wanted[key]; !ok {
				wanted[key] = DeleteItem{Name: i.Source.String(), Reference: at, Type: ChartImage}
			}
		}
	}
}

// expectCharts adds the images of charts: of those that were mirrored from the workspace, which those of the image set must be
// among.
func (o *targetCheck) expectCharts(rec *workdir.Record, v *Verification) {
	for _, c := range rec.Charts {
		for _, i := range slices.Concat(c.Images, c.Missing) { // another run, such as that of a shard, may have copied what was missing
			o.expect(i.Destination, i.Source, nil, c.Title())
		}
		v.Charts = append(v.Charts, verifiedChart{Name: c.Title(), Images: len(c.Images) + len(c.Missing)})
	}
	if o.Set == nil {
		return
	}
	_, missing := recordedCharts(&o.Set.Helm, rec)
	for _, text := range missing {
		v.Charts = append(v.Charts, verifiedChart{Name: text, Error: "the workspace (--workspace) has no record that it was mirrored"})
	}
}
