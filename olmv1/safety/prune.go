package safety

import (
	"context"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	versionhelper "k8s.io/apimachinery/pkg/version"
)

// Limits of the comparison of two definitions.
const (
	// maxVisits bounds the pairs of schemas that are looked at. Pairs of served versions grow with their square.
	maxVisits = 3_000_000
	// maxCopies bounds what the library is given: it keeps a copy of a schema for each of its ancestors, and its path.
	maxCopies = 300_000
	pathUnit  = 32  // bytes of a path that count as a copy
	pairCost  = 150 // the cost of comparing a pair of served versions, however little differs
	// maxLists is how deep lists of schemas, such as allOf, may be in one another: the time in which differences in them
	// are written grows exponentially with it.
	maxLists = 6
)

// pruning reduces two schemas to the properties in which they differ. The library copies every schema once for each of
// its ancestors, several times, so that whole definitions cost it up to seconds; what is equal has no part in its
// answer, and neither have descriptions of properties, which its configuration leaves out, nor added properties.
type pruning struct {
	ctx            context.Context
	visits, copies int
	err            error
}

// place is where a schema is: how many schemas it is in, the length of its path, and the lists of schemas around it.
type place struct{ depth, path, lists int }

func (p place) in(name string) place { return place{p.depth + 1, p.path + len(name) + 1, p.lists} }

// goesOn ends the pruning at a limit, or with the context.
func (p *pruning) goesOn() bool {
	switch {
	case p.err != nil:
	case p.visits > maxVisits || p.copies > maxCopies:
		p.err = limit("they differ in more than can be compared")
	case p.visits%1024 == 0:
		p.err = context.Cause(p.ctx)
	}
	return p.err == nil
}

// schemas returns what differs in two schemas; nil if nothing does.
func (p *pruning) schemas(a, b *apiextensionsv1.JSONSchemaProps, at place) (x, y *apiextensionsv1.JSONSchemaProps) {
	if p.visits++; !p.goesOn() {
		return nil, nil
	}
	x, y = stripCompared(a), stripCompared(b)
	differ := !equality.Semantic.DeepEqual(x, y)
	if differ {
		p.countCost(x, at)
		p.countCost(y, at)
	}
	if sharePool(a, b) {
		if !differ {
			return nil, nil
		}
		p.copies += 2 * at.depth
		return x, y
	}
	for name := range a.Properties {
		from := a.Properties[name]
		to, ok := b.Properties[name]
		if !ok {
			p.countCost(&from, at.in(name))
			x.Properties, differ = setSchema(x.Properties, name, &from), true
		} else if cx, cy := p.schemas(&from, &to, at.in(name)); cx != nil {
			x.Properties, y.Properties, differ = setSchema(x.Properties, name, cx), setSchema(y.Properties, name, cy), true
		}
	}
	switch {
	case a.Items == nil:
	case b.Items == nil || a.Items.Schema == nil || b.Items.Schema == nil:
		if !equality.Semantic.DeepEqual(a.Items, b.Items) {
			x.Items, y.Items, differ = a.Items, b.Items, true
			p.countCost(&apiextensionsv1.JSONSchemaProps{Items: a.Items}, at)
			p.countCost(&apiextensionsv1.JSONSchemaProps{Items: b.Items}, at)
		}
	default:
		if cx, cy := p.schemas(a.Items.Schema, b.Items.Schema, at.in("items")); cx != nil {
			x.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: cx}
			y.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: cy}
			differ = true
		}
	}
	if !differ || !p.goesOn() {
		return nil, nil
	}
	p.copies += 2 * at.depth
	return x, y
}

// stripCompared returns a copy of a schema without those that are compared by themselves.
func stripCompared(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	out := *s
	out.Properties, out.Items = nil, nil
	return &out
}

// countCost counts what a schema costs that the library is given as a whole.
func (p *pruning) countCost(s *apiextensionsv1.JSONSchemaProps, at place) {
	if p.visits++; !p.goesOn() {
		return
	}
	p.copies += at.depth + at.path/pathUnit
	if len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 {
		if at.lists++; at.lists > maxLists {
			p.err = limit("schemas in lists (allOf, anyOf, oneOf) are nested deeper than %d", maxLists)
			return
		}
	}
	visitSchemas(s, func(name string, inner *apiextensionsv1.JSONSchemaProps) { p.countCost(inner, at.in(name)) })
}

func setSchema(m map[string]apiextensionsv1.JSONSchemaProps, name string,
	s *apiextensionsv1.JSONSchemaProps) map[string]apiextensionsv1.JSONSchemaProps {
	if m == nil {
		m = map[string]apiextensionsv1.JSONSchemaProps{}
	}
	m[name] = *s
	return m
}

// empty is the schema of a version in which nothing differs.
func empty() *apiextensionsv1.CustomResourceValidation {
	return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}
}

// pairUnserved returns two definitions, whose versions are not served, for the comparison of versions of one name.
func (p *pruning) pairUnserved(from, to *crd) (a, b *apiextensionsv1.CustomResourceDefinition) {
	a, b = shell(from), shell(to)
	index := map[string]int{}
	for i, v := range to.Spec.Versions {
		index[v.Name] = i
		b.Spec.Versions = append(b.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v.Name,
			Schema: empty()})
	}
	for _, v := range from.Spec.Versions {
		out := apiextensionsv1.CustomResourceDefinitionVersion{Name: v.Name, Schema: empty()}
		if i, ok := index[v.Name]; ok {
			x, y := p.schemas(v.Schema.OpenAPIV3Schema, to.Spec.Versions[i].Schema.OpenAPIV3Schema, place{depth: 1})
			if x != nil {
				out.Schema.OpenAPIV3Schema, b.Spec.Versions[i].Schema.OpenAPIV3Schema = x, y
			}
		}
		a.Spec.Versions = append(a.Spec.Versions, out)
	}
	return a, b
}

// shell returns a definition without its versions.
func shell(d *crd) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: d.ObjectMeta, Status: d.Status}
	out.Spec.Scope = d.Spec.Scope
	return out
}

// served returns the served versions in the order of the library.
func served(d *crd) []apiextensionsv1.CustomResourceDefinitionVersion {
	out := slices.DeleteFunc(slices.Clone(d.Spec.Versions), func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !v.Served
	})
	slices.SortFunc(out, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int {
		return versionhelper.CompareKubeAwareVersionStrings(a.Name, b.Name)
	})
	return out
}

// pairs calls a function for each pair of served versions that differ in the new definition, with a definition that has
// only these two, and one with those of the old definition.
func (p *pruning) pairs(from, to *crd, visit func(a, b *apiextensionsv1.CustomResourceDefinition)) {
	if c := to.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		return // the configuration leaves these out
	}
	old := map[string]apiextensionsv1.CustomResourceDefinitionVersion{}
	for _, v := range served(from) {
		old[v.Name] = v
	}
	all := served(to)
	for i := range all {
		for k := i + 1; k < len(all) && p.err == nil; k++ {
			b := p.pair(to, all[i], all[k])
			if b == nil {
				continue
			}
			a := shell(from)
			first, ok := old[all[i].Name]
			second, both := old[all[k].Name]
			if ok && both {
				if other := p.pair(from, first, second); other != nil {
					a = other
				}
			}
			p.copies += pairCost
			if p.goesOn() {
				visit(a, b)
			}
		}
	}
}

// pair returns a definition with two versions; nil if they are equal.
func (p *pruning) pair(d *crd, first, second apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
	x, y := p.schemas(first.Schema.OpenAPIV3Schema, second.Schema.OpenAPIV3Schema, place{depth: 1})
	if x == nil {
		return nil
	}
	out := shell(d)
	first.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: x}
	second.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: y}
	out.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{first, second}
	return out
}
