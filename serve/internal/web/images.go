package web

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// imagesPage lists the images of the catalog or of one package, each once per package, with the number of bundles that
// use it. Packages are read one after the other.
func imagesPage(p *page) error {
	only, wanted := p.query.Get("package"), strings.TrimSpace(p.query.Get("q"))
	packages := p.c.packages
	if only != "" {
		i, ok := p.c.byName[only]
		if !ok {
			return errNotFound
		}
		packages = packages[i : i+1]
		p.of = &packages[0]
		p.open("Images of "+packages[0].heading(), crumb{name(only), p.to("package", "name", only)},
			crumb{text: "Images"})
		p.emit(`<h1>Images of {}</h1>`, packages[0].heading())
	} else {
		p.open("Images", crumb{text: "Images"})
		p.emit(`<h1>Images</h1>`)
	}
	p.emit(`<p class="faint">The images of bundles and what these name as related images: what a mirror of the catalog has to have.</p>`)
	if p.files == nil {
		p.searchImages(only, wanted)
	}
	images := map[string]bool{}
	for i := range packages {
		if !p.hasSpace() {
			p.emit(`<p class="notice">The images of {} are not shown here: the pages of packages have them.</p>`,
				count(len(packages)-i, "more package"))
			break
		}
		uses, err := p.uses(packages[i].name, wanted)
		if err != nil {
			return err
		}
		p.useTable(&packages[i], uses, only == "")
		for ref := range uses {
			images[ref] = true
		}
	}
	p.emit(`<p role="status">{}</p>`, count(len(images), "image"))
	p.close("")
	return nil
}

// searchImages shows the form for a search in references.
func (p *page) searchImages(only, wanted string) {
	p.emit(`
<form class="search" role="search" action="{}" method="get"><label for="find">Search in references</label>`, p.to("images"))
	if only != "" {
		p.emit(`<input type="hidden" name="package" value="{}">`, only)
	}
	p.emit(
		`<span class="field"><input type="search" id="find" name="q" value="{}" maxlength="200" autocomplete="off" spellcheck="false"><button>Search</button></span></form>`+"\n", clip(wanted, 200))
}

// use says whether an image is that of a bundle, and how many bundles use it.
type use struct {
	bundle  bool
	bundles int
}

// uses counts the images of a package that contain a text.
func (p *page) uses(pkg, wanted string) (map[string]use, error) {
	c, err := p.c.catalog(p.ctx, pkg)
	if err != nil {
		return nil, err
	}
	uses := map[string]use{}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		seen := map[string]bool{"": true}
		add := func(ref string, bundle bool) {
			if seen[ref] || !strings.Contains(ref, wanted) {
				return
			}
			seen[ref] = true
			u := uses[ref]
			u.bundles++
			u.bundle = u.bundle || bundle
			uses[ref] = u
		}
		add(b.Image, true)
		for _, r := range b.RelatedImages {
			add(r.Image, false)
		}
	}
	return uses, nil
}

func (p *page) useTable(s *packageSummary, uses map[string]use, titled bool) {
	if len(uses) == 0 {
		return
	}
	p.emit(`<section>`)
	if titled {
		p.emit(`<h2><a href="{}">{}</a></h2>`, p.to("package", "name", s.name), s.heading())
	}
	p.emit(
		`<div class="scroll" tabindex="0" role="group" aria-label="Images of {}"><table class="images"><thead><tr><th scope="col">Image</th><th scope="col">Kind</th><th scope="col" class="n">Bundles</th></tr></thead><tbody>`+"\n", s.heading())
	order := slices.SortedFunc(maps.Keys(uses), func(a, b string) int {
		return cmp.Or(-compareBool(uses[a].bundle, uses[b].bundle), cmp.Compare(a, b))
	})
	for i, ref := range order {
		if !p.hasSpace() {
			p.emit(`<tr><td colspan="3">{} more images are not shown.</td></tr>`, strconv.Itoa(len(order)-i))
			break
		}
		kind := "related"
		if uses[ref].bundle {
			kind = "bundle"
		}
		p.emit(`<tr><td class="image"><code>{}</code></td><td>{}</td><td class="n" data-label="Bundles">{}</td></tr>`+"\n",
			image(ref), kind, strconv.Itoa(uses[ref].bundles))
	}
	p.emit("</tbody></table></div></section>\n")
}
