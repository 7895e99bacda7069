package sbom

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/printable"
)

// kind says what a component is.
type kind string

const (
	kindImage    kind = "image"
	kindPackage  kind = "package"
	kindBundle   kind = "bundle"
	kindRelated  kind = "relatedImage"
	kindProgram  kind = "program"
	kindModule   kind = "module"
	kindLayer    kind = "layer"
	kindOperator kind = "clusterServiceVersion"
)

// component is an entry of a document, in the terms that both formats share.
type component struct {
	kind kind
	// id is the SPDX identifier without its prefix, ref the bom-ref of CycloneDX. Both are unique in a document.
	id, ref       string
	name, version string
	digest        digest.Digest
	purl          string
	// comment is for readers of both formats, remark for those of SPDX, which has no properties.
	comment, remark string
	properties      []property
	// contains and needs are the components in this one and those that it needs at run time; both are sorted.
	contains, needs []*component
}

// property is a CycloneDX property. The prefix "operatorframework:" is left out.
type property struct{ name, value string }

// graph makes the components of an inventory.
type graph struct {
	out  []*component
	ids  map[string]bool
	refs map[string]bool
	// images are the components of images by digest, or by the text of the reference if it has none.
	images  map[string]*component
	roles   map[*component]map[string]bool
	modules map[string]*component
	layers  map[digest.Digest]*component
}

// components returns the components of an inventory: the subject first, the others by kind and sorted within each kind.
func components(inv *Inventory) []*component {
	g := &graph{ids: map[string]bool{"DOCUMENT": true}, refs: map[string]bool{}, images: map[string]*component{},
		roles: map[*component]map[string]bool{}, modules: map[string]*component{},
		layers: map[digest.Digest]*component{}}
	top := &component{}
	if !inv.alone {
		top = g.image(inv.Image, "image")
	}
	owners := []*component{top}
	all := []Contents{inv.Contents}
	instances := slices.Clone(inv.Instances)
	slices.SortStableFunc(instances, func(x, y Instance) int { return cmp.Compare(x.Digest, y.Digest) })
	for _, i := range instances {
		if _, ok := g.images[i.Digest.String()]; ok {
			continue
		}
		c := g.image(i.Image, "image-"+short(i.Digest))
		top.contains = append(top.contains, c)
		owners, all = append(owners, c), append(all, i.Contents)
	}
	g.catalog(top, inv.Packages)
	g.operator(top, inv.Operator)
	g.programs(owners, all)
	for n, c := range all {
		for _, l := range c.Layers {
			owners[n].contains = append(owners[n].contains, g.layer(l))
		}
	}
	for c, roles := range g.roles {
		for _, r := range slices.Sorted(maps.Keys(roles)) {
			c.properties = append(c.properties, property{"relatedImage", printable.Text(r)})
		}
	}
	for _, c := range g.out {
		c.contains, c.needs = sorted(c.contains), sorted(c.needs)
	}
	return g.out
}

// sorted sorts components by their identifiers and removes duplicates.
func sorted(list []*component) []*component {
	slices.SortFunc(list, func(x, y *component) int { return cmp.Compare(x.id, y.id) })
	return slices.Compact(list)
}

// add adds a component with identifiers that no other one has. key is what distinguishes it.
func (g *graph) add(c *component, key string) *component {
	for _, text := range []*string{&c.name, &c.version, &c.comment, &c.remark} {
		*text = printable.Text(*text)
	}
	c.id = g.unique(g.ids, identifier(c.id), "-", key)
	c.ref = g.unique(g.refs, printable.Text(c.ref), "#", key)
	g.out = append(g.out, c)
	return c
}

// unique returns a name that is not taken: a second one gets a hash of its key.
func (g *graph) unique(taken map[string]bool, name, separator, key string) string {
	for unlike := name; ; key += "+" {
		if !taken[unlike] {
			taken[unlike] = true
			return unlike
		}
		unlike = name + separator + hash(key)
	}
}

// identifier replaces what SPDX does not allow in an identifier. A text that was changed gets a hash of itself, as
// others would be changed to the same.
func identifier(s string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, s)
	if clean != s {
		clean += "-" + hash(s)
	}
	return clean
}

// hash is a short hash of a text.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// short is the beginning of a digest.
func short(d digest.Digest) string {
	text := d.Encoded()
	return text[:min(len(text), 16)]
}

// image adds the subject, or an image of an index.
func (g *graph) image(i Image, id string) *component {
	c := &component{kind: kindImage, id: id, name: cmp.Or(i.Name, i.Digest.String()), version: i.Digest.String(),
		digest: i.Digest, purl: ociPURL(i.Name, i.Digest, i.Architecture)}
	c.ref = cmp.Or(c.purl, "image:"+i.Digest.String())
	g.images[i.Digest.String()] = c
	return g.add(c, i.Digest.String())
}

// layer adds a layer, once for all images that have it.
func (g *graph) layer(l Layer) *component {
	if c, ok := g.layers[l.Digest]; ok {
		return c
	}
	c := g.add(&component{kind: kindLayer, id: "layer-" + short(l.Digest), ref: "layer:" + l.Digest.String(),
		name: "layer " + l.Digest.String(), version: l.Digest.String(), digest: l.Digest,
		comment: "layer of the media type " + l.MediaType + "; its files are not described"}, l.Digest.String())
	g.layers[l.Digest] = c
	return c
}
