package submission

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	faults "github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
)

// Options say how a repository is checked.
type Options struct {
	// AllBundles checks all bundles of an operator by the rules on bundles; else only the highest version.
	AllBundles bool
	// Versions are those of OpenShift; nil: those of the rule data.
	Versions *openshift.Table
	// Request, unless nil, is the change that is checked, in place of what is in the repository.
	Request *Request
	// Jobs is how many operators are checked at once.
	Jobs int
	// Bundle, unless nil, checks a bundle by the rules of other profiles.
	Bundle func(ctx context.Context, run *rules.Run, fsys fs.FS, b *bundle.Bundle) error
	// Catalog, unless nil, checks a catalog by the rules of other profiles.
	Catalog func(ctx context.Context, run *rules.Run, fsys fs.FS) error
	// Progress is called after each operator and catalog; never concurrently.
	Progress func(done, all int)
}

// Rules returns the rules of the operator pipelines.
func Rules() []rules.Rule {
	return slices.Concat(rules.RulesOf(operatorChecks), rules.RulesOf(bundleChecks), rules.RulesOf(catalogChecks),
		rules.RulesOf(wholeChecks), rules.RulesOf(requestChecks))
}

// check is the check of a repository.
type check struct {
	Options
	*Repository
	run *rules.Run
	// whole is set if the whole repository is checked. notFBC are then the operators without file-based catalogs, which
	// are named in one finding.
	whole  bool
	mu     sync.Mutex
	notFBC []string
}

// organization returns that of config.yaml, or without one that of the profiles.
func (c *check) organization() string {
	if c.run.Has(rules.Marketplace) {
		return openshift.Marketplace
	}
	if !c.lone {
		return c.config.organization
	}
	for _, p := range rules.Pipelines() {
		if c.run.Has(p) {
			return p.Organization()
		}
	}
	return ""
}

// in returns the run for a part of the repository. dir is that of other profiles' files.
func (c *check) in(operator, target, dir string) *rules.Run {
	return c.run.In(rules.Part{Target: target, Dir: dir, LeftOut: func(r rules.Rule) bool {
		return c.config.waived(r.ID, operator)
	}})
}

// operatorCheck is an operator that is checked.
type operatorCheck struct {
	*check
	op    *operator
	lines *bundlefs.Locator
	told  map[string]bool // the faults that have been reported, each for a part
}

// bundleCheck is a bundle that is checked.
type bundleCheck struct {
	*operatorCheck
	b   *submitted
	csv map[string]any // nil: it cannot be read
	// read is the bundle as other profiles read it; nil: it cannot be read, for the reason unread.
	read   *bundle.Bundle
	unread error
}

// catalogCheck is a package in a catalog that is checked, or a whole catalog.
type catalogCheck struct {
	*check
	name, operator, dir string
	files               []string // of a package
	unread              bool     // that its file cannot be read has been reported
}

// Check checks a part of the repository.
func (r *Repository) Check(ctx context.Context, run *rules.Run, p Place, o Options) error {
	if o.Versions == nil {
		o.Versions = run.Data().OpenShift()
	}
	c := &check{Options: o, Repository: r, run: run}
	var tasks []func(context.Context) error
	var err error
	switch {
	case o.Request != nil:
		tasks, err = c.requestTasks(ctx)
	case p.Kind == BundleOf:
		tasks = append(tasks, func(ctx context.Context) error { return c.bundleOf(ctx, p.Operator, p.Bundle) })
	case p.Kind == OperatorOf:
		tasks, err = c.operatorTasks(p.Operator)
	case p.Kind == CatalogOf:
		tasks, err = c.catalogTasks(p.Catalog, p.Operator)
	default:
		c.whole = true
		tasks, err = c.allTasks()
	}
	if err != nil {
		return err
	}
	if len(tasks) == 0 && o.Request == nil {
		return ErrNothing
	}
	if p.Operator != "" {
		for _, rule := range Rules() {
			if c.config.waived(rule.ID, p.Operator) {
				run.NotRun("config.yaml leaves it out for the operator "+p.Operator, rule)
			}
		}
	}
	return c.each(ctx, tasks)
}

// ErrNothing is the error for a part of a repository without an operator and without a catalog.
var ErrNothing = faults.New(faults.Input, "there is no operator with a bundle or a ci.yaml, and no catalog.yaml, to check")

// each runs tasks, after the rules on the repository.
func (c *check) each(ctx context.Context, tasks []func(context.Context) error) error {
	if err := rules.Each(ctx, c.run, wholeChecks, c); err != nil {
		return err
	}
	var mu sync.Mutex
	done := 0
	err := guard.Each(ctx, c.Jobs, tasks, func(ctx context.Context, _ int, task func(context.Context) error) error {
		err := task(ctx)
		mu.Lock()
		defer mu.Unlock()
		if done++; c.Progress != nil {
			c.Progress(done, len(tasks))
		}
		return err
	})
	if err != nil || len(c.notFBC) == 0 {
		return err
	}
	slices.Sort(c.notFBC)
	return rules.Each(ctx, c.run, []rules.Check[*check]{{Rules: []rules.Rule{ruleUsingFBC}, Find: findNoFBC}}, c)
}

// operatorTasks are those for an operator: its rules, those of its highest bundle, and those of its package in the
// catalogs.
func (c *check) operatorTasks(name string) ([]func(context.Context) error, error) {
	tasks := []func(context.Context) error{func(ctx context.Context) error {
		return c.operatorOf(ctx, name, func(op *operator) []*submitted {
			if c.AllBundles {
				return op.bundles
			}
			return op.newest()
		})
	}}
	catalogs, err := c.catalogsOf(name)
	for _, catalog := range catalogs {
		tasks = append(tasks, c.packageTask(catalog, name), c.formatTask(catalog))
	}
	return tasks, err
}

// catalogTasks are those for a catalog, or for one package of it.
func (c *check) catalogTasks(catalog, operator string) ([]func(context.Context) error, error) {
	operators := []string{operator}
	if operator == "" {
		var err error
		if operators, err = c.operatorsOf(catalog); err != nil {
			return nil, err
		}
	}
	var tasks []func(context.Context) error
	if all, err := c.operatorsOf(catalog); err != nil || len(all) > 0 {
		tasks = append(tasks, c.formatTask(catalog))
	}
	for _, operator := range operators {
		if len(c.catalogFilesOf(path.Join(catalogsDir, catalog, operator))) > 0 {
			tasks = append(tasks, c.packageTask(catalog, operator))
		}
	}
	return tasks, nil
}

// allTasks are those for the whole repository.
func (c *check) allTasks() (tasks []func(context.Context) error, err error) {
	catalogs, err := c.Catalogs()
	if err != nil {
		return nil, err
	}
	for _, catalog := range catalogs {
		own, err := c.catalogTasks(catalog, "")
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, own...)
	}
	names, err := c.Operators()
	for _, name := range names {
		own, err := c.operatorTasks(name)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, own[0]) // the catalogs are checked whole
	}
	return tasks, err
}

// operatorOf checks an operator, and those of its bundles that bundles returns.
func (c *check) operatorOf(ctx context.Context, name string, bundles func(*operator) []*submitted) error {
	op, err := c.operator(name)
	if err != nil {
		return err
	}
	o := &operatorCheck{c, op, bundlefs.NewLocator(c.fsys), map[string]bool{}}
	if err := rules.Each(ctx, c.in(name, op.dir, ""), operatorChecks, o); err != nil {
		return err
	}
	for _, b := range bundles(op) {
		if err := o.checkBundle(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// bundleOf checks a bundle by the rules on bundles alone.
func (c *check) bundleOf(ctx context.Context, operator, name string) error {
	op, err := c.operator(operator)
	if err != nil {
		return err
	}
	o := &operatorCheck{c, op, bundlefs.NewLocator(c.fsys), map[string]bool{}}
	for _, b := range op.bundles {
		if b.name == name {
			return o.checkBundle(ctx, b)
		}
	}
	return nil
}

// checkBundle checks a bundle.
func (o *operatorCheck) checkBundle(ctx context.Context, b *submitted) error {
	c := &bundleCheck{operatorCheck: o, b: b, csv: b.decoded(o.fsys)}
	sub, err := fs.Sub(o.fsys, b.dir)
	if err != nil {
		return err
	}
	read, err := bundle.Read(ctx, sub, bundle.ReadOptions{})
	if bundlecheck.IsRead(read, err) {
		c.read = read
		o.run.OpenShift(read, o.organization())
	} else if c.unread = err; ctx.Err() != nil {
		return err
	}
	if err := rules.Each(ctx, o.in(o.op.name, b.dir, ""), bundleChecks, c); err != nil || o.Bundle == nil || c.read == nil {
		return err
	}
	return o.Bundle(ctx, o.in(o.op.name, b.dir, b.dir), sub, read)
}

// packageTask checks the package of an operator in a catalog.
func (c *check) packageTask(catalog, operator string) func(context.Context) error {
	return func(ctx context.Context) error {
		dir := path.Join(catalogsDir, catalog, operator)
		s := &catalogCheck{check: c, name: catalog, operator: operator, dir: dir, files: c.catalogFilesOf(dir)}
		if c.run.Wants(projectCheck.Rules[0]) {
			op, err := c.operator(operator)
			if err != nil {
				return err
			}
			o := &operatorCheck{c, op, bundlefs.NewLocator(c.fsys), map[string]bool{}}
			if err := rules.Each(ctx, c.in(operator, op.dir, ""), []rules.Check[*operatorCheck]{projectCheck}, o); err != nil {
				return err
			}
		}
		return rules.Each(ctx, c.in(operator, dir, ""), catalogChecks[:packageChecks], s)
	}
}

// formatTask checks a catalog as a whole.
func (c *check) formatTask(catalog string) func(context.Context) error {
	return func(ctx context.Context) error {
		dir := path.Join(catalogsDir, catalog)
		s := &catalogCheck{check: c, name: catalog, dir: dir}
		if err := rules.Each(ctx, c.in("", dir, ""), catalogChecks[packageChecks:], s); err != nil || c.Catalog == nil {
			return err
		}
		sub, err := fs.Sub(c.fsys, dir)
		if err != nil {
			return err
		}
		return c.Catalog(ctx, c.in("", dir, dir), sub)
	}
}

// CheckBundle checks a bundle alone by the rules on bundles. Those that need its operator or its repository cannot be
// checked. fsys has the root of the bundle, b was read from it.
func CheckBundle(ctx context.Context, run *rules.Run, fsys fs.FS, b *bundle.Bundle) error {
	c := &check{Options: Options{Versions: run.Data().OpenShift()}, Repository: &Repository{fsys: fsys, lone: true}, run: run}
	o := &operatorCheck{c, &operator{name: b.Package, dir: "."}, bundlefs.NewLocator(fsys), map[string]bool{}}
	version := ""
	if b.CSV != nil {
		version = b.CSV.Version
	}
	s, err := c.readBundle(o.op, version, ".", b.ManifestsDir, b.MetadataDir)
	if err != nil {
		return err
	}
	o.op.bundles = []*submitted{s}
	var alone []rules.Check[*bundleCheck]
	for _, check := range bundleChecks {
		if slices.Contains(needOperator, check.Rules[0].ID) {
			run.NotRun("the bundle is not in operators/NAME/VERSION of a repository", check.Rules...)
		} else {
			alone = append(alone, check)
		}
	}
	return rules.Each(ctx, run, alone, &bundleCheck{operatorCheck: o, b: s, csv: s.decoded(fsys), read: b})
}

// CheckCatalog checks a catalog alone by the rules on catalogs that need no repository.
func CheckCatalog(ctx context.Context, run *rules.Run, fsys fs.FS) error {
	run.NotRun("the catalog is not in catalogs/vX.Y of a repository", rules.RulesOf(catalogChecks[:packageChecks])...)
	c := &check{Repository: &Repository{fsys: fsys, lone: true}, run: run}
	return rules.Each(ctx, run, catalogChecks[packageChecks:], &catalogCheck{check: c, dir: "."})
}

// needOperator are the rules on bundles that need the operator and its other bundles.
var needOperator = []string{"check_dangling_bundles", "check_using_fbc", "check_operator_version_directory_name",
	"check_bundle_release_config", "check_replaces_availability", "check_pruned_graph"}

// at returns a finding at a value of a YAML file; without a file it is about the part alone.
func (o *operatorCheck) at(file, message string, value ...any) rules.Finding {
	f := rules.Finding{Package: o.op.name, File: file, Message: message}
	if file != "" {
		f.Line, f.Column = o.lines.Find(bundlefs.Place{File: file, Line: 1, Path: value})
	}
	return f
}

// of adds the names of the bundle to a finding.
func (c *bundleCheck) of(f rules.Finding) rules.Finding {
	f.Package, f.Bundle = c.op.name, c.b.name
	return f
}

// at returns a finding at a value of a YAML file.
func (c *bundleCheck) at(file, message string, value ...any) rules.Finding {
	return c.of(c.operatorCheck.at(file, message, value...))
}

// fault emits a fault of a file, unless it has been reported for the operator.
func (o *operatorCheck) fault(bad *fault, emit rules.Emit) { o.faultOf(o.op.dir, bad, emit) }

// fault emits a fault of a file, unless it has been reported for the bundle.
func (c *bundleCheck) fault(bad *fault, emit rules.Emit) { c.faultOf(c.b.dir, bad, emit) }

// faultOf emits a fault of a file once for a part.
func (o *operatorCheck) faultOf(part string, bad *fault, emit rules.Emit) {
	if key := part + "\x00" + bad.file + "\x00" + bad.text; !o.told[key] {
		o.told[key] = true
		f := bad.finding()
		f.Package = o.op.name
		emit(f)
	}
}
