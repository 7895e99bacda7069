package web

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// packagesPage lists the packages of the catalog, or those that contain every word of a search.
func packagesPage(p *page) error {
	wanted := strings.TrimSpace(p.query.Get("q"))
	var shown []*packageSummary
	channels := 0
	for i := range p.c.packages {
		s := &p.c.packages[i]
		channels += s.channels
		if s.matches(wanted) {
			shown = append(shown, s)
		}
	}
	p.open("Packages")
	p.put(`<div class="hero"><h1>Packages</h1>
<p class="faint"><span class="source">{}</span> · {} · {} · {}</p></div>
<form class="search" role="search" action="./" method="get">
<label for="q">Search by name, provider or words of the description</label>
<span class="field"><input type="search" id="q" name="q" value="{}" maxlength="200" autocomplete="off" spellcheck="false"><button>Search</button></span>
</form>
`, p.site, count(len(p.c.packages), "package"), count(channels, "channel"), count(p.c.bundles, "bundle"),
		clip(wanted, 200))
	if wanted != "" {
		p.put(`<p id="found" role="status">{} of {} found for “{}”. <a href="./">Show all</a></p>`,
			count(len(shown), "package"), strconv.Itoa(len(p.c.packages)), name(wanted))
	} else {
		p.put(`<p id="found" role="status" hidden></p>`)
	}
	if len(p.c.packages) == 0 {
		p.put(`<p>The catalog has no packages.</p>`)
	}
	p.put("<ul class=\"cards\" id=\"packages\">\n")
	for i, s := range shown {
		if !p.hasSpace() {
			p.put(`</ul><p class="notice">{} more are not shown here: search for them.</p><ul hidden>`,
				strconv.Itoa(len(shown)-i))
			break
		}
		p.card(s)
	}
	p.put("</ul>\n")
	p.close("api/v1/metas?schema=olm.package")
	return nil
}

// matches reports whether the package contains every word of a search.
func (s *packageSummary) matches(wanted string) bool {
	for word := range strings.FieldsSeq(strings.ToLower(wanted)) {
		if !strings.Contains(s.search, word) {
			return false
		}
	}
	return true
}

func (p *page) card(s *packageSummary) {
	p.put(`<li class="card" data-text="{}">`, lines(s.search))
	p.icon(s, 48)
	p.put(`<div class="body"><h2>`)
	p.a(link("package", "name", s.name), s.heading())
	p.put(`</h2><p class="id">{}`, name(s.name))
	if s.provider != "" {
		p.put(` <span class="by">by {}</span>`, name(s.provider))
	}
	p.put(`</p>`)
	if s.about != "" {
		p.put(`<p class="about">{}</p>`, lines(s.about))
	}
	p.put(`<p class="tags">`)
	if s.deprecated {
		p.put(`<span class="tag old">deprecated</span>`)
	}
	if s.version != "" {
		p.put(`<span class="tag main">{}</span>`, name(clip(s.version, 40)))
	}
	p.put(`<span class="tag">{}</span><span class="sizes">{} · {}</span></p></div></li>`+"\n",
		name(clip(s.defaultChannel, 40)), count(s.channels, "channel"), count(s.bundles, "bundle"))
}

// heading returns the display name of a package if its bundles have one, else its name.
func (s *packageSummary) heading() string {
	if s.title == "" {
		return name(s.name)
	}
	return name(s.title)
}

// icon shows the icon of a package or, if there is none, a letter.
func (p *page) icon(s *packageSummary, size int) {
	if address := link("icon", "package", s.name); s.hasIcon && len(address) <= maxLink {
		p.put(`<span class="icon"><img src="{}" alt="" width="{}" height="{}" loading="lazy"></span>`, address,
			strconv.Itoa(size), strconv.Itoa(size))
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
	p.put(`<span class="icon letter" aria-hidden="true">{}</span>`, letter)
}
