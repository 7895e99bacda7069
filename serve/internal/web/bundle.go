package web

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/indented"
)

func bundlePage(p *page) error {
	v, err := p.view(p.query.Get("package"))
	if err != nil {
		return err
	}
	// The raw text of a bundle includes its manifests.
	place := p.c.findFirst(v.summary.name, declcfg.SchemaBundle, p.query.Get("name"))
	if place == nil {
		return errNotFound
	}
	read, err := p.bundle(place)
	if err != nil {
		return err
	}
	b, facts, all, pkg := read.of, read.facts, read.manifests, v.summary.name
	objects, unread := read.installs()
	title := cmp.Or(v.version(b.Name), name(b.Name))
	p.open(v.summary.heading()+" "+title, crumb{name(pkg), p.to("package", "name", pkg)}, crumb{text: name(b.Name)})
	p.emit(`<div class="title">`)
	p.icon(v.summary, 56, false)
	p.emit(`<div><h1>{} <span class="v">{}</span></h1><p class="id">{}</p></div></div>`+"\n", v.summary.heading(), title,
		name(b.Name))
	p.deprecation(v, declcfg.Reference{Schema: declcfg.SchemaPackage}, "The package is deprecated.")
	p.deprecation(v, declcfg.Reference{Schema: declcfg.SchemaBundle, Name: b.Name}, "This bundle is deprecated.")
	p.emit(`<div class="split"><div>`)
	p.upgrades(v, b.Name)
	p.emit(`<section class="prose" aria-labelledby="about"><h2 id="about">About</h2>`)
	p.writeProse(facts.Description, 3)
	p.emit("</section>\n")
	p.apis("Provided APIs", "provided", b, declcfg.PropertyGVK, &facts, all)
	p.examples(b, &facts)
	p.apis("Required APIs", "required", b, declcfg.PropertyGVKRequired, &facts, all)
	p.dependencies(b)
	if err := p.permissions(objects, unread, &facts); err != nil {
		return err
	}
	p.emit(`</div><aside aria-label="Facts"><dl class="facts">`)
	p.fact("Bundle image", func() { p.imageFact(b.Image) })
	p.fact("Package", func() { p.emit(`<a href="{}">{}</a>`, p.to("package", "name", pkg), name(pkg)) })
	p.csvFacts(&facts)
	p.emit("</dl></aside></div>\n")
	p.relatedImages(b)
	p.properties(slices.DeleteFunc(slices.Clone(b.Properties), func(prop declcfg.Property) bool {
		// The page needs the values of these types only.
		return slices.Contains([]string{declcfg.PropertyGVK, declcfg.PropertyGVKRequired, declcfg.PropertyPackage,
			declcfg.PropertyPackageRequired, declcfg.PropertyCSVMetadata, declcfg.PropertyBundleObject}, prop.Type)
	}))
	p.objects(b, all)
	p.close(p.to("api/v1/metas", "schema", declcfg.SchemaBundle, "package", pkg, "name", b.Name))
	return nil
}

// upgrades shows the upgrade edges of a bundle in its channels.
func (p *page) upgrades(v *view, bundle string) {
	p.emit(`<section aria-labelledby="upgrades"><h2 id="upgrades">Channels and upgrades</h2>` + "\n")
	if len(v.in[bundle]) == 0 {
		p.emit(`<p>The bundle is in no channel: it cannot be installed by way of one.</p></section>`)
		return
	}
	p.emit(
		`<div class="scroll" tabindex="0" role="group" aria-labelledby="upgrades"><table><thead><tr><th scope="col">Channel</th><th scope="col">Upgrades from</th><th scope="col">Upgraded by</th></tr></thead><tbody>` + "\n")
	for i := range v.Channels {
		ch := &v.Channels[i]
		at := slices.IndexFunc(ch.Entries, func(e declcfg.ChannelEntry) bool { return e.Name == bundle })
		if at < 0 {
			continue
		}
		e := &ch.Entries[at]
		p.emit(`<tr><th scope="row">`)
		p.channelLinks(v, []string{ch.Name})
		if v.heads[ch.Name] == bundle {
			p.emit(` <span class="tag main">head</span>`)
		}
		p.emit(`</th><td>`)
		if e.Replaces != "" {
			p.emit(`<span class="line">replaces `)
			p.entryLink(v, ch, e.Replaces)
			p.emit(` `)
			p.changesLink(v, e.Replaces, bundle, "(what changes)")
			p.emit(`</span>`)
		}
		if len(e.Skips) > 0 {
			p.emit(`<span class="line">skips `)
			p.skips(v, ch, e.Skips)
			p.emit(`</span>`)
		}
		if e.SkipRange != "" {
			p.emit(`<span class="line">skips all in <code>{}</code></span>`, name(e.SkipRange))
		}
		p.emit(`</td><td data-label="Upgraded by">`)
		var by []string
		for _, other := range ch.Entries {
			if other.Replaces == bundle || slices.Contains(other.Skips, bundle) {
				by = append(by, other.Name)
			}
		}
		p.skips(v, ch, by)
		p.emit("</td></tr>\n")
	}
	p.emit("</tbody></table></div></section>\n")
}

// maxRows is the maximum number of rows of a bundle's tables.
const maxRows = 2000

// apis shows the table of APIs that a bundle provides or requires, of which all are the manifests.
func (p *page) apis(title, id literal, b *declcfg.Bundle, kind string, facts *csv, all []manifest) {
	rows := 0
	for _, prop := range b.Properties {
		var k property.GVK
		if prop.Type != kind || json.Unmarshal(prop.Value, &k) != nil {
			continue
		}
		if rows++; rows > maxRows || !p.hasSpace() {
			break
		}
		if rows == 1 {
			p.section(title, id)
			p.emit(
				`<thead><tr><th scope="col">Kind</th><th scope="col">Group</th><th scope="col">Version</th><th scope="col">Description</th></tr></thead><tbody>` + "\n")
		}
		p.emit(`<tr><th scope="row">`)
		p.kindLink(b, all, k)
		p.emit(`</th><td data-label="Group">{}</td><td data-label="Version">{}</td><td>{}</td></tr>`+"\n", name(k.Group),
			name(k.Version), lines(clip(facts.describe(k), 600)))
	}
	if rows > 0 {
		p.emit("</tbody></table></div></section>\n")
	}
}

// section begins a section with a table. On a phone one with cells that have a data-label has a card for each row.
func (p *page) section(title, id literal) {
	p.emit(`<section aria-labelledby="` + id + `"><h2 id="` + id + `">` + title +
		`</h2><div class="scroll" tabindex="0" role="group" aria-labelledby="` + id + `"><table>` + "\n")
}

// describe returns the description of an API.
func (f *csv) describe(k property.GVK) string {
	for _, crd := range slices.Concat(f.CustomResourceDefinitions.Owned, f.CustomResourceDefinitions.Required) {
		if _, group, _ := strings.Cut(crd.Name,
			"."); crd.Kind == k.Kind && crd.Version == k.Version && (group == k.Group || group == "") {
			return crd.Description
		}
	}
	return ""
}

// dependencies shows the table of a bundle's dependencies.
func (p *page) dependencies(b *declcfg.Bundle) {
	rows := 0
	for _, prop := range b.Properties {
		var need property.PackageRequired
		if prop.Type != declcfg.PropertyPackageRequired || json.Unmarshal(prop.Value, &need) != nil {
			continue
		}
		if rows++; rows > maxRows || !p.hasSpace() {
			break
		}
		if rows == 1 {
			p.section("Dependencies", "dependencies")
			p.emit(`<thead><tr><th scope="col">Package</th><th scope="col">Versions</th></tr></thead><tbody>` + "\n")
		}
		p.emit(`<tr><th scope="row">`)
		if _, ok := p.c.byName[need.PackageName]; ok {
			p.emit(`<a href="{}">{}</a>`, p.to("package", "name", need.PackageName), name(need.PackageName))
		} else {
			p.emit(`{} <span class="faint">not in this catalog</span>`, name(need.PackageName))
		}
		p.emit(`</th><td data-label="Versions"><code>{}</code></td></tr>`+"\n", name(need.VersionRange))
	}
	if rows > 0 {
		p.emit("</tbody></table></div></section>\n")
	}
}

// relatedImages shows the table of a bundle's images.
func (p *page) relatedImages(b *declcfg.Bundle) {
	if len(b.RelatedImages) == 0 {
		return
	}
	p.section("Related images", "images")
	p.emit(`<thead><tr><th scope="col">Name</th><th scope="col">Image</th></tr></thead><tbody>` + "\n")
	for i, r := range b.RelatedImages {
		if i == maxRows || !p.hasSpace() {
			p.emit(`<tr><td colspan="2">{} more images are not shown.</td></tr>`, strconv.Itoa(len(b.RelatedImages)-i))
			break
		}
		label := cmp.Or(r.Name, "(no name)")
		if r.Name == "" && r.Image == b.Image {
			label = "(the bundle)"
		}
		p.emit(`<tr><th scope="row">{}</th><td class="image" data-label="Image"><code>{}</code></td></tr>`+"\n", name(label),
			image(r.Image))
	}
	p.emit("</tbody></table></div></section>\n")
}

// optional formats a name that may be empty.
func optional(s string) string {
	if s == "" {
		return ""
	}
	return name(s)
}

// properties shows properties as JSON.
func (p *page) properties(all []declcfg.Property) {
	if len(all) == 0 {
		return
	}
	p.emit(`<section aria-labelledby="properties"><h2 id="properties">Properties</h2>` + "\n")
	for i, prop := range all {
		if i == 200 || !p.hasSpace() {
			p.emit(`<p>{} more are not shown.</p>`, strconv.Itoa(len(all)-i))
			break
		}
		text := clip(string(prop.Value), maxJSON)
		if wide, ok := indented.Append(nil, []byte(text), "  ", 0, indented.Factor*maxJSON); ok && json.Valid([]byte(text)) {
			text = string(wide)
		}
		p.emit(`<details><summary><code>{}</code></summary><pre tabindex="0">{}</pre></details>`+"\n", name(prop.Type),
			lines(text))
	}
	p.emit("</section>\n")
}

const noManifests = `<p class="own">The catalog has no permissions and fields of this version. They are in the ` +
	`manifests, in the bundle image: <code>bindery bundle unpack</code> writes them as files.</p>`

// objects lists the manifests of a bundle in the catalog.
func (p *page) objects(b *declcfg.Bundle, all []manifest) {
	if len(all) == 0 {
		p.emit(noManifests)
		return
	}
	p.section("Manifests", "manifests")
	p.emit(
		`<thead><tr><th scope="col">Kind</th><th scope="col">Name</th><th scope="col" class="n">Bytes</th></tr></thead><tbody>` + "\n")
	for i := range all {
		if i == maxRows || !p.hasSpace() {
			p.emit(`<tr><td colspan="3">More are not shown.</td></tr>`)
			break
		}
		p.emit(`<tr><th scope="row">{}</th><td>`, optional(all[i].kind))
		p.fileLink(b, &all[i], name(all[i].name))
		p.emit(`</td><td class="n" data-label="Bytes">{}</td></tr>`+"\n", strconv.Itoa(len(all[i].text)))
	}
	p.emit("</tbody></table></div></section>\n")
}
