package web

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/graph"
	"github.com/operator-bindery/bindery/internal/indented"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// How much of a manifest is shown.
const (
	maxYAML  = 2 << 20   // bytes of JSON that become YAML, for which there is a tree in memory
	maxNodes = 100_000   // values of these, each some hundred bytes of the tree
	maxWide  = 24 << 20  // bytes of YAML or indented JSON
	maxFile  = 256 << 10 // bytes on its page
	maxLines = 5000      // lines on its page
)

// manifest is a manifest that the catalog has of a bundle.
type manifest struct {
	at             string // the position among the bundle's properties
	kind, name     string
	namespace      string
	version        string // its apiVersion
	text           []byte
	group, defines string // the group and the kind that a CustomResourceDefinition defines
	defined        []definedVersion
}

// definedVersion is a version of a CustomResourceDefinition.
type definedVersion struct {
	Name    string
	Storage bool
}

// definition returns the version that the page of a version shows: the stored one for others than those that there are.
func (m *manifest) definition(version string) string {
	shown := ""
	for i, v := range m.defined {
		if v.Name == version {
			return version
		}
		if i == 0 || v.Storage && !slices.ContainsFunc(m.defined[:i], func(v definedVersion) bool { return v.Storage }) {
			shown = v.Name
		}
	}
	return shown
}

// manifestAt reads a property of a bundle; it returns nil for one that is no manifest.
func manifestAt(b *declcfg.Bundle, i int) *manifest {
	if b.Properties[i].Type != declcfg.PropertyBundleObject {
		return nil
	}
	objects, err := (&declcfg.Bundle{Properties: b.Properties[i : i+1]}).Objects()
	if err != nil || len(objects) == 0 {
		return nil
	}
	of := headerOf(objects[0])
	m := &manifest{at: strconv.Itoa(i), kind: of.Kind, name: of.Metadata.Name, namespace: of.Metadata.Namespace,
		version: of.APIVersion, text: objects[0]}
	m.name = cmp.Or(m.name, "number "+m.at)
	if m.kind == "CustomResourceDefinition" {
		m.group, m.defines, m.defined = of.Spec.Group, of.Spec.Names.Kind, of.Spec.Versions
	}
	return m
}

// header is what is shown of an object without reading all of it.
type header struct {
	APIVersion, Kind string
	Metadata         struct{ Namespace, Name string }
	Spec             struct {
		Group    string
		Names    struct{ Kind string }
		Versions []definedVersion
	}
}

// headerOf reads the header of a valid JSON object; what has another type than it should is empty.
func headerOf(object []byte) header {
	if h, ok := scanHeader(object); ok {
		return h
	}
	var h header
	_ = json.Unmarshal(object, &h)
	return h
}

// scanHeader reads the header of an object as nearly all are: compact, and with no field twice or in other letters.
func scanHeader(object []byte) (h header, ok bool) {
	s := jsonscan.NewScanner(object)
	read := func(members map[string]func()) func() {
		seen, names := map[string]bool{}, slices.Collect(maps.Keys(members))
		return func() {
			s.Object(func(key []byte) {
				switch read, ok := members[string(key)]; {
				case ok && !seen[string(key)]:
					seen[string(key)] = true
					read()
				case ok || jsonscan.FoldsTo(key, names...):
					s.Fail()
				default:
					s.Value()
				}
			})
		}
	}
	text := func(to *string) func() {
		return func() {
			if *to = s.String(); !utf8.ValidString(*to) {
				s.Fail() // encoding/json replaces what is not UTF-8
			}
		}
	}
	read(map[string]func(){
		"apiVersion": text(&h.APIVersion),
		"kind":       text(&h.Kind),
		"metadata":   read(map[string]func(){"namespace": text(&h.Metadata.Namespace), "name": text(&h.Metadata.Name)}),
		"spec": read(map[string]func(){
			"group": text(&h.Spec.Group),
			"names": read(map[string]func(){"kind": text(&h.Spec.Names.Kind)}),
			"versions": func() {
				s.Array(func() {
					var v definedVersion
					read(map[string]func(){"name": text(&v.Name), "storage": func() { v.Storage = string(s.Value()) == "true" }})()
					h.Spec.Versions = append(h.Spec.Versions, v)
				})
			},
		}),
	})()
	return h, s.Done()
}

// manifestsOf returns the manifests of a bundle, one more than are decoded at most. There are none if the catalog has only
// metadata of the bundle.
func manifestsOf(b *declcfg.Bundle) (all []manifest) {
	for i := 0; i < len(b.Properties) && len(all) <= maxInstalled; i++ {
		if m := manifestAt(b, i); m != nil {
			all = append(all, *m)
		}
	}
	return all
}

// manifestPage returns the page that shows the manifest that a query means.
func manifestPage(title string, means func(*page, *manifest) bool,
	show func(*page, *declcfg.Bundle, *manifest)) func(*page) error {
	return func(p *page) error {
		pkg := p.query.Get("package")
		place := p.c.findFirst(pkg, declcfg.SchemaBundle, p.query.Get("name"))
		if _, ok := p.c.byName[pkg]; !ok || place == nil {
			return errNotFound
		}
		if p.files != nil {
			return p.sharedManifest(title, pkg, place, means, show)
		}
		b, err := p.c.bundle(place)
		if err != nil {
			return err
		}
		for i := range b.Properties {
			if m := manifestAt(b, i); m != nil && means(p, m) {
				title := title + " " + name(m.name)
				p.open(title+" · "+name(b.Name), crumb{name(pkg), p.to("package", "name", pkg)},
					crumb{name(b.Name), p.to("bundle", "package", pkg, "name", b.Name)}, crumb{text: title})
				show(p, b, m)
				p.close(p.to("api/v1/metas", "schema", declcfg.SchemaBundle, "package", pkg, "name", b.Name))
				return nil
			}
		}
		return errNotFound
	}
}

// sharedManifest is the page of a manifest in a static site: that of all bundles of a package that have it, so that it
// names none of them.
func (p *page) sharedManifest(title, pkg string, place *blob, means func(*page, *manifest) bool,
	show func(*page, *declcfg.Bundle, *manifest)) error {
	read, err := p.files.bundle(place)
	if err != nil {
		return err
	}
	for i := range read.manifests {
		if m := &read.manifests[i]; means(p, m) {
			title += " " + name(m.name)
			p.open(title+" · "+name(pkg), crumb{name(pkg), p.to("package", "name", pkg)}, crumb{text: title})
			show(p, read.of, m)
			p.close("")
			return nil
		}
	}
	return errNotFound
}

// manifestAddress returns the address of the page of a manifest; the pairs are what a server finds it by.
func (p *page) manifestAddress(page string, b *declcfg.Bundle, m *manifest, version string, pairs ...string) string {
	if p.files != nil {
		return p.files.manifest(page, b, m, version)
	}
	return p.to(page, append([]string{"package", b.Package, "name", b.Name}, pairs...)...)
}

func (p *page) fileLink(b *declcfg.Bundle, m *manifest, text string) {
	p.a(p.manifestAddress("file", b, m, "", "file", m.at), text)
}

var filePage = manifestPage("Manifest",
	func(p *page, m *manifest) bool { return m.at == p.query.Get("file") }, (*page).file)

// file shows a manifest as YAML with numbered lines. The numbers come after the text in the page and stand before it on
// the screen, so that it is copied and read out without them.
func (p *page) file(b *declcfg.Bundle, m *manifest) {
	p.emit(`<h1>{}</h1><p class="id">{} `, name(m.name), optional(m.kind))
	if m.defines != "" {
		p.definitionLink(b, m, "", "its fields")
	}
	text, left := cutLines(manifestText(m.text), maxFile, maxLines)
	p.emit(`</p><div class="snippet code" data-copy="{}"><pre class="text" tabindex="0" role="group" `+
		`aria-label="Manifest"><code>{}</code></pre><div class="numbers" role="group" aria-label="Line numbers">`,
		name(m.name), text)
	for i := range 1 + strings.Count(text, "\n") {
		n := strconv.Itoa(i + 1)
		p.emit(`<a id="L{}" href="#L{}" tabindex="-1">{}</a>`, n, n, n)
	}
	p.emit("</div></div>\n")
	p.left(left, "byte")
}

// left says how much is not shown.
func (p *page) left(n int, what string) {
	if n > 0 {
		p.emit("<p>Not shown: {}.</p>\n", count(n, "more "+what))
	}
}

// manifestText returns a manifest as YAML, or as JSON if it is too large or too deep for that.
func manifestText(object []byte) string {
	most := min(indented.Most(len(object)), maxWide)
	if len(object) <= maxYAML && valuesOf(object) <= maxNodes {
		if text, ok, err := yamlout.Append(nil, object, most); ok && err == nil {
			return string(text)
		}
	}
	if text, ok := indented.Append(nil, object, "  ", 0, most); ok {
		return string(text)
	}
	return string(object)
}

// cutLines returns the first lines of a text in at most size bytes, with invisible characters made visible, and the
// number of bytes that are left out.
func cutLines(s string, size, most int) (text string, left int) {
	s = strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	shown := s[:min(len(s), size)]
	if at := strings.LastIndexByte(shown, '\n'); at > size/2 && len(shown) < len(s) {
		shown = shown[:at]
	}
	all := strings.SplitN(shown, "\n", most+1)
	if len(all) > most {
		all = all[:most]
	}
	left = len(s) - len(strings.Join(all, "\n"))
	for i, line := range all {
		parts := strings.Split(strings.ToValidUTF8(line, "\uFFFD"), "\t")
		for k := range parts {
			parts[k] = graph.Visible(parts[k])
		}
		all[i] = strings.Join(parts, "\t")
	}
	return strings.Join(all, "\n"), left
}
