package sbom

import (
	"crypto/fips140"
	"io"
	"slices"

	"github.com/google/uuid"
)

// serialBase is what the names of documents begin with, from which their serial numbers are derived.
const serialBase = "https://github.com/operator-bindery/bindery/cyclonedx/"

type cdxComponent struct {
	Ref         string    `json:"bom-ref,omitempty"`
	Description string    `json:"description,omitempty"`
	Hashes      []cdxHash `json:"hashes,omitempty"`
	Name        string    `json:"name"`
	Properties  []cdxPair `json:"properties,omitempty"`
	PURL        string    `json:"purl,omitempty"`
	Type        string    `json:"type"`
	Version     string    `json:"version,omitempty"`
}

type cdxHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type cdxPair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type cdxDependency struct {
	DependsOn []string `json:"dependsOn"`
	Ref       string   `json:"ref"`
}

type cdxMetadata struct {
	Component cdxComponent `json:"component"`
	Timestamp string       `json:"timestamp"`
	Tools     cdxTools     `json:"tools"`
}

type cdxTools struct {
	Components []cdxComponent `json:"components"`
}

// cdxTypes are the types of components that are not containers.
var cdxTypes = map[kind]string{kindPackage: "application", kindOperator: "application", kindProgram: "application",
	kindModule: "library", kindLayer: "file"}

// writeCycloneDX writes the inventory as a CycloneDX 1.6 document in JSON (https://cyclonedx.org/docs/1.6/json/). Each
// entry is one line. The serial number is derived from the digest of the image. Components whose dependencies are not
// known are not listed as having none.
func writeCycloneDX(w io.Writer, inv *Inventory, o Options) error {
	list := components(inv)
	d := newDocument(w)
	d.member("$schema", "http://cyclonedx.org/schema/bom-1.6.schema.json")
	d.member("bomFormat", "CycloneDX")
	d.begin("components")
	for _, c := range list[1:] {
		d.entry(c.cyclonedx())
	}
	d.end()
	d.begin("dependencies")
	for _, c := range list {
		dep := cdxDependency{Ref: c.ref, DependsOn: []string{}}
		for _, list := range [][]*component{c.contains, c.needs} {
			for _, part := range list {
				dep.DependsOn = append(dep.DependsOn, part.ref)
			}
		}
		if slices.Sort(dep.DependsOn); len(dep.DependsOn) > 0 {
			d.entry(dep)
		}
	}
	d.end()
	d.member("metadata", cdxMetadata{
		Component: list[0].cyclonedx(), Timestamp: o.created(),
		Tools: cdxTools{[]cdxComponent{{Name: "bindery", Type: "application", Version: o.Version}}},
	})
	var serial uuid.UUID
	fips140.WithoutEnforcement(func() { // a name, which protects nothing
		serial = uuid.NewSHA1(uuid.NameSpaceURL, []byte(serialBase+inv.Image.Digest.String()))
	})
	d.member("serialNumber", "urn:uuid:"+serial.String())
	d.member("specVersion", "1.6")
	d.member("version", 1)
	return d.close()
}

// cyclonedx returns the component in CycloneDX's terms.
func (c *component) cyclonedx() cdxComponent {
	out := cdxComponent{Ref: c.ref, Description: c.comment, Name: c.name, PURL: c.purl, Type: "container",
		Version: c.version}
	if t, ok := cdxTypes[c.kind]; ok {
		out.Type = t
	}
	if sum := c.sha256(); sum != "" {
		out.Hashes = []cdxHash{{"SHA-256", sum}}
	}
	for _, p := range c.properties {
		out.Properties = append(out.Properties, cdxPair{"operatorframework:" + p.name, p.value})
	}
	return out
}
