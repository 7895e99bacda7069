package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/graph"
	"github.com/operator-bindery/bindery/declcfg/property"
)

// oneChannel is the number of channels from which the page of a package draws only the default channel.
const oneChannel = 24

// packagePage shows a package: its description, channels, upgrade graph and bundles.
func packagePage(p *page) error {
	v, err := p.view(p.query.Get("name"))
	if err != nil {
		return err
	}
	s := v.summary
	read := &readBundle{of: &declcfg.Bundle{}}
	if b := p.c.findFirst(s.name, declcfg.SchemaBundle, s.head); b != nil {
		if read, err = p.bundle(b); err != nil {
			return err
		}
	}
	bundle, facts, all := read.of, read.facts, read.manifests
	p.open(s.heading(), crumb{text: name(s.name)})
	p.packageTitle(v, &facts)
	p.deprecation(v, declcfg.Reference{Schema: declcfg.SchemaPackage}, "This package is deprecated.")
	objects, unread := read.installs()
	p.jump(bundle, &facts, len(objects) > 0)
	p.emit(`<div class="split"><div><section class="prose" aria-labelledby="about"><h2 id="about">About</h2>`)
	about := facts.Description
	if strings.TrimSpace(about) == "" {
		about = v.pkg.Description
	}
	p.writeProse(about, 3)
	p.emit("</section>\n")
	p.installSection(v, &facts)
	p.apis("Provided APIs", "provided", bundle, declcfg.PropertyGVK, &facts, all)
	p.examples(bundle, &facts)
	p.apis("Required APIs", "required", bundle, declcfg.PropertyGVKRequired, &facts, all)
	p.dependencies(bundle)
	if err := p.permissions(objects, unread, &facts); err != nil {
		return err
	}
	if len(all) == 0 && v.there[s.head] {
		p.emit(noManifests)
	}
	p.emit(`</div><aside aria-labelledby="facts"><h2 class="unseen" id="facts">Facts</h2><dl class="facts">`)
	p.fact("Default channel", func() { p.channelLinks(v, []string{s.defaultChannel}) })
	if s.head != "" {
		p.fact("Version in the default channel", func() {
			address := ""
			if v.there[s.head] {
				address = p.to("bundle", "package", s.name, "name", s.head)
			}
			p.a(address, cmp.Or(v.version(s.head), name(s.head)))
		})
	}
	p.csvFacts(&facts)
	p.fact("Images", func() { p.a(p.to("images", "package", s.name), "All images of this package") })
	p.emit("</dl></aside></div>\n")
	p.channels(v)
	if err := p.graph(v, ""); err != nil {
		return err
	}
	p.bundles(v)
	p.others(v)
	p.close(p.to("api/v1/metas", "package", s.name))
	return nil
}

// jump links to the sections of the page of a package, those that it has.
func (p *page) jump(b *declcfg.Bundle, facts *csv, permissions bool) {
	p.emit(`<nav class="jump" aria-label="On this page"><a href="#about">About</a><a href="#install">Install</a>`)
	if slices.ContainsFunc(b.Properties, func(prop declcfg.Property) bool {
		return prop.Type == declcfg.PropertyGVK && json.Unmarshal(prop.Value, &property.GVK{}) == nil
	}) {
		p.emit(`<a href="#provided">APIs</a>`)
	}
	examples := facts.Annotations["operatorframework.io/initialization-resource"] + facts.Annotations["alm-examples"]
	if strings.Trim(examples, "[] \t\r\n") != "" {
		p.emit(`<a href="#examples">Examples</a>`)
	}
	if permissions {
		p.emit(`<a href="#permissions">Permissions</a>`)
	}
	p.emit(`<a href="#facts">Facts</a><a href="#channels">Channels</a><a href="#graph">Upgrade graph</a>` +
		`<a href="#bundles">Versions</a></nav>` + "\n")
}

// packageTitle shows the head of the page of a package.
func (p *page) packageTitle(v *view, facts *csv) {
	s := v.summary
	p.emit(`<div class="title">`)
	p.icon(s, 72, false)
	p.emit(`<div><h1>{}</h1><p class="by">{}`, s.heading(), name(s.name))
	if s.provider != "" {
		p.emit(` · by `)
		p.a(p.to("./", "provider", s.provider), name(s.provider))
	}
	p.emit(`</p>`)
	if text := strings.TrimSpace(facts.Annotations["description"]); text != "" {
		p.emit(`<p class="lead">{}</p>`, lines(clip(text, 600)))
	}
	p.emit(`<p class="tags">`)
	if s.deprecated {
		p.emit(`<span class="tag old">Deprecated</span>`)
	}
	if s.version != "" {
		p.emit(`<span class="tag main">{}</span>`, name(clip(s.version, 40)))
	}
	for _, one := range s.categories[:min(len(s.categories), 4)] {
		p.emit(`<span class="tag">{}</span>`, name(clip(one, 40)))
	}
	if s.level > 0 {
		p.level(s.level)
	}
	p.emit("</p></div></div>\n")
}

func channelPage(p *page) error {
	v, err := p.view(p.query.Get("package"))
	if err != nil {
		return err
	}
	wanted := p.query.Get("name")
	i := slices.IndexFunc(v.Channels, func(ch declcfg.Channel) bool { return ch.Name == wanted })
	if i < 0 {
		return errNotFound
	}
	ch, pkg := &v.Channels[i], v.summary.name
	p.open(name(wanted)+" · "+v.summary.heading(), crumb{name(pkg), p.to("package", "name", pkg)},
		crumb{text: "Channel " + name(wanted)})
	p.emit(`<h1>Channel {}</h1><p class="id">of <a href="{}">{}</a>`, name(wanted), p.to("package", "name", pkg),
		v.summary.heading())
	if wanted == v.pkg.DefaultChannel {
		p.emit(` <span class="tag main">default channel</span>`)
	}
	p.emit("</p>\n")
	p.deprecation(v, declcfg.Reference{Schema: declcfg.SchemaChannel, Name: wanted}, "This channel is deprecated.")
	if err := p.graph(v, wanted); err != nil {
		return err
	}
	p.emit(`<section aria-labelledby="entries"><h2 id="entries">Entries</h2>
<div class="scroll" tabindex="0" role="group" aria-labelledby="entries"><table>
<thead><tr><th scope="col">Version</th><th scope="col">Bundle</th><th scope="col">Replaces</th><th scope="col">Skips</th>
<th scope="col">Skip range</th></tr></thead><tbody>` + "\n")
	var entries []*declcfg.ChannelEntry
	for i := range ch.Entries {
		entries = append(entries, &ch.Entries[i])
	}
	slices.SortStableFunc(entries, func(a, b *declcfg.ChannelEntry) int { return v.newer(a.Name, b.Name) })
	first := v.heads[ch.Name]
	for i, e := range entries {
		if !p.hasSpace() {
			p.emit(`<tr><td colspan="5">{} more entries are not shown.</td></tr>`, strconv.Itoa(len(entries)-i))
			break
		}
		p.emit(`<tr><td class="v">{}</td><th scope="row">`, v.version(e.Name))
		p.bundleLink(v, e.Name)
		if e.Name == first {
			p.emit(` <span class="tag main">head</span>`)
		}
		p.emit(`</th><td data-label="Replaces">`)
		p.entryLink(v, ch, e.Replaces)
		p.emit(`</td><td data-label="Skips">`)
		p.skips(v, ch, e.Skips)
		p.emit(`</td><td data-label="Skip range"><code>{}</code></td></tr>`+"\n", lines(clip(e.SkipRange, maxName)))
	}
	p.emit("</tbody></table></div></section>\n")
	p.properties(ch.Properties)
	p.close(p.to("api/v1/metas", "schema", declcfg.SchemaChannel, "package", pkg, "name", wanted))
	return nil
}

// maxSkips is the maximum number of skipped bundles in a row.
const maxSkips = 40

func (p *page) skips(v *view, ch *declcfg.Channel, skips []string) {
	for i, skip := range skips {
		if i == maxSkips {
			p.emit(` and {} more`, strconv.Itoa(len(skips)-i))
			return
		}
		if i > 0 {
			p.emit(", ")
		}
		p.entryLink(v, ch, skip)
	}
}

// entryLink shows a bundle that an entry of a channel names, and says if the channel or the catalog does not have it.
func (p *page) entryLink(v *view, ch *declcfg.Channel, bundle string) {
	p.bundleLink(v, bundle)
	switch {
	case bundle == "":
	case !v.there[bundle]:
		p.emit(` <span class="faint">(not in this catalog)</span>`)
	case !slices.Contains(v.in[bundle], ch.Name):
		p.emit(` <span class="faint">(not in this channel)</span>`)
	}
}

// bundleLink shows the name of a bundle, with a link if the catalog has it.
func (p *page) bundleLink(v *view, bundle string) {
	switch {
	case bundle == "":
	case !v.there[bundle]:
		p.emit(`<span class="faint">{}</span>`, name(bundle))
	default:
		p.a(p.to("bundle", "package", v.summary.name, "name", bundle), name(bundle))
	}
	if _, old := v.deprecated[declcfg.Reference{Schema: declcfg.SchemaBundle, Name: bundle}]; old {
		p.emit(` <span class="tag old">deprecated</span>`)
	}
}

// deprecation shows that something is deprecated, and the message.
func (p *page) deprecation(v *view, r declcfg.Reference, says string) {
	if message, ok := v.deprecated[r]; ok {
		p.emit(`<div class="warning" role="note"><strong>{}</strong> {}</div>`+"\n", says, lines(clip(message, 4000)))
	}
}

func (p *page) fact(name string, value func()) {
	p.emit(`<div><dt>{}</dt><dd>`, name)
	value()
	p.emit("</dd></div>\n")
}

func (p *page) channels(v *view) {
	p.emit(`<section aria-labelledby="channels"><h2 id="channels">Channels</h2>
<div class="scroll" tabindex="0" role="group" aria-labelledby="channels"><table>
<thead><tr><th scope="col">Channel</th><th scope="col">Version</th><th scope="col">Head</th>
<th scope="col" class="n">Bundles</th></tr></thead><tbody>` + "\n")
	for i := range v.Channels {
		ch := &v.Channels[i]
		if !p.hasSpace() {
			p.emit(`<tr><td colspan="4">{} more channels are not shown.</td></tr>`, strconv.Itoa(len(v.Channels)-i))
			break
		}
		p.emit(`<tr><th scope="row">`)
		p.channelLinks(v, []string{ch.Name})
		if ch.Name == v.pkg.DefaultChannel {
			p.emit(` <span class="tag main">default</span>`)
		}
		if message, ok := v.deprecated[declcfg.Reference{Schema: declcfg.SchemaChannel, Name: ch.Name}]; ok {
			p.emit(` <span class="tag old">deprecated</span><span class="why">{}</span>`, lines(clip(message, 400)))
		}
		first := v.heads[ch.Name]
		p.emit(`</th><td class="v">{}</td><td>`, v.version(first))
		p.bundleLink(v, first)
		p.emit(`</td><td class="n" data-label="Bundles">{}</td></tr>`+"\n", strconv.Itoa(len(ch.Entries)))
	}
	p.emit("</tbody></table></div></section>\n")
}

// graph draws the upgrade graph of one channel, or of all if there are not too many.
func (p *page) graph(v *view, channel string) error {
	p.emit(`<section aria-labelledby="graph"><h2 id="graph">Upgrade graph</h2>` + "\n")
	o := graph.Options{Package: v.summary.name}
	if channel == "" && len(v.Channels) > oneChannel {
		p.emit(
			`<p class="faint">The package has {}: this is the default one. Each has its own page with its own graph.</p>`,
			count(len(v.Channels), "channel"))
		channel = v.pkg.DefaultChannel
	}
	if channel != "" {
		o.Channels = []string{channel}
	}
	var d drawing
	switch err := o.WritePictures(&d, v.Catalog); {
	case errors.Is(err, errPageSize):
		p.emit(
			`<p class="notice">The graph is too large to be drawn here.
The pages of the channels have it in parts, and as tables.</p>`)
	case err != nil:
		return err
	default:
		p.emit(`<div class="scroll graph" tabindex="0" role="group" aria-labelledby="graph">`)
		p.draw(&d)
		p.emit(
			`</div><details class="legend"><summary>What the signs mean</summary>
<div class="scroll" tabindex="0" role="group" aria-label="What the signs mean">`)
		var legend drawing
		if err := graph.WriteLegend(&legend); err != nil {
			return err
		}
		p.draw(&legend)
		p.emit("</div></details>\n")
	}
	p.emit("</section>\n")
	return nil
}

func (p *page) bundles(v *view) {
	p.emit(`<section aria-labelledby="bundles"><h2 id="bundles">Versions</h2>` + "\n")
	if before := v.before(v.summary.head); before != "" {
		p.emit(`<p>`)
		p.changesLink(v, before, v.summary.head, "What changes between two versions")
		p.emit("</p>\n")
	}
	p.emit(`<div class="scroll" tabindex="0" role="group" aria-labelledby="bundles"><table class="bundles">
<thead><tr><th scope="col">Version</th><th scope="col">Bundle</th><th scope="col">Channels</th>
<th scope="col">Image</th></tr></thead><tbody>` + "\n")
	for i := range v.Bundles {
		b := &v.Bundles[i]
		if !p.hasSpace() {
			p.emit(`<tr><td colspan="4">{} more bundles are not shown.</td></tr>`, strconv.Itoa(len(v.Bundles)-i))
			break
		}
		p.emit(`<tr><td class="v">{}</td><th scope="row">`, v.version(b.Name))
		p.bundleLink(v, b.Name)
		if message := v.deprecated[declcfg.Reference{Schema: declcfg.SchemaBundle, Name: b.Name}]; message != "" {
			p.emit(`<span class="why">{}</span>`, lines(clip(message, 400)))
		}
		p.emit(`</th><td data-label="Channels">`)
		p.channelLinks(v, v.in[b.Name])
		p.emit(`</td><td class="image"><code>{}</code></td></tr>`+"\n", image(b.Image))
	}
	p.emit("</tbody></table></div></section>\n")
}

func (p *page) channelLinks(v *view, channels []string) {
	if len(channels) == 0 {
		p.emit(`<span class="faint">none</span>`)
	}
	for i, ch := range channels {
		if i == maxSkips {
			p.emit(` and {} more`, strconv.Itoa(len(channels)-i))
			return
		}
		if i > 0 {
			p.emit(", ")
		}
		address := ""
		if _, there := v.heads[ch]; there {
			address = p.to("channel", "package", v.summary.name, "name", ch)
		}
		p.a(address, name(ch))
	}
}

// image returns the displayed form of an image reference.
func image(ref string) string { return graph.Visible(clip(ref, 400)) }

// others lists the blobs of schemas other than OLM's.
func (p *page) others(v *view) {
	if len(v.Others) == 0 {
		return
	}
	p.emit(`<section aria-labelledby="others"><h2 id="others">Other blobs</h2><ul>` + "\n")
	for i, m := range v.Others {
		if i == 500 || !p.hasSpace() {
			p.emit(`<li>{} more</li>`, strconv.Itoa(len(v.Others)-i))
			break
		}
		p.emit(`<li>`)
		p.a(p.to("api/v1/metas", "schema", m.Schema, "package", m.Package, "name", m.Name),
			name(cmp.Or(m.Name, m.Schema)))
		p.emit(" <code>{}</code></li>\n", name(m.Schema))
	}
	p.emit("</ul></section>\n")
}
