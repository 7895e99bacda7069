package filter

import (
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/nearest"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// Options configure [Options.Apply]. The zero value keeps what oc-mirror keeps.
type Options struct {
	// Dependencies adds the heads of channels that satisfy what kept bundles need.
	Dependencies bool
	// AutoDefaultChannel chooses, where the default channel is not kept and no other one is configured, the kept
	// channel with the highest head.
	AutoDefaultChannel bool
	// Strict makes errors of the packages, channels and versions that are named and that the catalog does not have.
	Strict bool
	// Compat leaves the catalog as oc-mirror writes it, valid or not.
	Compat bool
	// Installed, unless empty, are the versions whose ways to the kept heads are looked for; otherwise all versions
	// that are not kept are.
	Installed []Installed
}

// Result is the kept part of a catalog.
type Result struct {
	// Catalog is the catalog to be published. It shares memory with the source. It is valid unless there are problems
	// of the level [Failure].
	Catalog *declcfg.Catalog
	// Account lists the packages that were removed or changed.
	Account *edit.Account
	// Kept is what oc-mirror keeps, with the dependencies that were added.
	Kept Kept
	// WholeCatalog is set if the catalog is wanted as it is. Its image is copied and not rebuilt.
	WholeCatalog bool
	// Others is the number of kept blobs of other schemas, Images that of different images of the kept bundles.
	Others, Images int
	// Problems are sorted, failures first.
	Problems []Problem
	// Dependencies are the bundles that were added for others.
	Dependencies []Dependency
	// Lost are the versions that have no way to a kept head, by package and channel.
	Lost []Lost
	// Why says for each kept channel, PACKAGE/CHANNEL, by which rule its bundles were kept.
	Why map[string]string

	demands []demand
}

// Refused reports whether there is a problem for which nothing may be published.
func (r *Result) Refused() bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Level == Failure })
}

// Apply keeps what an operator entry asks for. The catalog may be a skeleton; bundles of packages that are not asked
// for may be stubs, unless dependencies are wanted. It is not checked beforehand: what is not kept may be wrong.
//
// The error is an [*Error] with everything for which the catalog cannot be filtered.
func (o Options) Apply(c *declcfg.Catalog, op imageset.Operator) (*Result, error) {
	if op.WholeCatalog() {
		r := &Result{Catalog: c, Kept: describeKept(c), WholeCatalog: true, Others: len(c.Others), Images: images(c.Bundles),
			Account: &edit.Account{}, Why: map[string]string{}}
		for name, p := range r.Kept {
			for channel := range p.Channels {
				r.Why[name+"/"+channel] = "the whole catalog is wanted"
			}
		}
		unusable(c.Bundles, func(level Level, p Problem, format string, args ...any) {
			p.Level, p.Text = level, fmt.Sprintf(format, args...)
			r.Problems = append(r.Problems, p)
		})
		sortProblems(r.Problems)
		return r, nil
	}
	f := &filter{source: c, op: op, o: o, wanted: map[string]*imageset.Package{}, why: map[string]string{}}
	var r *Result
	if f.run(); f.fatal.Err() == nil {
		r = f.makeResult()
	}
	if err := f.fatal.Err(); err != nil {
		sortProblems(f.fatal.Problems)
		return nil, err
	}
	return r, nil
}

// Scope returns the packages whose bundles [Options.Apply] has to see, nil for all: of others, names and images are
// enough.
func (o Options) Scope(op imageset.Operator) []string {
	if len(op.Packages) == 0 || o.Dependencies {
		return nil
	}
	names := make([]string, len(op.Packages))
	for i, p := range op.Packages {
		names[i] = p.Name
	}
	return names
}

// filter is one application of an operator entry.
type filter struct {
	source   *declcfg.Catalog
	op       imageset.Operator
	o        Options
	wanted   map[string]*imageset.Package
	packages []*pkg // kept packages, in the order of the catalog
	fatal    Error
	problems []Problem
	why      map[string]string

	// For dependencies.
	all   map[string]*pkg
	heads map[*declcfg.Channel]string
	facts map[*declcfg.Bundle]*facts
}

// pkg is a package that is kept, with its blobs in the source.
type pkg struct {
	f              *filter
	blob           *declcfg.Package
	selection      *imageset.Package // nil if no packages were named
	channels       []*declcfg.Channel
	bundles        map[string]*bundle
	order          []*bundle
	defaultChannel string
	before         map[string]bool            // the channels kept before versions are looked at
	entries        map[string]map[string]bool // the names that are kept, by channel; a channel may have none
	names          map[string]bool            // the bundles that are kept
	loose          map[string]bool            // bundles of a requested version that are in no kept channel
	dependency     bool                       // kept only because other packages need it
}

func (f *filter) fail(p Problem, format string, args ...any) {
	p.Level, p.Text = Failure, fmt.Sprintf(format, args...)
	f.fatal.Add(p)
}

func (f *filter) report(level Level, p Problem, format string, args ...any) {
	p.Level, p.Text = level, fmt.Sprintf(format, args...)
	f.problems = append(f.problems, p)
}

// absent reports that the catalog does not have what the entry names. oc-mirror keeps silent.
func (f *filter) absent(p Problem, format string, args ...any) {
	if f.o.Strict {
		f.fail(p, format, args...)
		return
	}
	p.absent = true
	f.report(Warning, p, format, args...)
}

func (f *filter) run() {
	for i := range f.op.Packages {
		p := &f.op.Packages[i]
		if f.wanted[p.Name] != nil || p.Name == "" {
			f.fail(Problem{Code: DuplicateOfName, Package: p.Name}, "it is named twice, or has no name")
			continue
		}
		f.wanted[p.Name] = p
	}
	f.collect()
	f.unknown()
	for _, p := range f.packages {
		p.apply()
	}
}

func (f *filter) newPackage(blob *declcfg.Package, selection *imageset.Package) *pkg {
	return &pkg{f: f, blob: blob, selection: selection, bundles: map[string]*bundle{}, before: map[string]bool{},
		entries: map[string]map[string]bool{}, names: map[string]bool{}, loose: map[string]bool{},
		defaultChannel: blob.DefaultChannel}
}

// collect finds the blobs of the packages that are kept.
func (f *filter) collect() {
	byName := map[string]*pkg{}
	for i := range f.source.Packages {
		blob := &f.source.Packages[i]
		selection := f.wanted[blob.Name]
		if len(f.op.Packages) > 0 && selection == nil {
			continue
		}
		if byName[blob.Name] != nil {
			f.fail(Problem{Code: DuplicateOfName, Package: blob.Name}, "the catalog has it twice")
			continue
		}
		p := f.newPackage(blob, selection)
		byName[blob.Name] = p
		f.packages = append(f.packages, p)
	}
	for i := range f.source.Channels {
		if p := byName[f.source.Channels[i].Package]; p != nil {
			p.channels = append(p.channels, &f.source.Channels[i])
		}
	}
	for i := range f.source.Bundles {
		if p := byName[f.source.Bundles[i].Package]; p != nil {
			p.add(&f.source.Bundles[i])
		}
	}
}

// unknown reports the packages that are requested and not there.
func (f *filter) unknown() {
	var there []string
	for i := range f.source.Packages {
		there = append(there, f.source.Packages[i].Name)
	}
	for i := range f.op.Packages {
		name := f.op.Packages[i].Name
		if name == "" || slices.Contains(there, name) {
			continue
		}
		f.absent(Problem{Code: UnknownPackage, Package: name, Fix: suggest(name, there)}, "it is not in the catalog")
	}
}

// suggest returns advice about a name that is not there.
func suggest(name string, there []string) string {
	if near, ok := nearest.Name(name, there); ok {
		return "perhaps " + near
	}
	if len(there) == 0 {
		return ""
	}
	list := slices.Sorted(slices.Values(there))
	return "there is " + fault.Short(few(list))
}
