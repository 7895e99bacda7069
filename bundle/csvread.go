package bundle

import (
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/shape"
)

// annotationProperties is the annotation of a ClusterServiceVersion with properties of the bundle.
const annotationProperties = "olm.properties"

// csv reads the used parts of a ClusterServiceVersion. An unreadable field is fatal if it becomes part of a catalog.
func (r *reader) csv(o Object) *CSV {
	c := &CSV{Object: o}
	p := &csvReader{r: r, c: c}
	r.checkIdentifier("bundle", o.Name, p.place("metadata.name"))
	metadata := jsonscan.Member(o.JSON, "metadata")
	jsonscan.Members(jsonscan.Member(metadata, "annotations"), func(key, value []byte) bool {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		name, _ := jsonscan.Text(slices.Concat([]byte{'"'}, key, []byte{'"'}))
		s, ok := jsonscan.Text(value)
		if !ok && string(value) != "null" {
			p.fatal("metadata.annotations["+name+"]", shape.Mismatch(shape.Of(value), shape.String, string(value)))
		}
		c.Annotations[name] = s
		return true
	})
	c.SkipRange = c.Annotations[declcfg.AnnotationSkipRange]
	c.SubstitutesFor = c.Annotations[declcfg.AnnotationSubstitutesFor]
	c.properties = p.properties(c.Annotations[annotationProperties])
	p.spec(jsonscan.Member(o.JSON, "spec"))
	return c
}

// csvReader reads one ClusterServiceVersion.
type csvReader struct {
	r *reader
	c *CSV
}

// place returns the place of a field, in Kubernetes' notation.
func (p *csvReader) place(field string) bundlefs.Place {
	return bundlefs.Place{File: p.c.File, Line: p.c.Line, Path: bundlefs.FieldPath(field)}
}

func (p *csvReader) fatal(field, message string) {
	p.r.fatal(p.r.problem(RuleCSV, p.place(field), message))
}

func (p *csvReader) addProblem(field, message string) {
	p.r.addProblem(p.r.problem(RuleCSV, p.place(field), message))
}

func (p *csvReader) spec(spec []byte) {
	c := p.c
	if len(spec) == 0 || spec[0] != '{' {
		p.fatal("spec", "must be an object")
		return
	}
	c.Spec = spec
	var install []byte
	wrongVersion := false
	jsonscan.Members(spec, func(key, value []byte) bool {
		if string(value) == "null" {
			return true
		}
		switch string(key) {
		case "version":
			c.Version = p.readText("spec.version", value, p.fatal)
			wrongVersion = shape.Of(value) != shape.String
		case "release":
			c.Release = p.release(value)
		case "replaces":
			c.Replaces = p.readText("spec.replaces", value, p.addProblem)
		case "displayName":
			c.DisplayName = p.readText("spec.displayName", value, p.addProblem)
		case "description":
			c.Description = p.readText("spec.description", value, p.addProblem)
		case "skips":
			p.decode("spec.skips", value, &c.Skips, p.addProblem)
		case "icon":
			p.icon(value)
		case "relatedImages":
			p.decode("spec.relatedImages", value, &c.RelatedImages, p.fatal)
		case "customresourcedefinitions":
			p.crds(value)
		case "apiservicedefinitions":
			p.services(value)
		case "install":
			install = value
		}
		return true
	})
	if c.Version == "" && !wrongVersion {
		p.addProblem("spec.version", "Version string empty: a catalog cannot order a bundle without a version")
	}
	p.images(install)
}

func (p *csvReader) readText(field string, value []byte, report func(field, message string)) string {
	s, ok := jsonscan.Text(value)
	if !ok {
		report(field, shape.Mismatch(shape.Of(value), shape.String, string(value)))
	}
	return s
}

func (p *csvReader) decode(field string, value []byte, into any, report func(field, message string)) {
	if err := json.Unmarshal(value, into); err != nil {
		path, text := bundlefs.TypeProblem(value, err)
		report(canon.PathName(slices.Concat(bundlefs.FieldPath(field), path)), fault.Clip(text, maxReason))
	}
}

// release reads a release. An API server takes text alone, and a catalog what [declcfg.ParseRelease] parses.
func (p *csvReader) release(value []byte) string {
	s, ok := jsonscan.Text(value)
	if !ok {
		p.fatal("spec.release", shape.Mismatch(shape.Of(value), shape.String, string(value)))
		return ""
	}
	if s == "" {
		p.fatal("spec.release", "is empty: remove it, or write a release such as \"1\"")
	} else if _, err := declcfg.ParseRelease(s); err != nil {
		p.fatal("spec.release", err.Error())
	}
	return s
}

func (p *csvReader) icon(value []byte) {
	jsonscan.Elements(value, func(icon []byte) bool {
		p.c.IconData, p.c.IconMediaType = jsonscan.TextAt(icon, "base64data"), jsonscan.TextAt(icon, "mediatype")
		return false
	})
	if value[0] != '[' {
		p.addProblem("spec.icon", shape.Mismatch(shape.Of(value), shape.Array, "")+" of icons")
	}
}

// described is a CRD or API service as a ClusterServiceVersion lists it.
type described struct {
	Name    string `json:"name"`
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

func (p *csvReader) definitions(field string, value []byte) (owned, required []described) {
	if value[0] != '{' {
		p.fatal(field, shape.Mismatch(shape.Of(value), shape.Mapping, "")+" with the lists owned and required")
		return nil, nil
	}
	jsonscan.Members(value, func(key, list []byte) bool {
		into := map[string]*[]described{"owned": &owned, "required": &required}[string(key)]
		if into != nil && string(list) != "null" {
			p.decode(field+"."+string(key), list, into, p.fatal)
		}
		return true
	})
	return owned, required
}

func (p *csvReader) crds(value []byte) {
	const field = "spec.customresourcedefinitions"
	owned, required := p.definitions(field, value)
	convert := func(into *[]API, list []described, which string) {
		for i, d := range list {
			plural, group, ok := strings.Cut(d.Name, ".")
			if !ok {
				p.fatal(fmt.Sprintf("%s.%s[%d].name", field, which, i),
					"couldn't parse plural.group from crd name: "+fault.Quote(d.Name))
				continue
			}
			*into = append(*into, API{group, d.Version, d.Kind, plural})
		}
	}
	// Owned CRDs come before owned API services, and required CRDs before required API services, whatever the order of
	// the keys.
	services, requiredServices := p.c.Owned, p.c.Required
	p.c.Owned, p.c.Required = nil, nil
	convert(&p.c.Owned, owned, "owned")
	convert(&p.c.Required, required, "required")
	p.c.ownedCRDs = len(p.c.Owned)
	p.c.Owned = append(p.c.Owned, services...)
	p.c.Required = append(p.c.Required, requiredServices...)
}

func (p *csvReader) services(value []byte) {
	owned, required := p.definitions("spec.apiservicedefinitions", value)
	for _, d := range owned {
		p.c.Owned = append(p.c.Owned, API{d.Group, d.Version, d.Kind, d.Name})
	}
	for _, d := range required {
		p.c.Required = append(p.c.Required, API{d.Group, d.Version, d.Kind, d.Name})
	}
}

// images collects the images of the deployments.
func (p *csvReader) images(install []byte) {
	if install == nil {
		return
	}
	if strategy := jsonscan.TextAt(install, "strategy"); strategy != "deployment" {
		p.fatal("spec.install.strategy", fmt.Sprintf("must be %q, not %s", "deployment", fault.Quote(strategy)))
		return
	}
	n := 0
	jsonscan.Elements(jsonscan.Member(install, "spec", "deployments"), func(deployment []byte) bool {
		pod := jsonscan.Member(deployment, "spec", "template", "spec")
		for _, list := range []string{"containers", "initContainers"} {
			jsonscan.Elements(jsonscan.Member(pod, list), func(container []byte) bool {
				image := jsonscan.Member(container, "image")
				s, ok := jsonscan.Text(image)
				if !ok && image != nil && string(image) != "null" {
					p.fatal(fmt.Sprintf("spec.install.spec.deployments[%d]", n),
						"an image "+shape.Mismatch(shape.Of(image), shape.String, string(image)))
				}
				if s != "" {
					p.c.Images = append(p.c.Images, s)
				}
				return true
			})
		}
		n++
		return true
	})
	slices.Sort(p.c.Images)
	p.c.Images = slices.Compact(p.c.Images)
}

// properties reads the annotation olm.properties. Its values keep the order of their keys.
func (p *csvReader) properties(annotation string) []declcfg.Property {
	const field = "metadata.annotations[" + annotationProperties + "]"
	if annotation == "" {
		return nil
	}
	var list []struct {
		Type  string             `json:"type"`
		Value stdjson.RawMessage `json:"value"`
	}
	if err := stdjson.Unmarshal([]byte(annotation), &list); err != nil {
		p.addProblem(field, "no list of properties in JSON, it is ignored: "+fault.Clip(err.Error(), maxReason))
		return nil
	}
	var out []declcfg.Property
	for i, item := range list {
		value := jsontext.Value(item.Value)
		at := placeBelow(p.place(field), i)
		if item.Type == "" || len(value) == 0 || value.Compact() != nil {
			p.r.addProblem(p.r.problem(RuleCSV, at, "type and value must be set: it is passed over"))
			continue
		}
		d := declcfg.Property{Type: item.Type, Value: stdjson.RawMessage(value)}
		p.r.b.declared = append(p.r.b.declared, Declaration{Property: d, Rule: RuleProperty, File: at.File, Line: at.Line,
			Path: placeBelow(at, "value").Path})
		out = append(out, d)
	}
	return out
}
