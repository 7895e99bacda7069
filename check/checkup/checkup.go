// Package checkup checks what a reference names, a catalog or a bundle, by the rules of packages rules and
// bundlecheck.
// A part of a repository of operators is checked by those of package submission, too. It reads directories and images and hands both packages what they need.
package checkup

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/check/submission"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/olmv1/manifests"
	"github.com/operator-bindery/bindery/render"
)

// Options say what is checked and how.
type Options struct {
	rules.Options
	// Settings are those of the cluster for OLM v1, ReleaseSupport its gate BundleReleaseSupport.
	Settings manifests.Settings
	// APIs are those of its Kubernetes; nil: of the current version.
	APIs           *bundlecheck.APIs
	ReleaseSupport bool
	// OCP is the OpenShift version of a catalog; empty: that of its base image.
	OCP string
	// Released names the released catalog for the pruning check; empty: none.
	Released string
	// Snapshot is the release snapshot that a bundle's images are compared with; nil: none.
	Snapshot *Snapshot
	// Upgrades judges the upgrades of a catalog, From the one from the bundle of a reference to the bundle that is
	// checked; empty: none.
	Upgrades bool
	From     string
	// AllBundles checks all bundles of operators by the rules on bundles; else only the highest version of each. Request is
	// a change that is checked; nil: all that there is. Both are for repositories of operators alone.
	AllBundles bool
	Request    *submission.Request
	// Pull reads what only registries have: the images of bundles, the layers of the image, its base.
	Pull bool
	// Render has the client and the limits, Jobs how many bundles are checked at once.
	Render render.Options
	Jobs   int
	// Progress is called after each bundle that was pulled, with how many there are, and without --pull after each whose
	// manifests the catalog has, with 0; never concurrently.
	Progress func(done, all int)
	// Compared is called after some of the upgrades that are judged, with how many there are.
	Compared func(done, all int)
}

// ErrKind is the error for what is neither a catalog nor a bundle.
var ErrKind = errors.New("neither a catalog nor a bundle")

// Rules returns all rules, each once, sorted by identifier.
func Rules() []rules.Rule {
	byID := map[string]rules.Rule{}
	for _, r := range slices.Concat(rules.CatalogRules(), bundlecheck.BundleRules(), submission.Rules()) {
		byID[r.ID] = r
	}
	out := make([]rules.Rule, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		out = append(out, byID[id])
	}
	return out
}

// checkup is one check.
type checkup struct {
	Options
	run      *rules.Run
	upgrades *upgrades // nil: none
	// inRepository is set for a catalog whose repository is checked by the rules of the pipelines.
	inRepository bool
}

// Check checks what a reference names: a directory with a catalog or a bundle, or an image of one. What is wrong with
// it is in the report; the error is about reading it. Errors of the options are those of [rules.NewRun].
func Check(ctx context.Context, ref string, o Options) (_ *rules.Report, err error) {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if o.APIs == nil {
		if o.APIs, err = bundlecheck.NewAPIs(""); err != nil {
			return nil, err
		}
	}
	o.Options.KubeVersion = o.APIs.Version()
	run, err := rules.NewRun(o.Options, Rules())
	if err != nil {
		return nil, err
	}
	if o.Render.Images == nil {
		if o.Render.Images, err = images.NewClient(images.ClientOptions{Policy: policy.Read,
			Transports: library.Transports(images.BuiltIn())}); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, o.Render.Images.Close()) }()
	}
	c := &checkup{Options: o, run: run}
	if place, ok := o.submission(ref); ok {
		return c.submitted(ctx, ref, place)
	}
	if _, err := submission.Find(ref); errors.Is(err, submission.ErrNoBundle) {
		return nil, err
	}
	if o.Request != nil || o.AllBundles {
		return nil, fmt.Errorf("%q: %w", ref, ErrSubmission)
	}
	kind, err := render.Classify(ref)
	if err != nil {
		return nil, err
	}
	scope := rules.OnCatalog
	if kind == render.CatalogDirectory && c.isBundle(ctx, ref) {
		kind = render.BundleDirectory
	}
	switch kind {
	case render.CatalogDirectory:
		err = c.catalogDirectory(ctx, ref)
	case render.BundleDirectory:
		scope, err = rules.OnBundle, c.bundleDirectory(ctx, ref)
	case render.Image:
		scope, err = c.image(ctx, ref)
	default:
		err = fmt.Errorf("%q is a %s, %w", ref, kind, ErrKind)
	}
	if err == nil {
		err = o.checkRules(run, scope, kind == render.Image)
	}
	if err != nil {
		return nil, err
	}
	report := run.Report(ref, scope)
	if len(report.Rules) == 0 && len(report.NotRun) > 0 && len(report.Findings) == 0 {
		return nil, fmt.Errorf("%w: none of the rules can be checked, the first one, %s, as %s", ErrNoRules,
			report.NotRun[0].Rule, report.NotRun[0].Reason)
	}
	return report, nil
}

// ErrNoRules is the error for profiles without a rule that could be checked: nothing can be said to have passed.
var ErrNoRules = errors.New("there is nothing to check")

// checkRules refuses a profile that has no rule for what is checked, and a run of which no rule is left.
func (o *Options) checkRules(run *rules.Run, scope rules.Scope, image bool) error {
	left := false
	for _, p := range o.Profiles {
		var here bool
		var elsewhere []rules.Scope
		for _, r := range Rules() {
			switch {
			case !r.In(p), strings.HasPrefix(r.ID, "waiver."): // those are about the waivers
			case r.On(scope) || image && r.On(rules.OnImage):
				here = true
				left = left || run.Wants(r)
			default:
				elsewhere = append(elsewhere, r.Scopes...)
			}
		}
		if !here {
			slices.Sort(elsewhere)
			return fmt.Errorf("%w: the profile %s has no rule for a %s, it is for a %s", ErrNoRules, p, scope,
				strings.Join(scopeNames(slices.Compact(elsewhere)), ", or for a "))
		}
	}
	if !left {
		return fmt.Errorf("%w: every rule for a %s is left out by --skip", ErrNoRules, scope)
	}
	return nil
}

// scopeNames are scopes in words: images are those of catalogs and bundles.
func scopeNames(scopes []rules.Scope) []string {
	var names []string
	for _, s := range scopes {
		if s == rules.OnImage {
			names = append(names, "catalog or bundle in an image")
		} else {
			names = append(names, string(s))
		}
	}
	return names
}

func (c *checkup) catalogDirectory(ctx context.Context, dir string) error {
	root, err := declcfg.OpenDir(dir)
	if err != nil {
		return err
	}
	return c.catalog(ctx, root, nil, nil)
}

// isBundle tells whether a directory that has no annotations of a bundle is one anyway: it has the directory
// manifests, and none of its files has a blob with a schema.
func (c *checkup) isBundle(ctx context.Context, dir string) bool {
	if info, err := os.Stat(filepath.Join(dir, "manifests")); err != nil || !info.IsDir() {
		return false
	}
	root, err := declcfg.OpenDir(dir)
	if err != nil {
		return false
	}
	x, err := declcfg.NewIndex(ctx, root, declcfg.LoadOptions{Jobs: c.Jobs, Schemaless: true})
	return err == nil && len(x.Documents()) > 0 &&
		!slices.ContainsFunc(x.Documents(), func(d declcfg.IndexedDocument) bool { return d.Schema != "" })
}

// counted calls Progress after each bundle.
func (c *checkup) counted(find func(context.Context, *rules.Run, *declcfg.Bundle) error) func(context.Context, *rules.Run,
	*declcfg.Bundle) error {
	if c.Progress == nil {
		return find
	}
	var mu sync.Mutex
	done := 0
	return func(ctx context.Context, r *rules.Run, b *declcfg.Bundle) error {
		err := find(ctx, r, b)
		mu.Lock()
		defer mu.Unlock()
		done++
		c.Progress(done, 0)
		return err
	}
}

// catalog checks a catalog. unread is why its files cannot be read.
func (c *checkup) catalog(ctx context.Context, fsys fs.FS, img *rules.Image, unread []rules.Finding) (err error) {
	if c.From != "" {
		return fmt.Errorf("%w: it is a catalog, and only a bundle is compared with %q", ErrFrom, c.From)
	}
	if slices.ContainsFunc(c.Profiles, isPipeline) && !c.inRepository {
		if err := submission.CheckCatalog(ctx, c.run, fsys); err != nil {
			return err
		}
	}
	s := rules.CatalogSubject{FS: fsys, Load: declcfg.LoadOptions{Jobs: c.Jobs}, Image: img, OCP: c.OCP, Unread: unread,
		SingleOwn: slices.Contains(c.Settings.Gates, manifests.SingleOwnNamespace), Release: c.ReleaseSupport}
	var keep func(*declcfg.Bundle, *manifests.Bundle) error
	if c.Upgrades && c.run.Wants(rules.RuleUpgrade) {
		if c.upgrades, err = newUpgrades(c); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.upgrades.Close()) }()
		c.upgrades.subject(&s)
		keep = func(b *declcfg.Bundle, m *manifests.Bundle) error { return c.upgrades.bundle(b.Package, b.Name, m) }
	}
	if !c.Pull { // else the images decide
		s.Manifests = c.counted(bundlecheck.CatalogManifests(c.Settings, c.APIs, keep))
	}
	if c.Released != "" {
		released, err := c.released(ctx)
		if err != nil {
			return err
		}
		s.Released = released
	}
	related := c.relatedImages(&s)
	if err := c.run.CheckCatalog(ctx, s); err != nil {
		return err
	}
	if err := related.check(ctx); err != nil {
		return err
	}
	if err := c.pull(ctx); err != nil || c.upgrades == nil {
		return err
	}
	return c.upgrades.check(ctx)
}

// released reads the channels of the released catalog.
func (c *checkup) released(ctx context.Context) (*declcfg.Catalog, error) {
	o := c.Render
	o.Skeleton = true
	blobs, err := o.Render(ctx, c.Released)
	if err != nil {
		return nil, err
	}
	out := &declcfg.Catalog{}
	for b, err := range blobs {
		if err != nil {
			return nil, fmt.Errorf("released catalog: %w", err)
		}
		if ch, ok := b.(*declcfg.Channel); ok {
			out.Channels = append(out.Channels, *ch)
		}
	}
	return out, nil
}

func (c *checkup) bundleDirectory(ctx context.Context, dir string) error {
	root, err := bundlefs.OpenDir(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	fsys := root.FS()
	b, err := bundle.Read(ctx, fsys, bundle.ReadOptions{})
	if !bundlecheck.IsRead(b, err) {
		return err
	}
	return c.bundle(ctx, fsys, b, nil)
}

// bundle checks the bundle in fsys.
func (c *checkup) bundle(ctx context.Context, fsys fs.FS, b *bundle.Bundle, img *rules.Image) error {
	if c.Upgrades {
		return fmt.Errorf("%w: it is a bundle, and only a catalog has upgrades", ErrFrom)
	}
	if err := c.run.CheckImage(ctx, img); err != nil {
		return err
	}
	if slices.ContainsFunc(c.Profiles, isPipeline) {
		c.run.OpenShift(b)
		if err := submission.CheckBundle(ctx, c.run, fsys, b); err != nil {
			return err
		}
	}
	s := bundlecheck.Subject{FS: fsys, Bundle: b, Image: img, Settings: c.Settings, APIs: c.APIs}
	if err := bundlecheck.CheckRules(ctx, c.run, s); err != nil {
		return err
	}
	if err := c.from(ctx, s); err != nil {
		return err
	}
	return c.snapshot(ctx, s)
}

// image checks what an image holds.
func (c *checkup) image(ctx context.Context, ref string) (scope rules.Scope, err error) {
	if err := render.CheckName(ref); err != nil {
		return "", err
	}
	client := c.Render.Images
	img, err := client.Image(ctx, ref, v1.Platform{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	facts, err := c.facts(ctx, client, img)
	if err != nil {
		return "", err
	}
	kind, dir, err := render.KindOfImage(facts.Labels)
	_, labelled := facts.Labels[build.ConfigsLabel]
	switch {
	case err != nil && labelled:
		return "", fmt.Errorf("image %q: %w", ref, err)
	case err != nil:
		return rules.OnCatalog, c.catalog(ctx, none, facts, nil) // the label that is missing is a finding
	case kind == render.CatalogImage:
		facts.FBC = true
		return rules.OnCatalog, c.catalogImage(ctx, img, dir, facts)
	case kind == render.BundleImage:
		return rules.OnBundle, c.bundleImage(ctx, img, facts)
	}
	return "", fmt.Errorf("%q is a %s, %w", ref, kind, ErrKind)
}

func (c *checkup) bundleImage(ctx context.Context, img *images.Image, facts *rules.Image) error {
	return c.unpacked(ctx, img, facts.Labels, func(fsys fs.FS, b *bundle.Bundle) error {
		return c.bundle(ctx, fsys, b, facts)
	})
}

// unpacked calls use with the bundle in an image. The files are those that the labels name and those that OLM v1 reads.
func (c *checkup) unpacked(ctx context.Context, img *images.Image, labels map[string]string,
	use func(fs.FS, *bundle.Bundle) error) (err error) {
	tree, err := img.Extract(ctx, append(bundle.Paths(labels), "manifests", "metadata"), c.extract())
	if err != nil {
		return fmt.Errorf("unpack image %q: %w", img.Name, err)
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	b, err := bundle.Read(ctx, tree, bundle.ReadOptions{Labels: labels})
	if !bundlecheck.IsRead(b, err) {
		return err
	}
	return use(tree, b)
}

func (c *checkup) extract() images.ExtractOptions {
	limits := c.Render.ImageLimits
	if limits.Uncompressed == 0 {
		limits.Uncompressed = render.MaxBundleImage
	}
	return images.ExtractOptions{Limits: limits, Temp: c.Render.TempDir}
}

// none is a file system without files.
var none embed.FS
