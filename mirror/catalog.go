package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/resources"
)

// catalog is one entry of the image set's operators.
type catalog struct {
	op imageset.Operator
	// selects is what the filter selects of what is read: op, or all of a catalog that was filtered before.
	selects imageset.Operator
	// ready, unless nil, is the finished catalog on a medium.
	ready *onMediumCatalog
	// carrier, unless nil, is the repository on a medium that the catalog is in, with what is attached to it.
	carrier store.Reader
	// name is what the catalog is read from: with the digest if it is in a registry. digest is that of its image.
	name   string
	digest digest.Digest
	// readFrom is where a catalog with a tag is read in a registry, which may be a mirror of what it is named by.
	readFrom imageset.Ref
	// source is how messages name it.
	source string
	// onMedium is PATH:TAG on the medium that the catalog is read from, and failed why it cannot be read.
	onMedium string
	failed   error
	// index is the catalog, filtered. It is open until the catalog is published.
	index  *indeximage.Index
	result *filter.Result
	// asIs tells that the image is copied as it is, not rebuilt. narrowed tells that what is read is not all of the source.
	asIs, narrowed bool
	// onlyAsIs is why it cannot be rebuilt in its place.
	onlyAsIs error
	bundles  []catalogBundle
	// tagKept tells that its tag, that of its digest, is the list of what is attached to it, which stays.
	tagKept bool

	// dest is where the catalog goes. Without a registry the tag of one that is named by digest is a guess until it is
	// rebuilt.
	dest imageset.Ref
	// template, unless nil, is what its CatalogSource is made from.
	template *resources.Template
	account  CatalogAccount
}

// goesTo sets where the catalog goes.
func (c *catalog) goesTo(dest imageset.Ref, d digest.Digest) {
	c.dest, c.account.Destination, c.account.DestinationDigest = dest, dest.String(), d
}

// catalogBundle is a bundle that the filter keeps, with the images that it names.
type catalogBundle struct {
	pkg, name, version string
	images             []*item
	// bad is why the bundle cannot be mirrored, whatever the registries have.
	bad error
}

func (c *catalog) close() error {
	if c.index == nil {
		return nil
	}
	index := c.index
	c.index = nil
	return index.Close()
}

// openCatalog reads and filters a catalog. With a reader the catalog is that of a medium.
func (r *run) openCatalog(ctx context.Context, op imageset.Operator) (_ *catalog, err error) {
	c := &catalog{op: op, selects: op}
	c.account = CatalogAccount{Source: op.Catalog.Name(), Packages: map[string]CatalogedPackage{}}
	if err := r.resolveCatalog(ctx, c); err != nil {
		return c, err
	}
	c.account.Digest = c.digest
	c.account.FilterHash = op.FilterHash(c.digest)
	if c.source == "" {
		c.source = c.name
	}
	r.log.info("reading the catalog " + c.source)
	c.index, err = indeximage.Open(ctx, c.name, indeximage.Options{
		Change: change.Options{Jobs: r.o.Render.Jobs, Reuse: true, Warn: r.o.Render.Warn},
		Render: r.o.Render,
	})
	if err != nil {
		return c, err
	}
	if err := c.apply(ctx, r.o.Filter, nil); err != nil {
		return c, err
	}
	c.asIs = c.result.WholeCatalog && c.ready == nil && c.digest != "" && !c.narrowed
	return c, nil
}

// apply filters the catalog, and leaves bundles out of it.
func (c *catalog) apply(ctx context.Context, o filter.Options, without []edit.Name) error {
	e := change.Edit{Whole: []string{}, Scope: filter.Scope(c.selects, o)}
	e.Apply = func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
		var err error
		c.result, err = filter.Apply(s.Catalog, c.selects, o)
		if err != nil {
			return nil, nil, err
		}
		if len(without) > 0 {
			c.result, err = c.result.Without(without, "images that it names are not available")
			if err != nil {
				return nil, nil, err
			}
		}
		return c.result.Catalog, c.result.Account, nil
	}
	return c.index.Apply(ctx, e, change.Directory)
}

// resolveCatalog finds out what a catalog is read from. A tag is resolved once, here.
func (r *run) resolveCatalog(ctx context.Context, c *catalog) error {
	if source, ok := r.o.Replace[c.op.Written]; ok {
		c.name = source
		return nil
	}
	if r.reader != nil {
		return r.catalogOnMedium(ctx, c)
	}
	ref := c.op.Catalog
	c.name = strings.TrimPrefix(ref.PullName(), "docker://")
	at, err := r.o.Render.Images.OpenUnverified(ctx, c.name)
	if err != nil {
		return err
	}
	c.digest = at.Top.Digest
	if ref.InRegistry() {
		c.name = ref.Repository() + "@" + c.digest.String()
		if ref.Tag != "" && ref.Digest == "" {
			if c.readFrom, err = imageset.ParseRef(at.Name() + ":" + ref.Tag); err != nil {
				return errors.Join(err, at.Close())
			}
		}
	}
	return at.Close()
}

// collect reads the catalogs and lists the images of the set. All that is wrong is reported at once. Catalogs that are
// not there, or have nothing of what is named, are in r.absent, if there is anything else to mirror.
func (r *run) collect(ctx context.Context) error {
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
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	bad := map[*catalog]bool{}
	wrong := func(c *catalog, err error) {
		bad[c] = true
		c.account.Error, c.failed = err.Error(), err
		errs = append(errs, fmt.Errorf("catalog %s: %w", c.op.Catalog.Name(), err))
	}
	var results []*filter.Result
	for n, op := range r.o.Set.Operators {
		c, err := r.openCatalog(ctx, op)
		c.template = templates[n]
		if err == nil {
			err = c.nothing()
		}
		switch absent := NotThere(err) && r.o.Replace[op.Written] == "" &&
			!r.o.Filter.Strict && !r.o.AllCatalogs; {
		case ctx.Err() != nil:
			r.catalogs = append(r.catalogs, c)
			return context.Cause(ctx)
		case absent:
			r.addAbsent(c, err)
			continue
		case err != nil:
			wrong(c, err)
		default:
			results = append(results, c.result)
		}
		r.catalogs = append(r.catalogs, c)
	}
	for _, c := range r.absent {
		if len(r.catalogs)+len(r.o.Set.AdditionalImages) == 0 {
			wrong(c, c.failed)
			continue
		}
		r.unpublished(c, c.failed)
	}
	filter.Settle(results)
	for n, c := range r.catalogs {
		if bad[c] {
			continue
		}
		if err := r.addCatalog(n); err != nil {
			wrong(c, err)
		}
	}
	additional := 0
	for _, a := range r.o.Set.AdditionalImages {
		if err := r.addAdditional(a); err != nil {
			additional++
			errs = append(errs, fmt.Errorf("additional image %s: %w", a.Name.Name(), err))
		}
	}
	if len(errs) > 0 {
		return &CollectError{Operators: len(bad), Additional: additional, Err: errors.Join(errs...)}
	}
	return nil
}

// collectAll is collect, and a catalog that is not there is an error.
func (r *run) collectAll(ctx context.Context) error {
	err := r.collect(ctx)
	var errs []error
	for _, c := range r.absent {
		errs = append(errs, fmt.Errorf("catalog %s: %w", c.op.Catalog.Name(), c.failed))
	}
	if err != nil || len(errs) == 0 {
		return err
	}
	return &CollectError{Operators: len(errs), Err: errors.Join(errs...)}
}

// addAbsent notes a catalog that is not there.
func (r *run) addAbsent(c *catalog, err error) {
	r.absent = append(r.absent, c)
	c.account.Error, c.failed = err.Error(), err
	c.goesTo(r.place().Catalog(c.op, !c.op.WholeCatalog(), "", ""), "")
}

// nothing returns an error if the catalog has nothing of what is named.
func (c *catalog) nothing() error {
	if len(c.result.Catalog.Bundles) > 0 {
		return nil
	}
	var texts []string
	for _, p := range c.result.Problems {
		if p.Absent() {
			texts = append(texts, p.String())
		}
	}
	if texts == nil {
		return nil // it is refused for another reason
	}
	return absentError("nothing of the catalog is kept: no related images found: " + strings.Join(texts, "; "))
}

// NotThere tells whether an error is about an image or archive that is not there, as far as its registry says.
func NotThere(err error) bool {
	var answer *registries.StatusError
	return absent(err) || errors.As(err, &answer) && answer.Status == http.StatusNotFound
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
	Operators, Additional int
	Err                   error
}

func (e *CollectError) Error() string { return e.Err.Error() }

// Unwrap returns the errors of all entries.
func (e *CollectError) Unwrap() error { return e.Err }

// addCatalog lists the images that a catalog names.
func (r *run) addCatalog(n int) error {
	c := r.catalogs[n]
	c.goesTo(r.place().Catalog(c.op, !c.asIs, "", c.account.FilterHash), "")
	for _, p := range c.result.Problems {
		if p.Code != filter.UnusableImage { // it is a reason to leave the bundle out
			r.filterProblem(c, p)
		}
		if p.Absent() {
			c.account.Missing = append(c.account.Missing, p.String())
		}
	}
	r.explain(c)
	if err := c.refused(); err != nil {
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
				err = r.checkRelated(ref)
			}
			if err != nil {
				kept.bad = errors.Join(kept.bad, fmt.Errorf("bundle %q of package %q: image %q: %w", b.Name, b.Package,
					image, err))
				return
			}
			it := r.items.add(ref, r.place().Image(ref), kind, c.op.Platforms)
			it.onMedium = onMedium.Image(ref)
			it.users = append(it.users, user{n, b.Package, b.Name})
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
func (r *run) checkRelated(ref imageset.Ref) error {
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

// explain says what was added for others, and which installed versions lose their way to the head. Without --installed
// that is said of each channel in one line: whether anyone has these versions is not known here.
func (r *run) explain(c *catalog) {
	for _, d := range c.result.Dependencies {
		r.log.info(fmt.Sprintf("added bundle %s of package %s, since bundle %s needs %s", d.Bundle, d.Package,
			d.ByBundle, d.Needs))
	}
	for _, l := range c.result.Lost {
		text := fmt.Sprintf("%s of channel %s, package %s, cannot be upgraded to %s", versionsText(l.Versions),
			l.Channel, l.Package, l.Head)
		if l.Head == "" {
			text = fmt.Sprintf("%s of channel %s, package %s: the channel is not kept", versionsText(l.Versions),
				l.Channel, l.Package)
		}
		if len(r.o.Filter.Installed) > 0 {
			r.problem(Warning, c.op.Written, l.Fix, "%s", text)
		} else {
			r.log.debug(text)
		}
	}
	if n := len(c.result.Lost); n > 0 && len(r.o.Filter.Installed) == 0 {
		channels := "1 channel"
		if n > 1 {
			channels = itoa(n) + " channels"
		}
		r.log.info(fmt.Sprintf("%s: clusters with some versions of %s cannot upgrade to the mirrored head: "+
			"\"mirror plan\" lists the versions, --installed PACKAGE=VERSION checks those of a cluster", c.op.Written,
			channels))
	}
}

// versionsText names the first of some versions.
func versionsText(all []filter.LostVersion) string {
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

// filterProblem passes on what the filter has found. Errors are in what [catalog.refused] returns.
func (r *run) filterProblem(c *catalog, p filter.Problem) {
	if p.Level == filter.Failure {
		r.note(Problem{Level: Fault, Object: c.op.Written, Message: p.Sentence(), Hint: p.Fix})
		return
	}
	if p.Absent() { // it is in the account of the catalog
		r.note(Problem{Level: Level(p.Level), Object: c.op.Written, Message: p.Sentence(), Hint: p.Fix})
		return
	}
	r.problem(Level(p.Level), c.op.Written, p.Fix, "%s", p.Sentence())
}

// refused returns an error if what the filter gives cannot be published. Bundles with images that cannot be mirrored
// are left out, or are an error of their own.
func (c *catalog) refused() error {
	var errs []error
	for _, p := range c.result.Problems {
		if p.Level == filter.Failure && p.Code != filter.UnusableImage {
			errs = append(errs, errors.New(p.String()))
		}
	}
	return errors.Join(errs...)
}

// addAdditional lists an additional image.
func (r *run) addAdditional(a imageset.AdditionalImage) error {
	to, err := r.place().Additional(a)
	if err != nil {
		return err
	}
	i := r.items.add(a.Name, to, Additional, a.Platforms)
	i.onMedium, err = onMedium.Additional(a)
	return err
}

// place is where images go: the target, or the medium.
func (r *run) place() imageset.Target {
	if r.o.Mode == ToDisk {
		return onMedium
	}
	return r.o.Target
}

// platformsOf returns the platforms of a catalog's image: those of its source that are requested.
func platformsOf(of, wanted []v1.Platform) []v1.Platform {
	if len(wanted) == 0 {
		return of
	}
	var out []v1.Platform
	for _, p := range of {
		for _, w := range wanted {
			if p.OS == w.OS && p.Architecture == w.Architecture {
				out = append(out, p)
				break
			}
		}
	}
	return out
}
