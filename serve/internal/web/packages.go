package web

import (
	"maps"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/declcfg"
)

// maxValues is how many values of a facet are shown at once. The rest, and those that lead to no package, is folded, up
// to maxFolded.
const (
	maxValues = 8
	maxFolded = 500
)

// packagesPage lists the packages of the catalog, or those that a request asks for.
func packagesPage(p *page) error {
	want := readChoice(p.query)
	got := p.c.choose(want)
	pages := max((len(got.packages)+pageSize-1)/pageSize, 1)
	want.page = min(want.page, pages)
	title := "Packages"
	if want.text != "" {
		title = name(want.text) + " · Packages"
	}
	p.open(title)
	p.emit(`<div class="hero"><h1>{}</h1>
<p class="faint">{} · {}</p>
<form class="search" id="find" role="search" action="{}" method="get"`+p.live("", " hidden")+`>
<label class="unseen" for="q">Search packages</label>
<span class="field"><input type="search" id="q" name="q" value="{}"
placeholder="Name, keyword, provider, kind" maxlength="200" autocomplete="off" spellcheck="false"><button>Search</button></span>
</form></div>
`, p.site, count(len(p.c.packages), "package"), count(p.c.bundles, "bundle"), p.to("./"), want.text)
	if len(p.c.packages) == 0 {
		p.emit(`<div class="empty"><h2>The catalog has no packages</h2></div>`)
		p.close(p.to("api/v1/metas", "schema", declcfg.SchemaPackage))
		return nil
	}
	p.emit(`<div class="browse"><div class="side"` + p.live("", " hidden") + `>`)
	p.filters(got)
	p.emit(`</div><section class="results" id="results" aria-label="Packages">` + "\n")
	p.results(&want, got, pages)
	p.emit("</section></div>\n")
	p.close(p.to("api/v1/metas", "schema", declcfg.SchemaPackage))
	return nil
}

// filters shows the facets as checkboxes of the form of the search.
func (p *page) filters(got found) {
	p.emit(`<details class="filters"><summary>Filters</summary><div class="facets">` + "\n")
	for i, f := range facets {
		values := got.facets[i]
		if len(values) == 0 {
			continue
		}
		p.emit(`<fieldset><legend>` + f.label + `</legend>`)
		folded, shown := false, slices.IndexFunc(values, func(v *facetValue) bool { return !v.useful() })
		if shown > maxValues+2 || shown < 0 && len(values) > maxValues+2 {
			shown = maxValues
		}
		for n, v := range values {
			if n == shown {
				p.emit(`<details`)
				if slices.ContainsFunc(values[n:], func(v *facetValue) bool { return v.chosen }) {
					p.emit(` open`)
				}
				p.emit(`><summary>{} more</summary>`, strconv.Itoa(len(values)-n))
				folded = true
			}
			if n == maxFolded {
				break
			}
			p.emit(`<label class="pick"><input type="checkbox" form="find" name="{}" value="{}"`, f.key, v.text)
			if v.chosen {
				p.emit(` checked`)
			}
			p.emit(`><span>{}</span> <span class="n">{}</span></label>`+"\n", name(v.text), strconv.Itoa(v.count))
		}
		if folded {
			p.emit(`</details>`)
		}
		p.emit("</fieldset>\n")
	}
	p.emit(`<p class="apply"><button form="find">Apply filters</button></p></div></details>`)
}

// results shows the packages of one page of the list.
func (p *page) results(want *choice, got found, pages int) {
	p.emit(`<div class="bar"><p id="found">`)
	if want.narrowed() {
		p.emit(`{} of {}`, count(len(got.packages), "package"), strconv.Itoa(len(p.c.packages)))
		if want.text != "" {
			p.emit(` for “{}”`, name(want.text))
			p.categoriesOf(want, got)
		}
	} else {
		p.emit(`{}`, count(len(got.packages), "package"))
	}
	p.emit(`</p><label class="sort"` + p.live("", " hidden") + `>Sort by <select form="find" name="sort">`)
	for _, o := range orders {
		label := o.label
		switch {
		case len(want.words) > 0:
		case o.key == "name":
			continue
		case o.key == "": // without words all match equally, and the names are the order
			label = "Name"
		}
		p.emit(`<option value="{}"`, o.key)
		if o.key == want.sort {
			p.emit(` selected`)
		}
		p.emit(`>` + label + `</option>`)
	}
	p.emit("</select></label></div>\n")
	p.chips(want, got)
	if len(got.packages) == 0 {
		p.emit(`<div class="empty"><h2>Nothing matches</h2><p>No package of the catalog has all of this.
Fewer words or filters find more. <a href="{}">Show all packages</a></p></div>`, p.to("./"))
		return
	}
	p.emit("<ul class=\"cards\" id=\"packages\">\n")
	for _, s := range got.packages[(want.page-1)*pageSize : min(want.page*pageSize, len(got.packages))] {
		p.card(s)
	}
	p.emit("</ul>\n")
	p.pager(want, pages)
}

// categoriesOf says in which categories most of the found packages are.
func (p *page) categoriesOf(want *choice, got found) {
	p.emit(` <span class="in">`)
	for i, v := range want.mainCategories(got) {
		p.emit([]literal{`in&nbsp;`, `, `}[min(i, 1)])
		more := want.with(categories, v.text)
		p.a(p.list(&more, 1), name(clip(v.text, 40)))
		p.emit(` ({})`, strconv.Itoa(v.count))
	}
	p.emit("</span>")
}

// chips shows the chosen filters, each as a link to the list without it.
func (p *page) chips(want *choice, got found) {
	any := false
	for i, f := range facets {
		for _, v := range slices.Sorted(maps.Keys(want.chosen[i])) {
			if !any {
				p.emit(`<ul class="chips" aria-label="Filters that are on">`)
				any = true
			}
			less := want.without(i, v)
			p.emit(`<li>`)
			p.chip(p.list(&less, 1), string(f.label)+": "+name(spelled(got.facets[i], v)))
			p.emit(`</li>`)
		}
	}
	if any {
		p.emit(`<li><a class="clear" href="{}">Clear all</a></li></ul>`+"\n", p.to("./"))
	}
}

// spelled returns a chosen value of a facet as the catalog spells it.
func spelled(values []*facetValue, folded string) string {
	for _, v := range values {
		if v.chosen && fold(v.text) == folded {
			return v.text
		}
	}
	return folded
}

func (p *page) chip(address, text string) {
	if len(address) > maxLink {
		address = p.to("./")
	}
	p.emit(`<a class="chip" href="{}"><span class="unseen">Remove </span>{} <span aria-hidden="true">×</span></a>`,
		address, text)
}

// pager links to the other pages of the list.
func (p *page) pager(want *choice, pages int) {
	if pages < 2 || len(p.list(want, pages)) > maxLink {
		return
	}
	p.emit(`<nav class="pager" aria-label="Pages of the list">`)
	step := func(to int, text literal, rel literal) {
		if to >= 1 && to <= pages {
			p.emit(`<a href="{}" rel="`+rel+`">`+text+`</a>`, p.list(want, to))
		} else {
			p.emit(`<span class="faint">` + text + `</span>`)
		}
	}
	step(want.page-1, "← Previous", "prev")
	p.emit(`<span>Page {} of {}</span>`, strconv.Itoa(want.page), strconv.Itoa(pages))
	step(want.page+1, "Next →", "next")
	p.emit("</nav>\n")
}

// card shows a package in the list.
func (p *page) card(s *packageSummary) {
	p.emit(`<li class="card"><div class="face">`)
	p.icon(s, 48, true)
	p.emit(`<div><h2>`)
	p.a(p.to("package", "name", s.name), s.heading())
	p.emit(`</h2><p class="by">{}</p>`, name(s.name))
	if s.provider != "" {
		p.emit(`<p class="by">by {}</p>`, name(s.provider))
	}
	p.emit(`</div></div>`)
	if s.about != "" {
		p.emit(`<p class="about">{}</p>`, lines(s.about))
	}
	p.emit(`<p class="tags">`)
	if s.deprecated {
		p.emit(`<span class="tag old">Deprecated</span>`)
	}
	for _, one := range s.categories[:min(len(s.categories), 2)] {
		p.emit(`<span class="tag">{}</span>`, name(clip(one, 40)))
	}
	p.emit(`</p><p class="foot"><span class="v" title="Version: {}">{}</span>`, name(s.newest()), name(clip(s.newest(), 40)))
	if s.level > 0 {
		p.emit(`<span class="level" title="Capability level: {}">`, levels[s.level-1])
		p.bars(s.level)
		p.emit(`<span aria-hidden="true">Level {}</span><span class="unseen">{}</span></span>`, strconv.Itoa(s.level), levels[s.level-1])
	}
	if !s.created.IsZero() {
		p.emit(`<span class="when" title="Created: when this version was made"><span class="unseen">Created </span>`)
		p.time(s.created)
		p.emit("</span>")
	}
	p.emit("</p></li>\n")
}

// newest returns the version of the head of the default channel, or the channel's name if it has none.
func (s *packageSummary) newest() string {
	if s.version == "" {
		return s.defaultChannel
	}
	return s.version
}

// heading returns the display name of a package if its bundles have one, else its name.
func (s *packageSummary) heading() string {
	if s.title == "" {
		return name(s.name)
	}
	return name(s.title)
}

// icon shows the icon of a package or, if there is none, a letter. In a list it is loaded when it comes into view: browsers
// load lazy images long before, and icons are the most of what a list takes.
func (p *page) icon(s *packageSummary, size int, listed bool) {
	if address := p.to("icon", "package", s.name, "v", p.c.version()); s.hasIcon && address != "" && len(address) <= maxLink {
		n := strconv.Itoa(size)
		if listed {
			p.emit(`<span class="icon" data-icon="{}"><noscript><img src="{}" alt="" width="{}" height="{}" loading="lazy">`+
				`</noscript></span>`, address, address, n, n)
		} else {
			p.emit(`<span class="icon"><img src="{}" alt="" width="{}" height="{}"></span>`, address, n, n)
		}
		return
	}
	letter := "?"
	for _, r := range s.heading() {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			letter = string(unicode.ToUpper(r))
			break
		}
	}
	if !utf8.ValidString(letter) {
		letter = "?"
	}
	p.emit(`<span class="icon letter" aria-hidden="true">{}</span>`, letter)
}
