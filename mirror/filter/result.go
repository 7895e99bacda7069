package filter

import (
	"errors"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
)

func (f *filter) makeResult() *Result {
	r := &Result{Why: f.why}
	f.dependencies(r)
	as := f.makeCatalog()
	r.Kept = describeKept(as)
	r.Others, r.Images = len(as.Others), images(as.Bundles)
	if len(as.Bundles) == 0 {
		f.report(Failure, Problem{Code: NothingKept, Fix: "look at the names and the versions"},
			"nothing of the catalog is kept")
	}
	f.defaults(r)
	if f.o.Compat {
		r.Catalog = as
	} else {
		r.Catalog = f.repaired(as)
	}
	f.check(r)
	r.Account = f.account()
	r.Lost = f.findLost()
	r.Problems = f.problems
	sortProblems(r.Problems)
	return r
}

// makeCatalog returns the catalog that oc-mirror writes.
func (f *filter) makeCatalog() *declcfg.Catalog {
	out := &declcfg.Catalog{}
	byName := map[string]*pkg{}
	for _, p := range f.packages {
		byName[p.blob.Name] = p
		blob := *p.blob
		blob.DefaultChannel = p.defaultChannel
		out.Packages = append(out.Packages, blob)
	}
	for _, p := range f.packages {
		for _, c := range p.channels {
			if _, ok := p.entries[c.Name]; !ok {
				continue
			}
			out.Channels = append(out.Channels, *p.keptOf(c))
		}
		for _, b := range p.order {
			if p.names[b.blob.Name] || p.loose[b.blob.Name] {
				out.Bundles = append(out.Bundles, *b.blob)
			}
		}
	}
	for i := range f.source.Deprecations {
		d := f.source.Deprecations[i]
		p := byName[d.Package]
		if p == nil {
			continue
		}
		d.Entries = slices.DeleteFunc(slices.Clone(d.Entries), func(e declcfg.DeprecationEntry) bool {
			switch e.Reference.Schema {
			case declcfg.SchemaBundle:
				return !p.names[e.Reference.Name] && !p.loose[e.Reference.Name]
			case declcfg.SchemaChannel:
				return !p.before[e.Reference.Name]
			}
			return false
		})
		out.Deprecations = append(out.Deprecations, d)
	}
	for i := range f.source.Others {
		if m := &f.source.Others[i]; m.Package == "" || byName[m.Package] != nil {
			out.Others = append(out.Others, *m)
		}
	}
	return out
}

// defaults finds the packages whose default channel is not kept.
func (f *filter) defaults(r *Result) {
	for _, p := range f.packages {
		kept := r.Kept[p.blob.Name]
		full := map[string]bool{}
		for name, entries := range kept.Channels {
			if len(entries) > 0 {
				full[name] = true
			} else if name != p.defaultChannel {
				p.empty(Problem{Code: EmptyChannel, Package: p.blob.Name, Channel: name},
					"it has no bundle that is kept, and is dropped")
			}
		}
		if p.defaultChannel == "" {
			if f.o.AutoDefaultChannel && p.chooseHighest("there is none", full) {
				kept.DefaultChannel = p.defaultChannel
			}
			continue // validating the catalog reports that it has none
		}
		if full[p.defaultChannel] {
			continue
		}
		configured := p.selection != nil && p.selection.DefaultChannel != ""
		if f.o.AutoDefaultChannel && !configured && p.chooseHighest("is empty", full) {
			kept.DefaultChannel = p.defaultChannel
			continue
		}
		fix := "keep a bundle of it"
		for _, name := range p.channelNames() {
			if full[name] {
				fix = "write defaultChannel: " + name
				break
			}
		}
		f.report(Failure, Problem{Code: EmptyDefault, Package: p.blob.Name, Channel: p.defaultChannel, Fix: fix},
			"it is the default channel, and no bundle of it is kept")
	}
}

// repaired returns the catalog without what cannot be published: empty channels, bundles that were in these alone,
// deprecations of what is not kept, empty lists of deprecations. Bundles that an entry names get an entry.
func (f *filter) repaired(as *declcfg.Catalog) *declcfg.Catalog {
	out := *as
	all := slices.Clone(as.Channels)
	for _, p := range f.packages {
		f.placeBundles(p, all)
	}
	channels := map[[2]string]bool{}
	out.Channels = nil
	for i := range all {
		if c := &all[i]; len(c.Entries) > 0 {
			out.Channels = append(out.Channels, *c)
			channels[[2]string{c.Package, c.Name}] = true
		}
	}
	out.Packages = slices.Clone(as.Packages)
	for i, p := range f.packages { // in the same order
		out.Packages[i].DefaultChannel = p.defaultChannel
	}
	loose := f.loose()
	out.Bundles = slices.DeleteFunc(slices.Clone(as.Bundles), func(b declcfg.Bundle) bool {
		return loose[[2]string{b.Package, b.Name}]
	})
	out.Deprecations = nil
	for _, d := range as.Deprecations {
		d.Entries = slices.DeleteFunc(slices.Clone(d.Entries), func(e declcfg.DeprecationEntry) bool {
			at := [2]string{d.Package, e.Reference.Name}
			return e.Reference.Schema == declcfg.SchemaChannel && !channels[at] ||
				e.Reference.Schema == declcfg.SchemaBundle && loose[at]
		})
		if len(d.Entries) > 0 {
			out.Deprecations = append(out.Deprecations, d)
		}
	}
	return &out
}

// loose returns the bundles, by package and name, that are kept and that no kept channel has, and reports them.
func (f *filter) loose() map[[2]string]bool {
	out := map[[2]string]bool{}
	for _, p := range f.packages {
		for _, name := range sortedKeys(p.loose) {
			if p.names[name] {
				continue
			}
			out[[2]string{p.blob.Name, name}] = true
			f.absent(Problem{Code: NoChannel, Package: p.blob.Name, Bundle: name, Fix: "select a channel that has it"},
				"bundle %s has the version that is requested, but no kept channel has it: it is not published",
				fault.Quote(name))
		}
	}
	return out
}

// placeBundles adds entries for the bundles that are kept because a kept entry replaces or skips them, and that have an
// entry in no kept channel: the channel of the source continues in another one there. Such an entry is never a head.
func (f *filter) placeBundles(p *pkg, channels []declcfg.Channel) {
	placed := map[string]bool{}
	for i := range channels {
		if channels[i].Package == p.blob.Name {
			for _, e := range channels[i].Entries {
				placed[e.Name] = true
			}
		}
	}
	for i := range channels {
		c := &channels[i]
		if c.Package != p.blob.Name {
			continue
		}
		for _, name := range sortedKeys(p.entries[c.Name]) {
			if placed[name] || p.bundles[name] == nil {
				continue
			}
			placed[name] = true
			c.Entries = append(slices.Clip(c.Entries), declcfg.ChannelEntry{Name: name})
			f.report(Warning, Problem{Code: EntryAdded, Package: p.blob.Name, Channel: c.Name, Bundle: name},
				"bundle %s, which an entry replaces or skips, is kept and has no entry: it gets one", fault.Quote(name))
		}
	}
}

// check validates the catalog to be published.
func (f *filter) check(r *Result) {
	level := Failure
	if f.o.Compat {
		level = Warning
	}
	told := map[string]bool{}
	for _, p := range f.problems {
		if p.Code == EmptyDefault {
			told[p.Package] = true
		}
	}
	for _, p := range f.packages {
		for _, c := range p.channels {
			for i := range c.Entries {
				name := c.Entries[i].Name
				if p.entries[c.Name][name] && p.bundles[name] == nil {
					f.report(level, Problem{Code: EntryNoBundle, Package: p.blob.Name, Channel: c.Name, Bundle: name},
						"the catalog has no bundle for its entry %s", fault.Quote(name))
				}
			}
		}
	}
	validate(r.Catalog, level, f.report, told, unusable(r.Catalog.Bundles, f.report))
}

// validate reports the broken rules of a catalog, but for those that are reported elsewhere: about the default channels
// of packages in told, the images of the bundles in bad, and entries without bundles.
func validate(c *declcfg.Catalog, level Level, report func(Level, Problem, string, ...any), told map[string]bool,
	bad map[edit.Name]bool) {
	var invalid *declcfg.ValidationError
	if !errors.As(c.Validate(), &invalid) {
		return
	}
	for i := range invalid.Problems {
		p := &invalid.Problems[i]
		at := Problem{Code: InvalidCatalog, Package: p.Package, Channel: p.Channel, Bundle: p.Bundle}
		if p.Rule == declcfg.RuleDefaultChannel {
			at.Fix = "write defaultChannel, or let --auto-default-channel choose one"
		}
		switch p.Rule {
		case declcfg.RuleEntryBundle:
			continue
		case declcfg.RuleImage:
			if bad[edit.Name{Package: p.Package, Bundle: p.Bundle}] {
				continue
			}
		case declcfg.RuleDefaultChannel, declcfg.RuleEmpty:
			if told[p.Package] {
				continue
			}
		}
		report(level, at, "%s", p.Text())
	}
	for _, rule := range sortedKeys(invalid.More) {
		report(level, Problem{Code: InvalidCatalog}, "%s of the rule %s", problem.Others(invalid.More[rule]), rule)
	}
}

// account lists the packages that are not as they were.
func (f *filter) account() *edit.Account {
	a := &edit.Account{}
	there := map[string]bool{}
	for _, p := range f.packages {
		there[p.blob.Name] = true
		a.Changes = append(a.Changes, edit.Change{Action: edit.Changed, Kind: edit.KindPackage, Package: p.blob.Name,
			Why: "reduced to what is mirrored"})
	}
	for i := range f.source.Packages {
		if name := f.source.Packages[i].Name; !there[name] {
			a.Changes = append(a.Changes, edit.Change{Action: edit.Removed, Kind: edit.KindPackage, Package: name,
				Why: "it is not mirrored"})
		}
	}
	return a
}
