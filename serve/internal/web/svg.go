package web

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// drawn are the elements that an icon in a static site may have: they draw, and do nothing else.
var drawn = lazyregexp.New(`^(svg|g|defs|symbol|use|title|desc|metadata|path|rect|circle|ellipse|line|polyline|` +
	`polygon|text|tspan|textPath|linearGradient|radialGradient|stop|pattern|clipPath|mask|marker|image|style|switch|` +
	`view|filter|fe(Blend|ColorMatrix|ComponentTransfer|Composite|ConvolveMatrix|DiffuseLighting|DisplacementMap|` +
	`DistantLight|DropShadow|Flood|Func[ABGR]|GaussianBlur|Merge|MergeNode|Morphology|Offset|PointLight|` +
	`SpecularLighting|SpotLight|Tile|Turbulence))$`)

// Elements of other namespaces than these are data of drawing programs, which browsers do not draw.
const (
	svgSpace  = "http://www.w3.org/2000/svg"
	htmlSpace = "http://www.w3.org/1999/xhtml"
)

// harmless reports whether a file of a media type may lie in a static site, where no header keeps a browser that opens
// it from running what is in it: a picture must begin as its type does, and a drawing only draw.
func harmless(kind string, data []byte) bool {
	if kind == "image/svg+xml" {
		return harmlessSVG(data)
	}
	return http.DetectContentType(data) == kind
}

// harmlessSVG reports whether a drawing only draws: without scripts, events, links, other documents, entities, and
// forms that programs may read in several ways.
func harmlessSVG(data []byte) bool {
	d := xml.NewDecoder(bytes.NewReader(data))
	var text []byte // of elements style, of which comments and sections make several tokens
	for depth, roots := 0, 0; utf8.Valid(data); {
		token, err := d.Token()
		if err != nil {
			return errors.Is(err, io.EOF) && roots == 1 && depth == 0 && harmlessStyle(string(text))
		}
		ok := true
		switch t := token.(type) {
		case xml.Directive:
			ok = false
		case xml.ProcInst:
			ok = t.Target == "xml" && roots == 0
		case xml.CharData:
			text = append(text, t...)
		case xml.StartElement:
			if depth == 0 {
				roots++
				ok = t.Name == xml.Name{Space: svgSpace, Local: "svg"}
			}
			depth++
			ok = ok && depth < 100 && harmlessElement(t)
		case xml.EndElement:
			depth--
		}
		if !ok {
			return false
		}
	}
	return false
}

// inside are the values of references that stay in the drawing.
var inside = lazyregexp.New(`^\s*(#|data:image/(png|jpe?g|gif);base64,)`)

func harmlessElement(e xml.StartElement) bool {
	space := e.Name.Space
	if space == "" || space == htmlSpace || space == svgSpace && !drawn().MatchString(e.Name.Local) {
		return false
	}
	for _, a := range e.Attr {
		switch name := strings.ToLower(a.Name.Local); {
		case strings.HasPrefix(name, "on"), name == "base", a.Value == htmlSpace:
			return false
		case a.Name.Space == "xmlns":
		case name == "href" || name == "src":
			if !inside().MatchString(a.Value) {
				return false
			}
		case !harmlessStyle(a.Value): // a style, or an attribute that has the name of a property
			return false
		}
	}
	return true
}

// harmlessStyle reports whether a text that may be a part of a style sheet loads nothing.
func harmlessStyle(s string) bool {
	s = strings.ToLower(s)
	return !strings.ContainsAny(s, `\@`) && strings.Count(s, "url(") == strings.Count(s, "url(#") &&
		!strings.Contains(s, "image(") && !strings.Contains(s, "image-set(")
}
