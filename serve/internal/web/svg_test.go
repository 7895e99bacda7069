package web

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

const (
	svgOpen  = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">`
	svgClose = `</svg>`
	onePixel = "iVBORw0KGgo="
)

// multiplied are parts each of which refers to the one before twice.
func multiplied(n int, reference string) string {
	text := `<g id="x0"><path/></g>`
	for i := range n {
		one := fmt.Sprintf(reference, i)
		text += fmt.Sprintf(`<g id="x%d">%s%s</g>`, i+1, one, one)
	}
	return text
}

// A drawing is written from its parts: what does more than draw is left out, and what is no drawing is refused.
func TestDrawingsAreWrittenFromTheirParts(t *testing.T) {
	for name, c := range map[string]struct{ icon, want string }{
		"what draws stays": {svgOpen + `<path d="M0 0" style="fill:url(#a)"/><use xlink:href="#a"/>` + svgClose,
			`<path d="M0 0" style="fill:url(#a)"></path><use xlink:href="#a"></use>`},
		"a quoted reference":         {svgOpen + `<g mask="url( '#a' )"/>` + svgClose, `<g mask="url( &#39;#a&#39; )"></g>`},
		"texts stay":                 {svgOpen + ` <text x="1"> a &lt; b<tspan>c</tspan></text> ` + svgClose, `<text x="1"> a &lt; b<tspan>c</tspan></text>`},
		"a style sheet stays":        {svgOpen + `<style>.a>.b{fill:red}</style>` + svgClose, `<style>.a&gt;.b{fill:red}</style>`},
		"no declaration or comment":  {`<?xml version="1.0" encoding="UTF-8"?><!-- c -->` + svgOpen + svgClose, ``},
		"an encoding with spaces":    {`<?xml version="1.0" encoding = "utf-8" ?>` + svgOpen + svgClose, ``},
		"no document type":           {`<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/x.dtd">` + svgOpen + svgClose, ``},
		"entities are their text":    {`<!DOCTYPE svg [<!ENTITY s "http://www.w3.org/2000/svg"><!ENTITY v '0 0 1 1'>]><svg xmlns="&s;" viewBox="&v;"/>`, `viewBox`},
		"a prefix":                   {`<s:svg xmlns:s="http://www.w3.org/2000/svg"><s:g/></s:svg>`, `<g></g>`},
		"sections are text":          {svgOpen + `<text><![CDATA[<script>]]></text>` + svgClose, `<text>&lt;script&gt;</text>`},
		"a section in a style sheet": {svgOpen + `<style><![CDATA[.a{fill:red}]]></style>` + svgClose, `<style>.a{fill:red}</style>`},
		"links are groups":           {svgOpen + `<a href="javascript:alert(1)"><path/></a>` + svgClose, `<g><path></path></g>`},
		"an embedded picture":        {svgOpen + `<image href="data:image/jpeg;base64,` + onePixel + `"/>` + svgClose, `<image xlink:href="data:image/png;base64,` + onePixel + `"></image>`},
		"one of two references":      {svgOpen + `<use href="#a" xlink:href="#b"/>` + svgClose, `<use xlink:href="#a"></use>`},
		"scripts":                    {svgOpen + `<script>alert(1)</script><SCRIPT>alert(1)</SCRIPT>` + svgClose, ``},
		"events":                     {svgOpen + `<g onload="alert(1)" ONLOAD="alert(1)"/>` + svgClose, `<g></g>`},
		"references elsewhere":       {svgOpen + `<use href="https://evil.test/x.svg#a"/>` + svgClose, `<use></use>`},
		"drawings in references":     {svgOpen + `<use xlink:href="data:image/svg+xml;base64,AAAA"/>` + svgClose, `<use></use>`},
		"a text as a picture":        {svgOpen + `<image href="data:image/png;base64,PHN2Zz4="/>` + svgClose, `<image></image>`},
		"programs as pictures":       {svgOpen + `<image href="javascript:alert(1)"/>` + svgClose, `<image></image>`},
		"changes of references":      {svgOpen + `<animate attributeName="href" to="javascript:alert(1)"/><set attributeName="onload" to="alert(1)"/>` + svgClose, ``},
		"other documents":            {svgOpen + `<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"/><g/></foreignObject>` + svgClose, ``},
		"other namespaces":           {svgOpen + `<h:script xmlns:h="http://www.w3.org/1999/xhtml">alert(1)</h:script><metadata><g/></metadata>` + svgClose, ``},
		"attributes of others":       {svgOpen + `<g xmlns:i="urn:i" i:x="1" xml:base="https://evil.test/" xml:space="preserve"/>` + svgClose, `<g xml:space="preserve"></g>`},
		"imports":                    {svgOpen + `<style>@import "https://evil.test/"</style>` + svgClose, `<style></style>`},
		"properties that load":       {svgOpen + `<path fill="url(https://evil.test/)" style="fill:red;mask:url(//evil.test)"/>` + svgClose, `<path style="fill:red"></path>`},
		"escapes in a style sheet":   {svgOpen + `<style>a{b:\75rl(https://evil.test/)}</style>` + svgClose, `<style></style>`},
		"a style sheet in sections":  {svgOpen + `<style>a{b:u<![CDATA[rl(https://evil.test/)]]>}</style>` + svgClose, `<style></style>`},
		"a style sheet with comment": {svgOpen + `<style>a{b:url<!-- -->(https://evil.test/)}</style>` + svgClose, `<style></style>`},
		"an unknown function":        {svgOpen + `<style>a{b:image-set("https://evil.test/" 1x)}</style>` + svgClose, `<style></style>`},
		"instructions":               {`<?xml-stylesheet href="https://evil.test/"?>` + svgOpen + svgClose, ``},

		"another encoding":              {`<?xml version="1.0" encoding="UTF-7"?>` + svgOpen + svgClose, "refused"},
		"another encoding with a space": {`<?xml version="1.0" encoding = "GBK"?>` + svgOpen + svgClose, "refused"},
		"two encodings":                 {`<?xml version="1.0" encoding="utf-8" encoding ='GBK'?>` + svgOpen + svgClose, "refused"},
		"no namespace":                  {`<svg><path/></svg>`, "refused"},
		"no end":                        {svgOpen, "refused"},
		"nothing":                       {"", "refused"},
		"two drawings":                  {svgOpen + svgClose + svgOpen + svgClose, "refused"},
		"no text":                       {svgOpen + "\xff" + svgClose, "refused"},
		"an unknown entity":             {svgOpen + "<g id='&a;'/>" + svgClose, "refused"},
		"an entity of others":           {`<!DOCTYPE svg [<!ENTITY a "&b;">]>` + svgOpen + "<g id='&a;'/>" + svgClose, "refused"},
		"another document":              {`<html xmlns="http://www.w3.org/1999/xhtml"><script/></html>`, "refused"},
		"parts in parts": {svgOpen + `<g id="a"><path/></g><g id="b"><use xlink:href="#a"/></g><use xlink:href="#b"/>` + svgClose,
			`<g id="a"><path></path></g><g id="b"><use xlink:href="#a"></use></g><use xlink:href="#b"></use>`},
		"an id twice":              {svgOpen + `<g id="a"><g id="b"><g id="a"/></g></g>` + svgClose, `<g id="a"><g id="b"><g id="a"></g></g></g>`},
		"references that multiply": {svgOpen + multiplied(20, `<use xlink:href="#x%d"/>`) + svgClose, "refused"},
		"fillings that multiply":   {svgOpen + multiplied(20, `<path fill="url(#x%d)"/>`) + svgClose, "refused"},
		"styles that multiply":     {svgOpen + multiplied(20, `<path style="fill: url('#x%d')"/>`) + svgClose, "refused"},
		"a part that draws itself": {svgOpen + `<g id="a"><use xlink:href="#a"/></g>` + svgClose, "refused"},
		"deep":                     {svgOpen + strings.Repeat("<g>", 200) + strings.Repeat("</g>", 200) + svgClose, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := redraw([]byte(c.icon))
			if !ok || c.want == "refused" {
				if ok || c.want != "refused" {
					t.Errorf("%v: %s", ok, got)
				}
				return
			}
			want := svgOpen + c.want + svgClose
			if c.want == "viewBox" {
				want = strings.TrimSuffix(svgOpen, ">") + ` viewBox="0 0 1 1"></svg>`
			}
			if string(got) != want {
				t.Errorf("%s\nwant %s", got, want)
			}
			if again, ok := redraw(got); !ok || !bytes.Equal(again, got) {
				t.Errorf("written again: %s", again)
			}
		})
	}
}

// A browser that reads the bytes of a catalog in the encoding that they declare sees a script where this program sees a
// text: what a site passes on has no other reading.
func TestIconOfAnotherEncodingDoesNotReachABrowser(t *testing.T) {
	icon := `<?xml version="1.0" encoding = "GBK"?>` + svgOpen + "<title><![CDATA[\u00e9]]]></title><script>alert(1)</script><title>]]></title>" + svgClose
	for _, media := range []string{"image/svg+xml", "image/png", "text/html"} {
		c := contentOf(t, iconCatalog(media, icon))
		if a := get(t, siteOf(t, c).URL+"/icon?package=a"); a.code != http.StatusNotFound {
			t.Errorf("the server sends it as %s: %d %s", media, a.code, a.body)
		}
		for name, text := range written(t, c, StaticOptions{}) {
			if strings.HasPrefix(name, "icon/") {
				t.Errorf("the site has it as %s: %s %s", media, name, text)
			}
		}
	}
}

// Icons are sent and written as what their bytes are, whatever the catalog says.
func TestIconsAreWhatTheirBytesAre(t *testing.T) {
	for name, c := range map[string]struct{ media, data, kind, file string }{
		"a picture":                {"image/png", "\x89PNG\r\n\x1a\n", "image/png", "icon/a.png"},
		"a photo":                  {"image/jpg", "\xff\xd8\xff\xe0", "image/jpeg", "icon/a.jpg"},
		"a photo called a picture": {"image/png", "\xff\xd8\xff\xe0", "image/jpeg", "icon/a.jpg"},
		"a picture called drawing": {"image/svg+xml", "GIF89a", "image/gif", "icon/a.gif"},
		"a drawing called picture": {"image/png", svgOpen + svgClose, "image/svg+xml", "icon/a.svg"},
		"a page called a picture":  {"image/png", "<html><script>alert(1)</script></html>", "", ""},
		"a page called an image":   {"image/svg+xml", "<html><script>alert(1)</script></html>", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			content := contentOf(t, iconCatalog(c.media, c.data))
			a, files := get(t, siteOf(t, content).URL+"/icon?package=a"), written(t, content, StaticOptions{})
			if c.kind == "" {
				if a.code != http.StatusNotFound || strings.Contains(files["package/a.html"], "icon/") {
					t.Errorf("%d %s", a.code, a.body)
				}
				return
			}
			if a.header.Get("Content-Type") != c.kind || a.header.Get("X-Content-Type-Options") != "nosniff" ||
				a.body != c.data || files[c.file] != c.data || !strings.Contains(files["package/a.html"], c.file) {
				t.Errorf("%v %q %q", a.header, a.body, files[c.file])
			}
		})
	}
}

// The drawings of real catalogs keep each element and attribute that a browser draws.
func TestIconsOfRealCatalogsKeepWhatTheyDraw(t *testing.T) {
	c := contentOf(t, os.DirFS("../../../testdata/fbc/mini"))
	drawings := 0
	for i := range c.packages {
		pkg, err := c.pkg(c.packageBlob(c.packages[i].name))
		if err != nil {
			t.Fatal(err)
		}
		if pkg.Icon == nil || !strings.Contains(string(pkg.Icon.Data), "<svg") {
			continue
		}
		drawings++
		got := pictureOf(pkg.Icon)
		if got.kind != svgType || counts(t, got.data) != counts(t, pkg.Icon.Data) {
			t.Errorf("%s: %q: %v, was %v", pkg.Name, got.kind, counts(t, got.data), counts(t, pkg.Icon.Data))
		}
	}
	if drawings == 0 {
		t.Error("the catalog has no drawing")
	}
}

// partsOf are the parts of a drawing.
type partsOf struct{ shapes, fills, paths int }

func counts(t *testing.T, svg []byte) (n partsOf) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Space == svgSpace && e.Name.Local != "metadata" && e.Name.Local != "desc" {
			n.shapes++
			for _, a := range e.Attr {
				if a.Name.Space == "" && (a.Name.Local == "fill" || a.Name.Local == "style" || a.Name.Local == "transform") {
					n.fills++
				}
				if a.Name.Local == "d" {
					n.paths += len(a.Value)
				}
			}
		}
	}
}

// runs is what a drawing must not have.
var runs = regexp.MustCompile(`(?i)<!|<\?|<script|<foreignobject|<a[ >]|<animate|<set|[ "]on[a-z]+="|javascript:[^<]*">|@import|&#x`)

// What is written has one reading: it is XML in UTF-8 that this program reads to the same parts, without anything that
// runs or loads.
func FuzzRedraw(f *testing.F) {
	for _, seed := range []string{svgOpen + `<path d="M0 0" style="fill:url(#a);mask:url(b)"/><use xlink:href="#a"/>` + svgClose,
		`<?xml version="1.0" encoding = "GBK"?>` + svgOpen + `<style><![CDATA[a]]></style><script>alert(1)</script>` + svgClose,
		`<!DOCTYPE svg [<!ENTITY s "http://www.w3.org/2000/svg">]><svg xmlns="&s;" onload="alert(1)"><a href="javascript:x"/></svg>`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		svg, ok := redraw(data)
		if !ok {
			return
		}
		if !utf8.Valid(svg) || !bytes.HasPrefix(svg, []byte(`<svg xmlns="http://www.w3.org/2000/svg"`)) {
			t.Fatalf("%q", svg)
		}
		outside := regexp.MustCompile(`>[^<]*<`).ReplaceAll(svg, []byte("><"))
		if m := runs.Find(outside); m != nil {
			t.Errorf("%q is in %q", m, svg)
		}
		if again, ok := redraw(svg); !ok || !bytes.Equal(again, svg) {
			t.Errorf("%q is read as %q", svg, again)
		}
	})
}

// iconCatalog returns a catalog with one package that has an icon.
func iconCatalog(media, data string) fstest.MapFS {
	return fstest.MapFS{"c.json": {Data: []byte(`{"schema":"olm.package","name":"a","icon":{"mediatype":"` + media +
		`","base64data":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"}}`)}}
}
