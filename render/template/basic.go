package template

import (
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/shape"
)

// basic is a template of type Basic.
type basic struct {
	catalog *declcfg.Catalog // without its bundles
	bundles []imageRef
}

func (p *parser) basic(members []member, schema string) body {
	b := &basic{catalog: &declcfg.Catalog{}}
	if schema != schemaBasic {
		p.wrongSchema(members, "", schema, schemaBasic)
		return b
	}
	p.object("", members, []field{
		{"schema", func(node) {}},
		{"entries", func(n node) {
			items := p.items("", n)
			for i, item := range items {
				if item.kind() == shape.Mapping && isBundle(item) {
					if ref, ok := p.bundleTemplate(item); ok {
						b.bundles = append(b.bundles, ref)
					}
					items[i].raw = nil
				}
			}
			if c := p.blobs("", items); c != nil {
				b.catalog = c
			}
		}},
	}, func(m member, known []field) { p.unknownField(m, known, "") })
	return b
}

func (p *parser) wrongSchema(members []member, opm, got, want string) {
	p.addSchema(lookupPath(members, "schema"), opm, "template has unknown schema (%q), should be %q", fault.Short(got), want)
}

func isBundle(n node) bool {
	for _, m := range lookup(n.members(), "schema") {
		return m.str() == declcfg.SchemaBundle
	}
	return false
}

const unexpectedFields = "unexpected fields present in basic template bundle"

// bundleTemplate reads a bundle of a basic template, which has only a schema and an image.
func (p *parser) bundleTemplate(n node) (imageRef, bool) {
	before := len(p.problems.Problems)
	ref := imageRef{path: n.path}
	var unexpected []string
	refuse := func(name string) field {
		return field{name, func(v node) {
			if !v.isZero() {
				unexpected = append(unexpected, name)
			}
		}}
	}
	p.object("", n.members(), []field{
		{"schema", func(node) {}},
		{"image", func(v node) {
			if p.want(shape.String, "", v) {
				ref.image, ref.path = v.str(), v.path
			}
		}},
		refuse("name"), refuse("package"), refuse("properties"), refuse("relatedImages"),
	}, func(m member, known []field) { p.unknownField(m, known, " in basic template bundle") })
	if len(p.problems.Problems) > before {
		return ref, false
	}
	message := ""
	switch {
	case len(unexpected) > 0:
		message = unexpectedFields + ": " + strings.Join(unexpected, ", ") + " (only schema and image are expected)"
	case ref.image == "":
		message = "the bundle has no image"
	default:
		return ref, true
	}
	p.addProblem(reported{Problem: Problem{Text: message}, path: n.path, opm: unexpectedFields})
	return ref, false
}

func (b *basic) images() []imageRef { return b.bundles }

// assemble replaces the templates of bundles by the rendered bundles.
func (b *basic) assemble(r *run) *declcfg.Catalog {
	c := copyOf(b.catalog)
	for _, ref := range b.bundles {
		c.Bundles = append(c.Bundles, r.rendered[ref.image].bundle)
	}
	return c
}
