package declcfg

import (
	"encoding/base64"
	"encoding/json"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// The scanner's decoders of the four known schemas. They accept what writers usually write: known names in their exact
// case, values of the right types. On anything else they fail, and encoding/json decodes the blob.

func (s *scanner) pkg(p *Package) {
	s.Object(func(key []byte) {
		switch string(key) {
		case "schema":
			s.Value()
		case "name":
			p.Name = s.optionalStr()
		case "defaultChannel":
			p.DefaultChannel = s.optionalStr()
		case "description":
			p.Description = s.optionalStr()
		case "icon":
			if s.Null() {
				return
			}
			p.Icon = &Icon{}
			s.Object(func(key []byte) {
				switch string(key) {
				case "base64data":
					p.Icon.Data = s.base64()
				case "mediatype":
					p.Icon.MediaType = s.optionalStr()
				default:
					s.Fail()
				}
			})
		case "properties":
			p.Properties = s.properties()
		default:
			p.Unknown = s.unknown(p.Unknown, key, packageFields)
		}
	})
}

func (s *scanner) channel(c *Channel) {
	s.Object(func(key []byte) {
		switch string(key) {
		case "schema":
			s.Value()
		case "name":
			c.Name = s.optionalStr()
		case "package":
			c.Package = s.optionalStr()
		case "entries":
			if s.Null() {
				return
			}
			c.Entries = []ChannelEntry{}
			s.Array(func() { c.Entries = append(c.Entries, s.channelEntry()) })
		case "properties":
			c.Properties = s.properties()
		default:
			c.Unknown = s.unknown(c.Unknown, key, channelFields)
		}
	})
}

func (s *scanner) channelEntry() (e ChannelEntry) {
	s.Object(func(key []byte) {
		switch string(key) {
		case "name":
			e.Name = s.optionalStr()
		case "replaces":
			e.Replaces = s.optionalStr()
		case "skips":
			if !s.Null() {
				s.Array(func() { e.Skips = append(e.Skips, s.optionalStr()) })
			}
		case "skipRange":
			e.SkipRange = s.optionalStr()
		default:
			s.skipUnknown(key, "name", "replaces", "skips", "skipRange")
		}
	})
	return e
}

func (s *scanner) bundle(b *Bundle) {
	s.Object(func(key []byte) {
		switch string(key) {
		case "schema":
			s.Value()
		case "name":
			b.Name = s.optionalStr()
		case "package":
			b.Package = s.optionalStr()
		case "image":
			b.Image = s.optionalStr()
		case "properties":
			b.Properties = s.properties()
		case "relatedImages":
			if s.Null() {
				return
			}
			s.Array(func() {
				var r RelatedImage
				s.Object(func(key []byte) {
					switch string(key) {
					case "name":
						r.Name = s.optionalStr()
					case "image":
						r.Image = s.optionalStr()
					default:
						s.skipUnknown(key, "name", "image")
					}
				})
				b.RelatedImages = append(b.RelatedImages, r)
			})
		default:
			b.Unknown = s.unknown(b.Unknown, key, bundleFields)
		}
	})
}

func (s *scanner) deprecations(d *Deprecations) {
	s.Object(func(key []byte) {
		switch string(key) {
		case "schema":
			s.Value()
		case "package":
			d.Package = s.optionalStr()
		case "entries":
			if s.Null() {
				return
			}
			d.Entries = []DeprecationEntry{}
			s.Array(func() {
				var e DeprecationEntry
				s.Object(func(key []byte) {
					switch string(key) {
					case "message":
						e.Message = s.optionalStr()
					case "reference":
						s.Object(func(key []byte) {
							switch string(key) {
							case "schema":
								e.Reference.Schema = s.optionalStr()
							case "name":
								e.Reference.Name = s.optionalStr()
							default:
								s.skipUnknown(key, "schema", "name")
							}
						})
					default:
						s.skipUnknown(key, "message", "reference")
					}
				})
				d.Entries = append(d.Entries, e)
			})
		default:
			d.Unknown = s.unknown(d.Unknown, key, deprecationsFields)
		}
	})
}

func (s *scanner) properties() []Property {
	if s.Null() {
		return nil
	}
	var ps []Property
	s.Array(func() {
		var p Property
		s.Object(func(key []byte) {
			switch string(key) {
			case "type":
				p.Type = s.optionalStr()
			case "value":
				p.Value = s.Value()
			default:
				s.skipUnknown(key, "type", "value")
			}
		})
		ps = append(ps, p)
	})
	return ps
}

// optionalStr reads a string or null.
func (s *scanner) optionalStr() string {
	if s.Null() {
		return ""
	}
	return s.String()
}

func (s *scanner) base64() []byte {
	if s.Null() {
		return nil
	}
	raw := s.RawString()
	if raw == nil {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(string(raw[1 : len(raw)-1]))
	if err != nil {
		s.Fail() // an escape, or an error that encoding/json will report
	}
	return data
}

func (s *scanner) unknown(fields []Field, key []byte, known []string) []Field {
	if jsonscan.FoldsTo(key, known...) {
		s.Fail()
		return fields
	}
	s.odd = true
	return append(fields, Field{Name: string(key), Value: s.Value()})
}

func (s *scanner) skipUnknown(key []byte, known ...string) {
	if jsonscan.FoldsTo(key, known...) {
		s.Fail()
		return
	}
	s.odd = true
	s.Value()
}

// The structs through which encoding/json decodes the known schemas.

type jsonProperty struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

func toProperties(in []jsonProperty) []Property {
	var out []Property
	for _, p := range in {
		out = append(out, Property(p))
	}
	return out
}

type jsonPackage struct {
	Name           string `json:"name"`
	DefaultChannel string `json:"defaultChannel"`
	Icon           *struct {
		Data      []byte `json:"base64data"`
		MediaType string `json:"mediatype"`
	} `json:"icon"`
	Description string         `json:"description"`
	Properties  []jsonProperty `json:"properties"`
}

func (f *jsonPackage) to(p *Package) {
	p.Name, p.DefaultChannel, p.Description = f.Name, f.DefaultChannel, f.Description
	p.Properties = toProperties(f.Properties)
	if f.Icon != nil {
		p.Icon = &Icon{Data: f.Icon.Data, MediaType: f.Icon.MediaType}
	}
}

type jsonChannel struct {
	Name    string `json:"name"`
	Package string `json:"package"`
	Entries []struct {
		Name      string   `json:"name"`
		Replaces  string   `json:"replaces"`
		Skips     []string `json:"skips"`
		SkipRange string   `json:"skipRange"`
	} `json:"entries"`
	Properties []jsonProperty `json:"properties"`
}

func (f *jsonChannel) to(c *Channel) {
	c.Name, c.Package, c.Properties = f.Name, f.Package, toProperties(f.Properties)
	if f.Entries != nil {
		c.Entries = []ChannelEntry{}
	}
	for _, e := range f.Entries {
		c.Entries = append(c.Entries, ChannelEntry(e))
	}
}

type jsonBundle struct {
	Name          string         `json:"name"`
	Package       string         `json:"package"`
	Image         string         `json:"image"`
	Properties    []jsonProperty `json:"properties"`
	RelatedImages []struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	} `json:"relatedImages"`
}

func (f *jsonBundle) to(b *Bundle) {
	b.Name, b.Package, b.Image, b.Properties = f.Name, f.Package, f.Image, toProperties(f.Properties)
	for _, r := range f.RelatedImages {
		b.RelatedImages = append(b.RelatedImages, RelatedImage(r))
	}
}

type jsonDeprecations struct {
	Package string `json:"package"`
	Entries []struct {
		Reference struct {
			Schema string `json:"schema"`
			Name   string `json:"name"`
		} `json:"reference"`
		Message string `json:"message"`
	} `json:"entries"`
}

func (f *jsonDeprecations) to(d *Deprecations) {
	d.Package = f.Package
	if f.Entries != nil {
		d.Entries = []DeprecationEntry{}
	}
	for _, e := range f.Entries {
		d.Entries = append(d.Entries, DeprecationEntry{Reference: Reference(e.Reference), Message: e.Message})
	}
}
