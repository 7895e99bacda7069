package template

import (
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/shape"
)

// substitutes is a template of type Substitutes.
type substitutes struct {
	catalog       *declcfg.Catalog
	substitutions []substitution
	entries, list []any // the paths of the two lists
}

// substitution replaces a bundle of the catalog by the bundle in an image.
type substitution struct {
	image string // the field "name"
	base  string // the name of the replaced bundle
	path  []any
}

// processing returns opm's text before a problem of a substitution.
func (s substitution) processing() string {
	return fmt.Sprintf("render: error processing substitution %q -> %q: ", s.base, s.image)
}

func (p *parser) substitutes(members []member, schema string) body {
	const opm = "render: "
	t := &substitutes{catalog: &declcfg.Catalog{}}
	if schema != schemaSubstitutes {
		p.wrongSchema(members, opm, schema, schemaSubstitutes)
		return t
	}
	p.object(opm, members, []field{
		{"schema", func(node) {}},
		{"entries", func(n node) {
			t.entries = n.path
			if c := p.blobs(opm, p.items(opm, n)); c != nil {
				t.catalog = c
			}
		}},
		{"substitutions", func(n node) {
			t.list = n.path
			for _, item := range p.items(opm, n) {
				t.substitutions = append(t.substitutions, p.substitution(opm, item))
			}
		}},
	}, func(m member, known []field) { p.unknownField(m, known, "") })
	if len(p.problems.Problems) > 0 {
		return t
	}
	if err := t.catalog.Validate(); err != nil {
		p.catalogProblems(t.entries, t.list, opm+"entries are not valid FBC: ", err)
	}
	p.checkSubstitutions(t.substitutions)
	return t
}

func (p *parser) substitution(opm string, n node) substitution {
	s := substitution{path: n.path}
	if !p.want(shape.Mapping, opm, n) {
		return s
	}
	text := func(into *string) func(node) {
		return func(v node) {
			if p.want(shape.String, opm, v) {
				*into = v.str()
			}
		}
	}
	p.object(opm, n.members(), []field{{"name", text(&s.image)}, {"base", text(&s.base)}},
		func(m member, known []field) { p.unknownField(m, known, " in substitution") })
	return s
}

// checkSubstitutions checks what is possible without rendering images.
func (p *parser) checkSubstitutions(all []substitution) {
	bases, names := map[string]bool{}, map[string]string{}
	for _, s := range all {
		opm := s.processing()
		switch base, named := names[s.image]; {
		case s.image == "":
			p.add(s.path, opm, "substitution name cannot be empty")
		case s.base == "":
			p.add(s.path, opm, "substitution base cannot be empty")
		case s.image == s.base:
			p.add(s.path, opm, "substitution name and base cannot be the same: %q", s.base)
		case bases[s.base]:
			p.add(s.path, opm, "cannot reuse the same substitution base %q", s.base)
		case named:
			p.add(s.path, opm, "cannot use the same substitution name %q for %q, it is that of %q", s.image, s.base,
				base)
		default:
			names[s.image] = s.base
		}
		bases[s.base] = true
	}
}

func (t *substitutes) images() []imageRef {
	refs := make([]imageRef, len(t.substitutions))
	for i, s := range t.substitutions {
		refs[i] = imageRef{s.image, s.path, s.processing()}
	}
	return refs
}

// assemble applies the substitutions in order. The base of one may be the result of an earlier one.
func (t *substitutes) assemble(r *run) *declcfg.Catalog {
	c := copyOf(t.catalog)
	failed := map[string]bool{} // bundles that are missing because their substitution failed
	for i, s := range t.substitutions {
		bundle := r.rendered[s.image].bundle
		bundle.Pos = substitutionAt(i)
		if failed[s.base] {
			failed[bundle.Name] = true
			continue
		}
		if err := substitute(c, s.base, bundle); err != nil {
			failed[bundle.Name] = true
			r.add(s.path, s.processing(), "%v", err)
		}
	}
	if len(r.problems.Problems) > 0 {
		return c
	}
	if err := c.Validate(); err != nil {
		r.catalogProblems(t.entries, t.list, "render: resulting config is not valid FBC: ", err)
	}
	return c
}

// substitute replaces the bundle base by another bundle.
func substitute(c *declcfg.Catalog, base string, bundle declcfg.Bundle) error {
	var found *declcfg.Bundle
	for i := range c.Bundles {
		b := &c.Bundles[i]
		switch {
		case b.Name == base && (found == nil || b.Package == bundle.Package):
			found = b
		case b.Name == bundle.Name && b.Package == bundle.Package:
			return fmt.Errorf("substitute bundle %q is in the catalog already", bundle.Name)
		}
	}
	if found == nil {
		return fmt.Errorf("base bundle %q does not exist in catalog", base)
	}
	if found.Package != bundle.Package {
		return fmt.Errorf("base bundle %q is of package %q, substitute bundle %q of package %q", base, found.Package,
			bundle.Name, bundle.Package)
	}
	from, err := found.VersionRelease()
	if err != nil {
		return fmt.Errorf("base bundle %q: %w", base, err)
	}
	to, err := bundle.VersionRelease()
	if err != nil {
		return fmt.Errorf("substitute bundle %q: %w", bundle.Name, err)
	}
	if from.Compare(to) >= 0 {
		return fmt.Errorf("base bundle %q (version %s) is not less than substitute bundle %q (version %s)", base, from,
			bundle.Name, to)
	}
	for i := range c.Channels {
		if c.Channels[i].Package == bundle.Package {
			c.Channels[i].Entries = substituteEntries(c.Channels[i].Entries, base, bundle.Name)
		}
	}
	c.Bundles = append(c.Bundles, bundle)
	return nil
}

// substituteEntries adds an entry for the substitute to a channel with an entry for the base: it takes over the base's
// edges and skips the base, which loses its edges. Edges from the base become edges from the substitute.
func substituteEntries(entries []declcfg.ChannelEntry, base, substitute string) []declcfg.ChannelEntry {
	at := slices.IndexFunc(entries, func(e declcfg.ChannelEntry) bool { return e.Name == base })
	if at < 0 {
		return entries
	}
	taken := entries[at]
	taken.Name = substitute
	taken.Skips = withSkip(taken.Skips, base)
	entries[at] = declcfg.ChannelEntry{Name: base}
	for i := range entries {
		e := &entries[i]
		if e.Replaces == base {
			e.Replaces = substitute
			e.Skips = withSkip(e.Skips, base)
			continue
		}
		if k := slices.Index(e.Skips, base); k >= 0 {
			e.Skips = slices.Clone(e.Skips)
			e.Skips[k] = substitute
		}
	}
	return append(entries, taken)
}

// withSkip returns a copy of a list with a name added.
func withSkip(skips []string, name string) []string {
	if slices.Contains(skips, name) {
		return skips
	}
	return append(slices.Clip(skips), name)
}
