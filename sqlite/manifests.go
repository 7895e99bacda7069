package sqlite

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// span is the position of a value in a column. Columns are smaller than 2 GiB, see Limits.ValueBytes.
type span struct{ start, end int32 }

// manifests is the result of the first pass over a bundle's csv and bundle columns. The second pass, which delivers
// them, needs no parsing.
type manifests struct {
	objects []span // in the bundle column, in stored order
	csvAt   int    // index in objects of the first ClusterServiceVersion; -1 if there is none
	csv     *csv   // nil if neither column has a ClusterServiceVersion
}

// substitutesFor returns the name of the bundle that the bundle substitutes for; empty if there is none.
func (m *manifests) substitutesFor() string {
	if m.csv == nil {
		return ""
	}
	return m.csv.substitutesFor
}

type gvk struct{ group, version, kind string }

// propertyRow is a row of the properties or the dependencies table.
type propertyRow struct{ typ, value string }

// csv has the used fields of a ClusterServiceVersion.
type csv struct {
	version        string
	skipRange      string
	substitutesFor string
	relatedImages  []declcfg.RelatedImage
	operatorImages []string // of the deployments' containers
	owned          []gvk
	required       []gvk
	properties     []propertyRow // of the olm.properties annotation; nil if that is not JSON
	replaces       string
	skips          []string
	stub           bool // generated from catalog data, see stubCSV
}

// readManifests parses the two columns of one bundle. Empty and NULL columns are equivalent. The document is that of
// the csv column, nil if that is empty.
func readManifests(csvColumn, bundleColumn []byte) (*manifests, *csvDocument, error) {
	m := &manifests{csvAt: -1}
	dec := jsontext.NewDecoder(bytes.NewBuffer(bundleColumn))
	for {
		value, err := dec.ReadValue()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: column bundle: object %d: %w", ErrInvalid, len(m.objects), shorten(err))
		}
		if value.Kind() != '{' {
			return nil, nil, fmt.Errorf("%w: column bundle: object %d: not a JSON object", ErrInvalid, len(m.objects))
		}
		end := int32(dec.InputOffset())
		m.objects = append(m.objects, span{end - int32(len(value)), end})
		if m.csvAt < 0 && jsonscan.Kind(value) == "ClusterServiceVersion" {
			m.csvAt = len(m.objects) - 1
		}
	}
	inBundle := jsontext.Value(nil)
	if m.csvAt >= 0 {
		inBundle = m.objects[m.csvAt].of(bundleColumn)
	}
	csvColumn = bytes.TrimSpace(csvColumn)
	var document *csvDocument
	same := bytes.Equal(csvColumn, inBundle)
	if len(csvColumn) > 0 && !same {
		fromColumn, d, err := readCSV(csvColumn)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: column csv: %w", ErrInvalid, shorten(err))
		}
		m.csv, document = fromColumn, d
	}
	if inBundle != nil {
		fromBundle, d, err := readCSV(inBundle)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: column bundle: object %d: %w", ErrInvalid, m.csvAt, shorten(err))
		}
		m.csv = fromBundle
		if same {
			document = d
		}
	}
	return m, document, nil
}

func (s span) of(column []byte) []byte { return column[s.start:s.end] }

// shorten limits how much input an error of the JSON library quotes.
func shorten(err error) error {
	if text := err.Error(); len(text) > 160 {
		return errors.New(fault.Clip(text, 160))
	}
	return err
}

type csvDocument struct {
	Metadata struct {
		Annotations struct {
			SkipRange      jsontext.Value `json:"olm.skipRange"`
			SubstitutesFor jsontext.Value `json:"olm.substitutesFor"`
			Properties     jsontext.Value `json:"olm.properties"`
		} `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Version       jsontext.Value `json:"version"`
		Replaces      jsontext.Value `json:"replaces"`
		Skips         jsontext.Value `json:"skips"`
		RelatedImages []struct {
			Name  string `json:"name"`
			Image string `json:"image"`
		} `json:"relatedImages"`
		CRDs struct {
			Owned    []csvAPI `json:"owned"`
			Required []csvAPI `json:"required"`
		} `json:"customresourcedefinitions"`
		APIServices struct {
			Owned    []csvAPI `json:"owned"`
			Required []csvAPI `json:"required"`
		} `json:"apiservicedefinitions"`
		Install jsontext.Value `json:"install"`
	} `json:"spec"`
}

type csvAPI struct {
	Name    string `json:"name"`
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

type csvInstall struct {
	Spec struct {
		Deployments []struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers     []csvContainer `json:"containers"`
						InitContainers []csvContainer `json:"initContainers"`
					} `json:"spec"`
				} `json:"template"`
			} `json:"spec"`
		} `json:"deployments"`
	} `json:"spec"`
}

type csvContainer struct {
	Image string `json:"image"`
}

func readCSV(object []byte) (*csv, *csvDocument, error) {
	var d csvDocument
	if err := json.Unmarshal(object, &d); err != nil {
		return nil, nil, err
	}
	c := &csv{
		version:        jsonString(d.Spec.Version),
		skipRange:      jsonString(d.Metadata.Annotations.SkipRange),
		substitutesFor: jsonString(d.Metadata.Annotations.SubstitutesFor),
		replaces:       jsonString(d.Spec.Replaces),
		skips:          valueOf[[]string](d.Spec.Skips, '['),
	}
	for _, r := range d.Spec.RelatedImages {
		c.relatedImages = append(c.relatedImages, declcfg.RelatedImage{Name: r.Name, Image: r.Image})
	}
	c.owned = append(crdAPIs(d.Spec.CRDs.Owned), serviceAPIs(d.Spec.APIServices.Owned)...)
	c.required = append(crdAPIs(d.Spec.CRDs.Required), serviceAPIs(d.Spec.APIServices.Required)...)
	if annotation := jsonString(d.Metadata.Annotations.Properties); annotation != "" {
		c.properties = readProperties(annotation)
	}
	var install csvInstall // an undecodable part has no images; opm is as lenient
	if d.Spec.Install != nil && json.Unmarshal(d.Spec.Install, &install) == nil {
		c.stub = len(install.Spec.Deployments) == 0
		for _, dep := range install.Spec.Deployments {
			pod := dep.Spec.Template.Spec
			for _, container := range append(pod.Containers, pod.InitContainers...) {
				if container.Image != "" {
					c.operatorImages = append(c.operatorImages, container.Image)
				}
			}
		}
	}
	return c, &d, nil
}

// jsonString returns the string that a value is, or the empty string.
func jsonString(v jsontext.Value) string { return valueOf[string](v, '"') }

// valueOf decodes a value of the given kind. The result is zero if it is of another kind or type.
func valueOf[T any](v jsontext.Value, kind jsontext.Kind) T {
	var decoded, zero T
	if v.Kind() != kind || json.Unmarshal(v, &decoded) != nil {
		return zero
	}
	return decoded
}

// crdAPIs takes the group from the name of a CRD, PLURAL.GROUP.
func crdAPIs(crds []csvAPI) []gvk {
	var out []gvk
	for _, crd := range crds {
		_, group, _ := strings.Cut(crd.Name, ".")
		out = append(out, gvk{group, crd.Version, crd.Kind})
	}
	return out
}

func serviceAPIs(services []csvAPI) []gvk {
	var out []gvk
	for _, s := range services {
		out = append(out, gvk{s.Group, s.Version, s.Kind})
	}
	return out
}

// readProperties parses the olm.properties annotation, a JSON list. Anything else gives no properties, as when opm
// renders a bundle.
func readProperties(annotation string) []propertyRow {
	var list []struct {
		Type  string         `json:"type"`
		Value jsontext.Value `json:"value"`
	}
	if json.Unmarshal([]byte(annotation), &list) != nil {
		return nil
	}
	var out []propertyRow
	for _, p := range list {
		if p.Type != "" && p.Value != nil {
			out = append(out, propertyRow{p.Type, string(p.Value)})
		}
	}
	return out
}

// readIcon returns the first icon of a ClusterServiceVersion, or nil.
func readIcon(object []byte) (*declcfg.Icon, error) {
	var d struct {
		Spec struct {
			Icon []struct {
				Data      string `json:"base64data"`
				MediaType string `json:"mediatype"`
			} `json:"icon"`
		} `json:"spec"`
	}
	if err := stdjson.Unmarshal(object, &d); err != nil {
		return nil, err
	}
	if len(d.Spec.Icon) == 0 {
		return nil, nil
	}
	icon := d.Spec.Icon[0]
	if icon.Data == "" {
		return &declcfg.Icon{Data: []byte{}, MediaType: icon.MediaType}, nil // as opm
	}
	return declcfg.NewIcon(icon.Data, icon.MediaType)
}
