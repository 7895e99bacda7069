package web

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// The names of namespaces in drawings.
const (
	svgSpace   = "http://www.w3.org/2000/svg"
	xlinkSpace = "http://www.w3.org/1999/xlink"
	xmlSpace   = "http://www.w3.org/XML/1998/namespace"
)

// drawn are the elements that a drawing keeps: they draw, and do nothing else. Links become groups.
var drawn = lazyregexp.New(`^(a|svg|g|defs|symbol|use|title|path|rect|circle|ellipse|line|polyline|polygon|text|tspan|` +
	`textPath|linearGradient|radialGradient|stop|pattern|clipPath|mask|marker|image|style|switch|` +
	`filter|fe(Blend|ColorMatrix|ComponentTransfer|Composite|ConvolveMatrix|DiffuseLighting|DisplacementMap|` +
	`DistantLight|DropShadow|Flood|Func[ABGR]|GaussianBlur|Merge|MergeNode|Morphology|Offset|PointLight|` +
	`SpecularLighting|SpotLight|Tile|Turbulence))$`)

// drawnAttribute are the attributes that a drawing keeps, besides references.
var drawnAttribute = lazyregexp.New(`^(id|class|style|d|x|y|x1|x2|y1|y2|z|cx|cy|r|rx|ry|dx|dy|fx|fy|fr|points|width|height|` +
	`viewBox|version|preserveAspectRatio|transform|pathLength|rotate|textLength|lengthAdjust|startOffset|method|spacing|side|` +
	`offset|gradientUnits|gradientTransform|spreadMethod|patternUnits|patternContentUnits|patternTransform|` +
	`clipPathUnits|maskUnits|maskContentUnits|marker(Units|Width|Height)|refX|refY|orient|filterUnits|primitiveUnits|` +
	`in|in2|result|mode|type|values|operator|k[1-4]|order|kernelMatrix|kernelUnitLength|divisor|bias|targetX|targetY|` +
	`edgeMode|preserveAlpha|surfaceScale|diffuseConstant|specularConstant|specularExponent|limitingConeAngle|` +
	`pointsAt[XYZ]|azimuth|elevation|scale|[xy]ChannelSelector|stdDeviation|radius|baseFrequency|numOctaves|seed|` +
	`stitchTiles|tableValues|slope|intercept|amplitude|exponent|media|systemLanguage|requiredExtensions|` +
	`alignment-baseline|baseline-shift|clip|clip-path|clip-rule|color|color-interpolation|color-interpolation-filters|` +
	`color-rendering|direction|display|dominant-baseline|enable-background|fill|fill-opacity|fill-rule|filter|flood-color|` +
	`flood-opacity|font|font-family|font-size|font-size-adjust|font-stretch|font-style|font-variant|font-weight|` +
	`glyph-orientation-(horizontal|vertical)|image-rendering|isolation|kerning|letter-spacing|lighting-color|marker|` +
	`marker-(start|mid|end)|mask|mask-type|mix-blend-mode|opacity|overflow|paint-order|pointer-events|shape-rendering|` +
	`stop-color|stop-opacity|stroke|stroke-(dasharray|dashoffset|linecap|linejoin|miterlimit|opacity|width)|` +
	`text-anchor|text-decoration|text-rendering|transform-box|transform-origin|unicode-bidi|vector-effect|visibility|` +
	`white-space|word-spacing|writing-mode)$`)

// withText are the elements whose text is drawn or applied.
var withText = []string{"text", "tspan", "textPath", "title", "style"}

// redraw writes a drawing from its parts, so that what a browser reads is what was judged here, whatever another parser
// would read in the bytes of the catalog: as UTF-8 without a declaration, a document type, comments and sections, and with
// nothing but elements and attributes that draw. ok is false for what is not XML in UTF-8 with one drawing in it.
func redraw(data []byte) (svg []byte, ok bool) {
	if !utf8.Valid(data) {
		return nil, false
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	r := redrawing{}
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return r.out.Bytes(), r.roots == 1 && len(r.open) == 0 && r.parts.bounded()
		case err != nil:
			return nil, false
		}
		switch t := token.(type) {
		case xml.ProcInst:
			ok = t.Target != "xml" || inUTF8(t.Inst)
		case xml.Directive:
			d.Entity, ok = entitiesOf(t)
		case xml.CharData:
			ok = r.text(t)
		case xml.StartElement:
			ok = r.start(t)
		case xml.EndElement:
			ok = r.end()
		default:
			ok = true
		}
		if !ok || r.out.Len() > 2*maxIcon {
			return nil, false
		}
	}
}

// encodings are those that a declaration names, with spaces where XML allows them.
var encodings = lazyregexp.New(`(?i)encoding\s*=?\s*["']?\s*([^"'\s?]*)`)

// inUTF8 reports whether a declaration names no other encoding than the one that is read.
func inUTF8(declaration []byte) bool {
	for _, m := range encodings().FindAllSubmatch(declaration, -1) {
		if !strings.EqualFold(string(m[1]), "utf-8") {
			return false
		}
	}
	return true
}

// entity is a declaration of an entity that stands for a short text: drawing programs use these for
// names of namespaces.
var entity = lazyregexp.New(`<!ENTITY\s+([A-Za-z_][A-Za-z0-9_.-]*)\s+(?:"([^"<&%]{0,64})"|'([^'<&%]{0,64})')\s*>`)

// maxEntities is the maximum number of entities of a drawing.
const maxEntities = 100

// entitiesOf returns the entities that a document type declares.
func entitiesOf(directive []byte) (map[string]string, bool) {
	all := map[string]string{}
	for _, m := range entity().FindAllSubmatch(directive, maxEntities+1) {
		all[string(m[1])] = string(m[2]) + string(m[3])
	}
	return all, len(all) <= maxEntities
}

// maxNested is how deep elements may be in each other.
const maxNested = 100

// redrawing is a drawing being written.
type redrawing struct {
	out   bytes.Buffer
	open  []string // the elements around, as they are written; empty for those that are not
	roots int
	parts svgParts
	sheet strings.Builder // the text of an element style, of which comments and sections make several tokens
}

// inner returns the element around, empty for one that is not written.
func (r *redrawing) inner() string {
	if len(r.open) == 0 {
		return ""
	}
	return r.open[len(r.open)-1]
}

func (r *redrawing) start(e xml.StartElement) bool {
	name := e.Name.Local
	switch {
	case len(r.open) == 0:
		if r.roots++; r.roots > 1 || e.Name != (xml.Name{Space: svgSpace, Local: "svg"}) {
			return false
		}
	case r.inner() == "" || r.inner() == "style" || e.Name.Space != svgSpace || !drawn().MatchString(name):
		name = ""
	case name == "a":
		name = "g"
	}
	r.open = append(r.open, name)
	if name == "" {
		return len(r.open) < maxNested
	}
	r.out.WriteString("<" + name)
	if len(r.open) == 1 {
		r.out.WriteString(` xmlns="` + svgSpace + `" xmlns:xlink="` + xlinkSpace + `"`)
	}
	attributes := attributesOf(e)
	r.parts.enter(len(r.open), attributes)
	for _, a := range attributes {
		r.out.WriteString(" " + a.name + `="` + escaper.Replace(a.value) + `"`)
	}
	r.out.WriteString(">")
	r.sheet.Reset()
	return len(r.open) < maxNested
}

func (r *redrawing) text(text []byte) bool {
	switch name := r.inner(); {
	case name == "style":
		r.sheet.Write(text)
	case slices.Contains(withText, name):
		r.out.WriteString(escaper.Replace(string(text)))
	}
	return r.sheet.Len() <= 2*maxIcon
}

func (r *redrawing) end() bool {
	name := r.inner()
	r.open = r.open[:len(r.open)-1]
	if name == "style" && harmlessStyle(r.sheet.String()) {
		r.out.WriteString(escaper.Replace(r.sheet.String()))
	}
	if name != "" {
		r.out.WriteString("</" + name + ">")
	}
	return true
}

// attribute is an attribute as it is written.
type attribute struct{ name, value string }

// attributesOf returns the attributes of an element that draw, each once.
func attributesOf(e xml.StartElement) (all []attribute) {
	for _, a := range e.Attr {
		is, keep := attribute{a.Name.Local, a.Value}, false
		switch {
		case a.Name.Local == "href" && (a.Name.Space == "" || a.Name.Space == xlinkSpace):
			is.name = "xlink:href"
			is.value, keep = inside(e.Name.Local, a.Value)
		case a.Name == xml.Name{Space: xmlSpace, Local: "space"}:
			is.name, keep = "xml:space", true
		case a.Name.Space != "" || !drawnAttribute().MatchString(is.name):
		case is.name == "style":
			is.value = harmlessParts(is.value)
			keep = is.value != ""
		default:
			keep = harmlessStyle(is.value) // most have the names of properties
		}
		if keep && !slices.ContainsFunc(all, func(other attribute) bool { return other.name == is.name }) {
			all = append(all, is)
		}
	}
	return all
}

// embedded is a picture within a reference.
var embedded = lazyregexp.New(`^data:image/[a-z+]+;base64,`)

// inside returns a reference that stays in the drawing: to a part of it, or a picture, which is what its bytes say.
func inside(element, value string) (string, bool) {
	if value = strings.TrimSpace(value); strings.HasPrefix(value, "#") {
		return value, true
	}
	prefix := embedded().FindString(value)
	if element != "image" || prefix == "" {
		return "", false
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value[len(prefix):]), ""))
	kind := http.DetectContentType(data)
	if err != nil || extensions[kind] == "" {
		return "", false
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data), true
}

// functions are what a style sheet or a property may call: url is for parts of the drawing.
var functions = lazyregexp.New(`([a-z0-9_-]*)\(\s*(["']?#)?`)

var harmlessFunctions = []string{"", "rgb", "rgba", "hsl", "hsla", "hwb", "lab", "lch", "oklab", "oklch", "color", "calc", "min",
	"max", "clamp", "var", "matrix", "translate", "translatex", "translatey", "scale", "scalex", "scaley", "rotate", "skewx", "skewy", "skew",
	"not", "is", "where", "nth-child", "nth-of-type", "circle", "ellipse", "inset", "polygon", "rect", "blur", "brightness",
	"contrast", "drop-shadow", "grayscale", "hue-rotate", "invert", "opacity", "saturate", "sepia"}

// harmlessStyle reports whether a text that may be a part of a style sheet loads nothing: it has neither rules with an at
// sign nor escapes, and calls only known functions.
func harmlessStyle(s string) bool {
	if strings.ContainsAny(s, `\@`) {
		return false
	}
	for _, m := range functions().FindAllStringSubmatch(strings.ToLower(s), -1) {
		if !(m[1] == "url" && m[2] != "") && !slices.Contains(harmlessFunctions, m[1]) {
			return false
		}
	}
	return true
}

// harmlessParts returns the declarations of an attribute style that load nothing.
func harmlessParts(s string) string {
	parts := strings.Split(s, ";")
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return !harmlessStyle(part) }), ";")
}
