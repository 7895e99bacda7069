package filter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Dependency is a bundle that was added because a kept one needs it.
type Dependency struct {
	Package string `json:"package"`
	Channel string `json:"channel"`
	Bundle  string `json:"bundle"`
	// Needs is what is needed, Kind the type of the property that says so.
	Needs string `json:"needs"`
	Kind  string `json:"kind"`
	// By are the package and the bundle that need it.
	ByPackage string `json:"byPackage"`
	ByBundle  string `json:"byBundle"`
}

// demand is a need with the first bundle that has it, and how many others of its package do.
type demand struct {
	need
	pkg, bundle string
	others      int
}

// demandKey identifies the needs of a package.
type demandKey struct{ pkg, kind, text string }

// dependencies finds out which needs of kept bundles nothing kept meets, and adds what meets them if that is wanted.
func (f *filter) dependencies(r *Result) {
	if f.op.SkipDependencies {
		return
	}
	present := map[string][]*facts{} // the kept bundles by package
	var queue []demand
	seen := map[demandKey]int{}
	take := func(p *pkg, b *declcfg.Bundle) {
		present[p.blob.Name] = append(present[p.blob.Name], factsOf(b))
		for _, n := range needsOf(b) {
			key := demandKey{p.blob.Name, n.kind, n.text}
			if at, twice := seen[key]; twice {
				queue[at].others++
				continue
			}
			seen[key] = len(queue)
			queue = append(queue, demand{n, p.blob.Name, b.Name, 0})
		}
	}
	for _, p := range f.packages {
		for _, b := range p.order {
			if p.names[b.blob.Name] {
				take(p, b.blob)
			}
		}
	}
	var open []demand
	met := map[[2]string]verdict{}
	for i := 0; i < len(queue); i++ { // the queue grows while dependencies are added
		d := queue[i]
		if d.err != nil {
			f.report(Warning, Problem{Code: UnknownDemand, Package: d.pkg, Bundle: d.bundle},
				"bundle %s has a dependency that cannot be read: %v", fault.Quote(d.bundle), d.err)
			continue
		}
		key := [2]string{d.kind, d.text}
		if _, known := met[key]; !known || met[key] == no {
			met[key] = d.among(present)
		}
		if met[key] == no && f.o.Dependencies {
			if p, b, channel := f.provide(&d); b != nil {
				take(p, b.blob)
				met[key] = yes
				r.Dependencies = append(r.Dependencies,
					Dependency{p.blob.Name, channel, b.blob.Name, d.text, d.kind, d.pkg,
						d.bundle})
			}
		}
		switch met[key] {
		case no:
			open = append(open, d)
		case maybe:
			f.report(Warning, Problem{Code: UnknownDemand, Package: d.pkg, Bundle: d.bundle},
				"whether something kept meets %s of bundle %s is not known: expressions are not evaluated", d.text,
				fault.Quote(d.bundle))
		}
	}
	for _, d := range open {
		d = queue[seen[demandKey{d.pkg, d.kind, d.text}]]
		who := "bundle " + fault.Quote(d.bundle)
		if d.others > 0 {
			who += fmt.Sprintf(" and %d others", d.others)
		}
		fix := "--with-dependencies adds what meets it, if the catalog has it"
		if f.o.Dependencies {
			fix = "no channel's head in the catalog meets it; skipDependencies: true silences this"
			if d.need.pkg != "" && slices.ContainsFunc(f.packages,
				func(p *pkg) bool { return p.blob.Name == d.need.pkg }) {
				fix = "package " + d.need.pkg + " is kept in other versions: widen them"
			}
		}
		f.report(Warning, Problem{Code: Unsatisfied, Package: d.pkg, Bundle: d.bundle, Fix: fix},
			"%s needs %s (%s), and nothing that is kept provides it", who, d.text, d.kind)
	}
	r.demands = open
}

// among judges whether one of the kept bundles meets a need.
func (n *need) among(present map[string][]*facts) verdict {
	best := no
	for _, name := range sortedKeys(present) {
		if n.pkg != "" && n.pkg != name {
			continue
		}
		for _, f := range present[name] {
			if best = max(best, n.test(f)); best == yes {
				return yes
			}
		}
	}
	return best
}

// candidate is the head of a channel that meets a need.
type candidate struct {
	p               *pkg
	b               *bundle
	channel         string
	kept, preferred bool
}

// provide adds the head of a channel that meets a need and returns it. Of several it prefers one of a package that is
// kept, then of a default channel, then the highest version, then the first by name.
func (f *filter) provide(n *demand) (*pkg, *bundle, string) {
	f.indexAll()
	var found []candidate
	for _, name := range sortedKeys(f.all) {
		if n.need.pkg != "" && n.need.pkg != name {
			continue
		}
		p := f.all[name]
		kept := slices.Contains(f.packages, p)
		for _, c := range p.channels {
			head := f.headOf(c)
			b := p.bundles[head]
			if b == nil || len(p.entries[c.Name]) > 0 || n.test(f.factsFor(b.blob)) != yes {
				continue
			}
			found = append(found, candidate{p, b, c.Name, kept, c.Name == p.blob.DefaultChannel})
		}
	}
	if len(found) == 0 {
		return nil, nil, ""
	}
	best := slices.MaxFunc(found, func(a, b candidate) int {
		return cmp.Or(truth(a.kept)-truth(b.kept), truth(a.preferred)-truth(b.preferred),
			a.b.version.Compare(b.b.version), cmp.Compare(b.p.blob.Name, a.p.blob.Name),
			cmp.Compare(b.channel, a.channel))
	})
	p := best.p
	if !best.kept {
		f.packages = append(f.packages, p)
		p.dependency = true
		if !best.preferred {
			p.defaultChannel = best.channel
			f.report(Warning, Problem{Code: ChosenDefault, Package: p.blob.Name, Channel: best.channel},
				"it becomes the default channel, as the package is kept only for what other packages need")
		}
	}
	p.before[best.channel] = true
	p.entries[best.channel] = map[string]bool{best.b.blob.Name: true}
	p.names[best.b.blob.Name] = true
	f.why[p.blob.Name+"/"+best.channel] = fmt.Sprintf("bundle %s of package %s needs %s", fault.Quote(n.bundle),
		fault.Quote(n.pkg), n.text)
	return p, best.b, best.channel
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// indexAll collects the packages of the whole catalog. Packages with a bundle without a version cannot be chosen.
func (f *filter) indexAll() {
	if f.all != nil {
		return
	}
	f.all, f.heads, f.facts = map[string]*pkg{}, map[*declcfg.Channel]string{}, map[*declcfg.Bundle]*facts{}
	kept := map[*pkg]bool{}
	for _, p := range f.packages {
		f.all[p.blob.Name], kept[p] = p, true
	}
	bad := map[string]bool{}
	for i := range f.source.Packages {
		if blob := &f.source.Packages[i]; f.all[blob.Name] == nil {
			f.all[blob.Name] = f.newPackage(blob, nil)
		}
	}
	for i := range f.source.Channels {
		c := &f.source.Channels[i]
		if p := f.all[c.Package]; p != nil && !kept[p] {
			p.channels = append(p.channels, c)
		}
	}
	for i := range f.source.Bundles {
		b := &f.source.Bundles[i]
		p := f.all[b.Package]
		if p == nil || kept[p] {
			continue
		}
		v, err := versionOf(b)
		if err != nil {
			bad[b.Package] = true
			continue
		}
		p.bundles[b.Name] = &bundle{b, v}
		p.order = append(p.order, p.bundles[b.Name])
	}
	for name := range bad {
		delete(f.all, name)
	}
}

// headOf returns the head of a channel, empty if it has not exactly one.
func (f *filter) headOf(c *declcfg.Channel) string {
	head, known := f.heads[c]
	if !known {
		if g, err := newGraph(c); err == nil {
			head = g.head
		}
		f.heads[c] = head
	}
	return head
}

func (f *filter) factsFor(b *declcfg.Bundle) *facts {
	if f.facts[b] == nil {
		f.facts[b] = factsOf(b)
	}
	return f.facts[b]
}

// DropMetDependencies removes the warnings about needs that bundles kept of another catalog meet: the catalogs of an
// image set are installed side by side.
func DropMetDependencies(results []*Result) {
	present := map[string][]*facts{}
	for _, r := range results {
		for i := range r.Catalog.Bundles {
			b := &r.Catalog.Bundles[i]
			present[b.Package] = append(present[b.Package], factsOf(b))
		}
	}
	for _, r := range results {
		var open []demand
		for _, d := range r.demands {
			if d.among(present) == no {
				open = append(open, d)
				continue
			}
			r.Problems = slices.DeleteFunc(r.Problems, func(p Problem) bool {
				return p.Code == Unsatisfied && p.Package == d.pkg && p.Bundle == d.bundle &&
					strings.Contains(p.Text, d.text)
			})
		}
		r.demands = open
	}
}
