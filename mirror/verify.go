package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/atmirror"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
	"github.com/operator-bindery/bindery/mirror/stock"
	"github.com/operator-bindery/bindery/render"
)

// VerifyOptions configure [VerifyOptions.Verify].
type VerifyOptions struct {
	// Archive, unless empty, is the directory of an archive that is verified in place of a target: then Set, Policy,
	// DryRun, Releases and Events are all that counts.
	Archive string
	// Releases are how releases are chosen and, in an archive, verified.
	Releases ReleaseOptions
	// Charts are how the charts of an image set are rendered; of an archive nothing is fetched.
	Charts ChartOptions
	// Target is where images were mirrored to, and Remote looks into it.
	Target imageset.Target
	Remote *registries.Client
	// Catalogs are the catalogs at the target. Set adds those of an image set, with its additional images, and what it
	// selects of them must be there; Workspace adds those that were mirrored from it.
	Catalogs  []imageset.Ref
	Set       *imageset.Set
	Workspace *Workspace
	// Render reads the catalogs.
	Render render.Options

	// Policy, unless nil, is asked about each image at the target.
	Policy *images.Client
	// ManifestsOnly does not ask for blobs.
	ManifestsOnly bool
	// DryRun reads manifests and asks for nothing else, for the sizes of what would be verified.
	DryRun bool
	Jobs   int
	// Events, unless nil, receives the progress, from one goroutine at a time.
	Events func(Event)
}

// Check returns an error that names the fields, of the class [fault.Usage], for options that an archive cannot have.
func (o *VerifyOptions) Check() error {
	for _, f := range []struct {
		field string
		given bool
	}{{"Workspace", o.Workspace != nil}, {"Catalogs", len(o.Catalogs) > 0}, {"ManifestsOnly", o.ManifestsOnly}} {
		if o.Archive != "" && f.given {
			return fault.Fieldf("{" + f.field + "} is for a registry")
		}
	}
	return o.Target.Check()
}

// Verification is what [VerifyOptions.Verify] has found.
type Verification struct {
	Catalogs []verifiedCatalog `json:"catalogs"`
	Releases []verifiedRelease `json:"releases,omitempty"`
	Charts   []verifiedChart   `json:"charts,omitempty"`
	stock.Summary
	// leftOut is how many manifests and blobs an archive leaves out, since the other side is to have them.
	LeftOut int `json:"leftOut,omitempty"`
	// Faults are the images that lack something, sorted.
	Faults []imageFault `json:"faults"`
	// Repositories are the sizes of the blobs that were looked for, or would be in a dry run.
	Repositories []RepositoryBytes `json:"repositories,omitempty"`
	DryRun       bool              `json:"dryRun,omitempty"`
}

// verifiedCatalog is a catalog at the target.
type verifiedCatalog struct {
	Name     string        `json:"name"`
	Digest   digest.Digest `json:"digest,omitempty"`
	Packages int           `json:"packages"`
	Bundles  int           `json:"bundles"`
	// Missing is what the image set asks for and the catalog does not have, as sentences, and Unjudged why that cannot be
	// found out.
	Missing  []string `json:"missing,omitempty"`
	Unjudged string   `json:"unjudged,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// verifiedRelease is a release at the target.
type verifiedRelease struct {
	Name       string        `json:"name"`
	Digest     digest.Digest `json:"digest,omitempty"`
	Components int           `json:"components"`
	// LeftOut tells that an archive leaves it to the other side to have the release, whose components are not judged.
	LeftOut bool   `json:"leftOut,omitempty"`
	Error   string `json:"error,omitempty"`
}

// verifiedChart is a chart with the images that it names.
type verifiedChart struct {
	Name   string `json:"name"`
	Images int    `json:"images"`
	Error  string `json:"error,omitempty"`
}

// good tells whether the catalog is there with all that is asked for.
func (c verifiedCatalog) good() bool { return c.Error == "" && len(c.Missing) == 0 }

// imageFault is an image that is not as it should be.
type imageFault struct {
	Image string `json:"image"`
	// Source is how catalogs name it, and NeededBy what does.
	Source   string   `json:"source,omitempty"`
	NeededBy []string `json:"neededBy,omitempty"`
	Problems []string `json:"problems"`
}

// Good tells whether nothing is wrong.
func (v *Verification) Good() bool {
	return len(v.Faults) == 0 && v.WrongCatalogs() == 0 && v.WrongReleases() == 0 && v.WrongCharts() == 0
}

// WrongReleases counts the releases that cannot be read.
func (v *Verification) WrongReleases() int {
	n := 0
	for _, r := range v.Releases {
		if r.Error != "" {
			n++
		}
	}
	return n
}

// WrongCharts counts the charts whose images are not known.
func (v *Verification) WrongCharts() int {
	n := 0
	for _, c := range v.Charts {
		if c.Error != "" {
			n++
		}
	}
	return n
}

// WrongCatalogs counts the catalogs that are not as they should be.
func (v *Verification) WrongCatalogs() int {
	n := 0
	for _, c := range v.Catalogs {
		if !c.good() {
			n++
		}
	}
	return n
}

// expected is an image that should be at the target.
type expected struct {
	wanted stock.Wanted
	source string
	by     []string
}

// targetCheck is one call of [VerifyOptions.Verify].
type targetCheck struct {
	VerifyOptions
	selected map[string]imageset.Operator // what the image set selects, by the place of the catalog at the target
	expected map[string]*expected         // the images that should be there, by their names
}

var errAbsent = errors.New("the target has no such catalog")

// Verify looks whether the catalogs at a target load, and whether every image that they name is there with all that it
// consists of; or whether an archive is whole. Nothing is written. The error is about what cannot be asked; what is
// wrong is in the result.
func (o VerifyOptions) Verify(ctx context.Context) (*Verification, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Archive != "" {
		return verifyArchive(ctx, o)
	}
	c := &targetCheck{VerifyOptions: o, selected: map[string]imageset.Operator{}, expected: map[string]*expected{}}
	v := &Verification{Catalogs: []verifiedCatalog{}, Faults: []imageFault{}, DryRun: c.DryRun}
	catalogs, err := c.listExpected(v)
	if err != nil {
		return nil, err
	}
	known, err := c.listReleases(ctx)
	if err != nil {
		return nil, err
	}
	if len(catalogs)+len(known)+len(c.expected)+len(v.Charts) == 0 {
		return nil, ErrNoCatalog
	}
	if err := c.Remote.Ping(ctx, c.Target.String()); err != nil {
		return nil, err // the error names the registry
	}
	for _, ref := range catalogs {
		one, err := c.checkCatalog(ctx, ref)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, errAbsent) {
			// Registries answer in the same way to those whom they do not know.
			if err := c.Remote.Ping(ctx, c.Target.String()); err != nil {
				return nil, err
			}
		}
		if err != nil {
			one.Error = err.Error()
		}
		v.Catalogs = append(v.Catalogs, one)
	}
	for _, one := range known {
		r, err := c.checkRelease(ctx, one)
		if err != nil {
			return nil, err
		}
		v.Releases = append(v.Releases, r)
	}
	progress := progress{events: c.Events}
	progress.add(func(e *Event) { e.AllImages = len(c.expected) })
	faults := map[string][]string{}
	at := func(name string) (store.Reader, error) { return c.Remote.Repository(name) }
	v.Summary, err = stock.Check(ctx, at, wantedOf(c.expected), stock.CheckOptions{ManifestsOnly: c.ManifestsOnly,
		Sizes: c.DryRun, Jobs: c.Jobs, Done: func(f stock.Finding) {
			progress.add(func(e *Event) { e.Images++ })
			for _, p := range f.Problems {
				name := nameOf(f.Wanted)
				faults[name] = append(faults[name], p.Error())
			}
		}})
	if err != nil {
		return nil, err
	}
	v.Repositories = ByRepository(v.Bytes)
	if !c.DryRun {
		err = c.askPolicy(ctx, faults)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		e := c.expected[name]
		v.Faults = append(v.Faults, imageFault{Image: name, Source: e.source, NeededBy: e.by, Problems: faults[name]})
	}
	return v, nil
}

// wantedOf yields the images in the order of their names.
func wantedOf(all map[string]*expected) func(func(stock.Wanted) bool) {
	return func(yield func(stock.Wanted) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !yield(all[name].wanted) {
				return
			}
		}
	}
}

// listExpected lists the catalogs, and the images that no catalog names.
func (o *targetCheck) listExpected(v *Verification) ([]imageset.Ref, error) {
	catalogs := slices.Clone(o.Catalogs)
	rec, err := workdir.ReadRecord(o.Workspace.files(), o.Target)
	if err != nil {
		return nil, err
	}
	o.Target.MaxNestedPaths = cmp.Or(o.Target.MaxNestedPaths, rec.MaxNestedPaths)
	for _, c := range rec.Catalogs {
		catalogs = append(catalogs, c.Destination)
	}
	for _, i := range rec.Images {
		o.expect(i.Destination, i.Source, nil, "additional image")
	}
	o.expectCharts(rec, v)
	if o.Set != nil {
		for _, op := range o.Set.Operators {
			at, err := publishedAt(o.Target, op, rec)
			if err != nil {
				return nil, fmt.Errorf("catalog %s: %w", op.Written, err)
			}
			catalogs = append(catalogs, at)
			o.selected[at.String()] = op
		}
		for _, a := range o.Set.AdditionalImages {
			to, err := o.Target.Additional(a)
			if err != nil {
				return nil, err
			}
			if _, _, blocked := o.Set.Blocked(a.Name, "", to, o.Target); !blocked {
				o.expect(to, a.Name, a.Platforms, "additional image")
			}
		}
	}
	slices.SortFunc(catalogs, func(a, b imageset.Ref) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(catalogs), nil
}

// nameOf is the full name of an image.
func nameOf(w stock.Wanted) string {
	if digest.Digest(w.Name).Validate() == nil {
		return w.Repository + "@" + w.Name
	}
	return w.Repository + ":" + w.Name
}

// expect adds an image that should be there, and what needs it.
func (o *targetCheck) expect(to, from imageset.Ref, platforms []v1.Platform, by string) {
	w := stock.Wanted{Repository: to.Repository(), Name: atmirror.PullName(to), Digest: from.Digest, Platforms: platforms}
	if from.Digest != "" {
		w.Name = from.Digest.String() // the tag may be that of another image of the repository
	}
	e := o.expected[nameOf(w)]
	if e == nil {
		e = &expected{wanted: w, source: from.Name()}
		o.expected[nameOf(w)] = e
	}
	if len(e.by) < 5 && !slices.Contains(e.by, by) {
		e.by = append(e.by, by)
	}
}

// checkCatalog reads a catalog at the target, and adds the images that it names.
func (o *targetCheck) checkCatalog(ctx context.Context, ref imageset.Ref) (_ verifiedCatalog, err error) {
	out := verifiedCatalog{Name: ref.Name()}
	at, err := o.Remote.Repository(ref.Repository())
	if err != nil {
		return out, err
	}
	name, top, err := atmirror.Head(ctx, at, ref)
	if errors.Is(err, fs.ErrNotExist) {
		return out, errAbsent
	}
	if err != nil {
		return out, err
	}
	out.Digest = top.Digest
	w := stock.Wanted{Repository: ref.Repository(), Name: name}
	o.expected[nameOf(w)] = &expected{wanted: w}
	c := &catalog{selects: imageset.Operator{Full: true}}
	c.index, err = indeximage.Open(ctx, ref.Repository()+"@"+top.Digest.String(), indeximage.Options{Render: o.Render})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if op, ok := o.selected[ref.String()]; ok {
		if err := c.compare(ctx, op, at, top.Digest, &out); err != nil {
			return out, err
		}
	}
	if err := c.filter(ctx, filter.Options{}, nil); err != nil {
		return out, err
	}
	if err := c.result.Catalog.ValidateAnyImages(); err != nil {
		return out, err
	}
	out.Packages, out.Bundles = len(c.result.Catalog.Packages), len(c.result.Catalog.Bundles)
	var errs []error
	for i := range c.result.Catalog.Bundles {
		b := &c.result.Catalog.Bundles[i]
		for image := range atmirror.ImagesOf(b) {
			from, err := imageset.ParseRef(image)
			if err != nil {
				errs = append(errs, fmt.Errorf("bundle %s: %w", b.Name, err))
				continue
			}
			o.expect(o.Target.Image(from), from, nil, b.Name)
		}
	}
	return out, errors.Join(errs...)
}

// compare compares a catalog at the target with what an image set selects of its source. A rebuilt catalog says what
// was selected, and what was not there.
func (c *catalog) compare(ctx context.Context, op imageset.Operator, at store.Reader, top digest.Digest,
	out *verifiedCatalog) error {
	text, kind, err := at.Manifest(ctx, top.String())
	if err != nil {
		return err
	}
	made, err := notesOf(ctx, at, text, kind)
	if err != nil {
		return err
	}
	selected := made[filterAnnotation]
	source := digest.Digest(made[v1.AnnotationBaseImageDigest])
	if selected == op.FilterHash(source) || selected == op.FilterHash("") { // the source was no image
		if lacks := made[lacksAnnotation]; lacks != "" {
			out.Missing = strings.Split(lacks, "\n")
		}
		return nil
	}
	asked := &catalog{selects: op, index: c.index}
	var wrong *filter.Error
	if err := asked.filter(ctx, filter.Options{AutoDefaultChannel: true}, nil); err != nil && !errors.As(err, &wrong) {
		return err
	} else if err == nil {
		for _, p := range asked.result.Problems {
			if p.Absent() {
				out.Missing = append(out.Missing, p.String())
			}
		}
	}
	switch {
	case selected != "":
		out.Missing = append(out.Missing, "it was published for another selection than the image set has, so what it lacks "+
			"is not known: \"mirror run\" with this image set publishes it")
	case !op.WholeCatalog():
		out.Unjudged = "whether it has all versions that the image set selects is not known: the catalog does not say what " +
			"was selected of its source"
	}
	return nil
}

// askPolicy asks the policy about each image, of an index that it does not accept as a whole about each entry that is
// there.
func (o *targetCheck) askPolicy(ctx context.Context, faults map[string][]string) error {
	if o.Policy == nil {
		return nil
	}
	var ask []string
	for _, name := range slices.Sorted(maps.Keys(o.expected)) {
		if len(faults[name]) == 0 {
			ask = append(ask, name)
		}
	}
	refused := guard.TryEach(ctx, o.Jobs, 0, ask, func(ctx context.Context, _ int, name string) error {
		return admitted(ctx, o.Policy, "docker://"+name)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for n, name := range ask {
		if refused[n] != nil {
			faults[name] = append(faults[name], refused[n].Error())
		}
	}
	return nil
}

// admitted returns the reason why the policy does not accept an image.
func admitted(ctx context.Context, policy *images.Client, name string) error {
	image, err := policy.OpenPart(ctx, name, nil)
	if err != nil {
		return err
	}
	return image.Close()
}
