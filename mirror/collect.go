package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/atmirror"
	"github.com/operator-bindery/bindery/mirror/resources"
)

// collection is what an image set asks for.
type collection struct {
	releases []*release
	graph    *item         // the image with the data of update graphs; nil if it is not asked for
	files    *releaseFiles // about releases
	charts   []*chart
	catalogs []*catalog
	absent   []*catalog // catalogs that are not there
	items    items      // all images but those of catalogs and graphs, which are made of these
}

func (f *collection) close() error {
	var err error
	for _, c := range slices.Concat(f.catalogs, f.absent) {
		err = errors.Join(err, c.close())
	}
	return err
}

// collect reads the catalogs of the image set, filters them, and lists all images, as it does with the releases. All that
// is wrong is reported at once. Releases and catalogs that are not there, and catalogs that have nothing of what is named,
// are no error if there is anything else to mirror. What was found is returned with an error, too; the caller closes it.
func (r *run) collect(ctx context.Context) error {
	r.found = &collection{}
	templates, err := r.readTemplates(ctx)
	if err == nil {
		err = r.collectAll(ctx, templates)
	}
	r.found.items.byKey = nil // nothing is added from now on
	return err
}

// collectWhole is like [run.collect], but a release or catalog that is not there is an error.
func (r *run) collectWhole(ctx context.Context) error {
	err := r.collect(ctx)
	errs := r.found.releaseFailures()
	e := &CollectError{Releases: len(errs), Operators: len(r.found.absent)}
	for _, c := range r.found.absent {
		errs = append(errs, fmt.Errorf("catalog %s: %w", c.op.Catalog.Name(), c.failed))
	}
	unread := r.found.chartFailures()
	e.Charts, errs = len(unread), append(errs, unread...)
	if e.Err = errors.Join(errs...); err == nil && e.Err != nil {
		err = e
	}
	return err
}

// readTemplates reads the templates of the entries, in their order; nil for entries without one.
func (r *run) readTemplates(ctx context.Context) ([]*resources.Template, error) {
	var errs []error
	templates := make([]*resources.Template, len(r.o.Set.Operators))
	for n, op := range r.o.Set.Operators {
		if file := op.TargetCatalogSourceTemplate; file != "" {
			var err error
			if templates[n], err = resources.ReadTemplate(ctx, file); err != nil {
				errs = append(errs, fmt.Errorf("catalog %s: %w", op.Written, err))
			}
		}
	}
	return templates, errors.Join(errs...)
}

// collectAll reads the catalogs and lists the images.
func (r *run) collectAll(ctx context.Context, templates []*resources.Template) error {
	if err := r.collectReleases(ctx); err != nil {
		return err
	}
	errs := r.found.releaseFailures()
	wrongReleases := len(errs)
	if wrongReleases > 0 && !r.o.Filter.Strict && !r.o.AllCatalogs && r.o.OnMissing != FailMissing &&
		(len(r.found.items.list)+len(r.o.Set.Operators)+len(r.o.Set.AdditionalImages) > 0 || !r.o.Set.Helm.IsZero()) {
		wrongReleases, errs = 0, nil
	}
	wanted := r.o.openCatalogs(ctx, len(r.found.items.list)+len(r.o.Set.AdditionalImages) > 0 || !r.o.Set.Helm.IsZero(), func(n int, op imageset.Operator) (*catalog, error) {
		c, err := r.openCatalog(ctx, op)
		c.template = templates[n]
		if err == nil {
			err = c.checkAnyKept()
		}
		return c, err
	})
	r.found.catalogs, r.found.absent = wanted.catalogs, wanted.absent
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, c := range r.found.absent {
		c.setDestination(r.o.destination().Catalog(c.op, !c.op.WholeCatalog(), "", ""), "")
		if !wanted.nothingElse {
			r.report.unpublished(c.op.Catalog.Name(), Catalog, c.failed)
		}
	}
	for _, c := range r.found.catalogs {
		if c.failed == nil {
			if err := r.addCatalog(c); err != nil {
				c.fail(err)
			}
		}
	}
	wrong := wanted.failed()
	for _, c := range wrong {
		errs = append(errs, fmt.Errorf("catalog %s: %w", c.op.Catalog.Name(), c.failed))
	}
	additional := 0
	for _, a := range r.o.Set.AdditionalImages {
		if err := r.addAdditional(a); err != nil {
			additional++
			errs = append(errs, fmt.Errorf("additional image %s: %w", a.Name.Name(), err))
		}
	}
	if err := r.collectCharts(ctx); err != nil {
		return err
	}
	unread := r.found.chartFailures()
	if !r.o.Filter.Strict && len(r.found.items.list)+len(r.found.catalogs) > 0 {
		unread = nil // the others are mirrored
	}
	errs = append(errs, unread...)
	if len(errs) > 0 {
		return &CollectError{Releases: wrongReleases, Operators: len(wrong), Additional: additional, Charts: len(unread),
			Err: errors.Join(errs...)}
	}
	return nil
}

// openCatalog reads and filters a catalog. The catalog is returned with an error, too.
func (r *run) openCatalog(ctx context.Context, op imageset.Operator) (_ *catalog, err error) {
	c := newCatalog(op)
	if err := r.resolveCatalog(ctx, c); err != nil {
		return c, err
	}
	c.account.Digest = c.digest
	c.account.FilterHash = op.FilterHash(c.digest)
	c.source = cmp.Or(c.source, c.name)
	r.report.log.info("reading the catalog " + c.source)
	if err := c.open(ctx, r.o.Render); err != nil {
		return c, err
	}
	if err := c.filter(ctx, r.o.Filter, nil); err != nil {
		return c, err
	}
	c.asIs = c.result.WholeCatalog && c.ready == nil && c.digest != "" && !c.narrowed
	return c, nil
}

// resolveCatalog finds out what a catalog is read from. A tag is resolved once, here.
func (r *run) resolveCatalog(ctx context.Context, c *catalog) error {
	if source, ok := r.o.Replace[c.op.Written]; ok {
		c.name = source
		return nil
	}
	if r.places.input != nil {
		in := &archivedCatalogs{archive: r.places.input, o: r.o, report: r.report}
		return in.resolve(ctx, c)
	}
	ref := c.op.Catalog
	c.name = strings.TrimPrefix(ref.PullName(), "docker://")
	at, err := r.o.Render.Images.OpenUnverified(ctx, c.name)
	if err != nil {
		return err
	}
	c.digest = at.Digest()
	if ref.InRegistry() {
		c.name = ref.Repository() + "@" + c.digest.String()
		if ref.Tag != "" && ref.Digest == "" {
			if c.readFrom, err = imageset.ParseRef(at.PlaceName() + ":" + ref.Tag); err != nil {
				return errors.Join(err, at.Close())
			}
		}
	}
	return at.Close()
}

// addCatalog lists the images that a catalog names.
func (r *run) addCatalog(c *catalog) error {
	c.setDestination(r.o.destination().Catalog(c.op, !c.asIs, "", c.account.FilterHash), "")
	for _, p := range c.result.Problems {
		if p.Code != filter.UnusableImage { // an unusable image only leaves its bundle out
			r.reportProblem(c, p)
		}
		if p.Absent() {
			c.account.Missing = append(c.account.Missing, p.String())
		}
	}
	r.explainFilter(c)
	if err := c.checkResult(); err != nil {
		return err
	}
	var errs []error
	for i := range c.result.Catalog.Bundles {
		b := &c.result.Catalog.Bundles[i]
		kept := catalogBundle{pkg: b.Package, name: b.Name}
		if p, err := b.PackageProperty(); err == nil {
			kept.version = p.Version
		}
		seen := map[string]bool{}
		add := func(image string, kind Kind) {
			switch {
			case image == "" && kind == Related:
				return // an entry without an image names nothing
			case seen[image]:
				return
			}
			seen[image] = true
			ref, err := imageset.ParseRef(image)
			if err == nil {
				err = checkRelated(ref)
			}
			if err != nil {
				kept.bad = errors.Join(kept.bad, fmt.Errorf("bundle %q of package %q: image %q: %w", b.Name, b.Package,
					image, err))
				return
			}
			it := r.found.items.add(ref, r.o.destination().Image(ref), kind, c.op.Platforms)
			it.users = append(it.users, user{c, b.Package, b.Name})
			kept.images = append(kept.images, it)
		}
		if b.Image != "" {
			add(b.Image, Bundle)
		}
		for _, related := range b.RelatedImages {
			add(related.Image, Related)
		}
		if kept.bad != nil && r.o.OnMissing == FailMissing {
			errs = append(errs, kept.bad)
		}
		c.bundles = append(c.bundles, kept)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if len(c.result.Catalog.Bundles) == 0 {
		return errors.New("nothing of the catalog is kept: no related images found")
	}
	return nil
}

// checkRelated refuses references that a catalog must not have.
func checkRelated(ref imageset.Ref) error {
	switch {
	case !ref.InRegistry():
		return errors.New("a catalog cannot name an OCI layout")
	case ref.Tag == "" && ref.Digest == "":
		return errors.New("tag and digest are empty")
	case ref.Host == "":
		return errors.New("it names no registry")
	}
	return nil
}

// explainFilter says what was added for others, and which installed versions lose their way to the head. Without
// --installed that is said of each channel in one line: whether anyone has these versions is not known here.
func (r *run) explainFilter(c *catalog) {
	for _, d := range c.result.Dependencies {
		r.report.log.info(fmt.Sprintf("added bundle %s of package %s, since bundle %s needs %s", d.Bundle, d.Package,
			d.ByBundle, d.Needs))
	}
	for _, l := range c.result.Lost {
		text := fmt.Sprintf("%s of channel %s, package %s, cannot be upgraded to %s", versionsText(l),
			l.Channel, l.Package, l.Head)
		if l.Head == "" {
			text = fmt.Sprintf("%s of channel %s, package %s: the channel is not kept", versionsText(l),
				l.Channel, l.Package)
		}
		if len(r.o.Filter.Installed) > 0 {
			r.report.problem(filter.Warning, c.op.Written, l.Fix, "%s", text)
		} else {
			r.report.log.debug(text)
		}
	}
	if n := len(c.result.Lost); n > 0 && len(r.o.Filter.Installed) == 0 {
		channels := "1 channel"
		if n > 1 {
			channels = strconv.Itoa(n) + " channels"
		}
		r.report.log.info(fmt.Sprintf("%s: clusters with some versions of %s cannot upgrade to the mirrored head: "+
			"\"mirror plan\" lists the versions, --installed PACKAGE=VERSION checks those of a cluster", c.op.Written,
			channels))
	}
}

// versionsText names the first of the versions that are lost.
func versionsText(lost filter.Lost) string {
	all := lost.Versions
	var names []string
	for _, v := range all[:min(len(all), 3)] {
		names = append(names, v.Bundle)
	}
	text := strings.Join(names, ", ")
	if len(all) > 3 {
		text += fmt.Sprintf(" and %d more", len(all)-3)
	}
	return text
}

// reportProblem reports what the filter has found. Errors are in what [catalog.checkResult] returns.
func (r *run) reportProblem(c *catalog, p filter.Problem) {
	if p.Level == filter.Failure {
		r.report.addProblem(Problem{Level: filter.Failure, Object: c.op.Written, Message: p.Sentence(), Hint: p.Fix})
		return
	}
	if p.Absent() { // the account of the catalog has it
		r.report.addProblem(Problem{Level: p.Level, Object: c.op.Written, Message: p.Sentence(), Hint: p.Fix})
		return
	}
	r.report.problem(p.Level, c.op.Written, p.Fix, "%s", p.Sentence())
}

func (r *run) addAdditional(a imageset.AdditionalImage) error {
	to, err := r.o.destination().Additional(a)
	if err != nil {
		return err
	}
	i := r.found.items.add(a.Name, to, Additional, a.Platforms)
	medium, err := onMedium.Additional(a)
	i.nameOnMedium(medium)
	return err
}

// wanted are the catalogs of an image set, open as far as they can be read; failed says of a catalog why it cannot.
type wanted struct {
	catalogs []*catalog
	// absent are those that are not there and that a run goes on without, if there is anything else to mirror.
	absent      []*catalog
	nothingElse bool
}

// failed returns the catalogs that are an error of the whole.
func (w *wanted) failed() []*catalog {
	all := w.catalogs
	if w.nothingElse {
		all = slices.Concat(all, w.absent)
	}
	return slices.DeleteFunc(slices.Clone(all), func(c *catalog) bool { return c.failed == nil })
}

// openCatalogs opens the catalogs of the image set, in its order: a function does so for an entry, and returns a catalog with an
// error, too. others tells whether there is anything else to mirror. Dependencies that another catalog meets are dropped. After the
// end of ctx it opens no more.
func (o *Options) openCatalogs(ctx context.Context, others bool, open func(n int, op imageset.Operator) (*catalog, error)) *wanted {
	w := &wanted{}
	var results []*filter.Result
	for n, op := range o.Set.Operators {
		if ctx.Err() != nil {
			break
		}
		c, err := open(n, op)
		switch {
		case err == nil:
			results = append(results, c.result)
		case isAbsent(err) && o.Replace[op.Written] == "" && !o.Filter.Strict && !o.AllCatalogs:
			c.fail(err)
			w.absent = append(w.absent, c)
			continue
		default:
			c.fail(err)
		}
		w.catalogs = append(w.catalogs, c)
	}
	w.nothingElse = !others && len(w.catalogs) == 0
	filter.DropMetDependencies(results)
	return w
}

// isAbsent tells whether an error is about an image or archive that is not there, as far as its registry says.
func isAbsent(err error) bool {
	var answer *registries.StatusError
	return atmirror.IsAbsent(err) || errors.As(err, &answer) && answer.Status == http.StatusNotFound
}

// absentError is about something that is asked for and not there. It is [fs.ErrNotExist].
type absentError string

func (e absentError) Error() string { return string(e) }

// Is implements the interface of [errors.Is].
func (e absentError) Is(target error) bool { return target == fs.ErrNotExist }

// ErrorClass returns the class of input.
func (e absentError) ErrorClass() fault.Class { return fault.Input }

// CollectError is the error of a run that copied nothing, since not all that is requested can be found out.
type CollectError struct {
	Releases, Operators, Additional, Charts int
	Err                                     error
}

func (e *CollectError) Error() string { return e.Err.Error() }

// Unwrap returns the errors of all entries.
func (e *CollectError) Unwrap() error { return e.Err }
