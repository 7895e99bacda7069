package check

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/olmv1/manifests"
	"github.com/operator-bindery/bindery/olmv1/resolve"
)

// checkRequest refuses what an API server refuses in a ClusterExtension, before a catalog is read.
func checkRequest(q resolve.Request) error {
	err := q.Validate()
	if err == nil {
		return nil
	}
	hint := "the name of a package is a DNS subdomain: a ClusterExtension cannot ask for this one"
	switch text := err.Error(); {
	case strings.Contains(text, "packageName: "):
	case strings.Contains(text, "version: "):
		hint = "ranges are such as 1.2.3, \">=1.0.0 <1.1.0\", ~1.2, 1.x, in at most 64 characters, without a hyphen between " +
			"versions and without leading zeros"
	default:
		hint = "the name of a channel is a DNS subdomain: a ClusterExtension cannot ask for this one; without --channel, " +
			"its bundles are candidates"
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: q.Package, Hint: hint,
		Err: fmt.Errorf("an API server refuses the ClusterExtension: %w", err)}
}

// resolveWarning is what "check --profile olmv1" finds in what a resolution touches.
type resolveWarning struct {
	Catalog string `json:"catalog"`
	rules.Finding
}

// packageWarnings are the runs of the rules of OLM v1 on a package, one for each catalog.
type packageWarnings struct {
	catalogs []string
	runs     []*rules.Run
	objects  []bool // whether the catalog has manifests of the package
}

// checkPackages has the package of a request checked in each catalog while the resolver reads it.
func checkPackages(ctx context.Context, catalogs []resolve.Catalog, q *resolve.Request, settings manifests.Settings) (
	*packageWarnings, error) {
	w := &packageWarnings{}
	for i := range catalogs {
		run, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{rules.OLMv1}}, nil)
		if err != nil {
			return nil, err
		}
		s := rules.CatalogSubject{Release: q.Gates.BundleReleaseSupport,
			SingleOwn: slices.Contains(settings.Gates, manifests.SingleOwnNamespace)}
		w.catalogs, w.runs, w.objects = append(w.catalogs, catalogs[i].Name), append(w.runs, run), append(w.objects, false)
		blobs := run.CheckPackage(ctx, s, q.Package, catalogs[i].Blobs)
		catalogs[i].Blobs = func(yield func(declcfg.Blob, error) bool) {
			for b, err := range blobs {
				if b, ok := b.(*declcfg.Bundle); ok && b.HasObjects {
					w.objects[i] = true
				}
				if !yield(b, err) {
					return
				}
			}
		}
	}
	return w, nil
}

// checkTouched has the manifests checked that the catalogs have of some bundles: to validate those of all bundles of a
// package takes seconds. With --pull the images decide.
func (o *resolveOptions) checkTouched(ctx context.Context, p *option.Session, w *packageWarnings, settings manifests.Settings,
	names []string) error {
	if o.pull {
		return nil
	}
	with, err := o.Options(ctx, p, o.catalogs...)
	if err != nil {
		return err
	}
	find := bundlecheck.CatalogManifests(settings, nil, nil)
	for i, ref := range w.catalogs {
		if !w.objects[i] {
			continue
		}
		blobs, err := o.blobsIn(ctx, p, with, ref, names)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(blobs)) {
			b := blobs[name]
			if csv, err := b.CSV(); csv == nil && err == nil {
				continue
			}
			if err := find(ctx, w.runs[i], b); err != nil {
				return err
			}
		}
	}
	return nil
}

// about returns what was found about the package, the installed bundle and those that are to be installed: what refuses
// a bundle does not matter if it is installed, or is not touched.
func (w *packageWarnings) about(installed *resolve.Installed, next ...string) []resolveWarning {
	touched := next
	if installed != nil {
		touched = append([]string{installed.Name}, next...)
	}
	var out []resolveWarning
	for i, run := range w.runs {
		for _, f := range run.Report(w.catalogs[i], rules.OnCatalog).Findings {
			if f.About(next...) || f.Severity == rules.Warning && f.About(touched...) {
				out = append(out, resolveWarning{w.catalogs[i], f})
			}
		}
	}
	return out
}

// mostWarnings is how many warnings are logged; an answer in JSON has all.
const mostWarnings = 10

// logWarnings logs what was found.
func logWarnings(p *option.Session, found []resolveWarning) {
	for i, w := range found {
		if i == mostWarnings {
			p.Log.Warn(fmt.Sprintf("%d more; \"bindery check CATALOG --profile olmv1\" has them all", len(found)-i))
			return
		}
		place := w.Place()
		if dir := localDir(w.Catalog); dir != "" && w.File != "" {
			w.File = path.Join(dir, w.File)
			place = w.Place()
		} else if w.File != "" {
			place = w.Catalog + ": " + place
		}
		message := w.Message
		if w.Severity == rules.Error {
			message = "OLM v1 does not install it: " + message
		}
		p.Log.Warn(fmt.Sprintf("%s: %s (%s)", place, message, w.Rule))
	}
}
