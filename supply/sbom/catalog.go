package sbom

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/operator-bindery/bindery/internal/printable"
)

// catalog adds the packages of a catalog, their bundles, and the images that the bundles need.
func (g *graph) catalog(top *component, packages []Package) {
	owners := make([]*component, len(packages))
	for n, p := range packages {
		owners[n] = g.add(&component{kind: kindPackage, id: "package-" + p.Name, ref: "olm-package:" + p.Name,
			name: p.Name, version: p.DefaultChannel, remark: "OLM package; versionInfo is its default channel",
			properties: []property{{"kind", string(kindPackage)}}}, p.Name)
		top.contains = append(top.contains, owners[n])
	}
	var bundles []*component
	var related [][]Reference
	for n, p := range packages {
		for _, b := range p.Bundles {
			c := g.bundle(p.Name, b)
			owners[n].contains = append(owners[n].contains, c)
			bundles, related = append(bundles, c), append(related, b.Related)
		}
	}
	g.related(bundles, related)
}

// bundle adds a bundle of a catalog.
func (g *graph) bundle(pkg string, b Bundle) *component {
	c := &component{kind: kindBundle, id: "bundle-" + b.Name, name: b.Name, version: b.Version, digest: b.Image.Digest,
		purl:       ociPURL(b.Image.Name, b.Image.Digest, ""),
		properties: []property{{"kind", string(kindBundle)}, {"package", printable.Text(pkg)}}}
	key := pkg + "\x00" + b.Name
	switch {
	case b.Image.Text == "":
		c.comment = "it is in no image: its content is not known"
	case c.digest == "":
		c.comment = "image " + b.Image.Text + ", " + unknownContent(b.Image)
	}
	// Bundles of two names in one image are two entries, of which the first has the purl as its reference.
	own := "olm-bundle:" + pkg + ":" + b.Name
	c.ref = own
	if c.purl != "" && !g.refs[c.purl] {
		c.ref = c.purl
	}
	g.add(c, key)
	if at := imageKey(b.Image); at != "" && g.images[at] == nil {
		g.images[at] = c
	}
	return c
}

// operator adds the ClusterServiceVersion of a bundle image, and the images that it needs.
func (g *graph) operator(top *component, o *Operator) {
	if o == nil {
		return
	}
	c := g.add(&component{kind: kindOperator, id: "csv", ref: "olm-csv:" + o.Name, name: o.Name, version: o.Version,
		remark:     "ClusterServiceVersion of the package " + o.Package,
		properties: []property{{"kind", string(kindOperator)}, {"package", printable.Text(o.Package)}}}, o.Name)
	top.contains = append(top.contains, c)
	g.related([]*component{c}, [][]Reference{o.Related})
}

// imageKey identifies an image that is referred to: by its digest, else by the text of the reference.
func imageKey(r Reference) string {
	if r.Digest != "" {
		return r.Digest.String()
	}
	return r.Text
}

// related adds the images that components need: each digest once, and each reference without a digest once.
func (g *graph) related(owners []*component, lists [][]Reference) {
	type image struct {
		Reference
		roles map[string]bool
	}
	found := map[string]*image{}
	for _, list := range lists {
		for _, r := range list {
			key := imageKey(r)
			if key == "" {
				continue
			}
			i, ok := found[key]
			if !ok {
				i = &image{r, map[string]bool{}}
				found[key] = i
			}
			// Of several names for one image the first one counts.
			if r.Text < i.Text {
				i.Reference = r
			}
			if r.Role != "" {
				i.roles[r.Role] = true
			}
		}
	}
	byTag := 0
	keys := slices.SortedFunc(maps.Keys(found), func(x, y string) int {
		return cmp.Or(byTagLast(found[x].Reference, found[y].Reference), cmp.Compare(x, y))
	})
	for _, key := range keys {
		i := found[key]
		c, ok := g.images[key]
		if !ok {
			if i.Digest == "" {
				byTag++
			}
			c = g.relatedImage(i.Reference, byTag)
			g.images[key] = c
		}
		if c.kind == kindRelated {
			g.roles[c] = i.roles
		}
	}
	for n, list := range lists {
		for _, r := range list {
			// Most bundles name their own image too.
			if c := g.images[imageKey(r)]; c != nil && c != owners[n] {
				owners[n].needs = append(owners[n].needs, c)
			}
		}
	}
}

// relatedImage adds an image that others need. number counts the images without a digest.
func (g *graph) relatedImage(r Reference, number int) *component {
	c := &component{kind: kindRelated, name: cmp.Or(r.Name, r.Text), digest: r.Digest,
		purl: ociPURL(r.Name, r.Digest, ""), properties: []property{{"kind", string(kindRelated)}}}
	if r.Digest != "" {
		c.id, c.version = "image-"+short(r.Digest), r.Digest.String()
		c.ref = cmp.Or(c.purl, "image:"+r.Digest.String())
	} else {
		c.id, c.version, c.ref = "image-bytag-"+strconv.Itoa(number), r.Tag, "image:"+r.Text
		c.comment = unknownContent(r)
	}
	return g.add(c, r.Text)
}

// unknownContent says why an image has no digest.
func unknownContent(r Reference) string {
	switch {
	case r.Name == "":
		return "not a reference of an image: its content is not known"
	case r.Tag == "":
		return "named without a digest: its content is not known"
	}
	return "named by tag " + r.Tag + " only: its content is not known"
}

// byTagLast orders references with a digest before others.
func byTagLast(x, y Reference) int {
	switch {
	case (x.Digest == "") == (y.Digest == ""):
		return 0
	case x.Digest == "":
		return 1
	}
	return -1
}
