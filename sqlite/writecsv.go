package sqlite

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
)

// stubCSV is a ClusterServiceVersion made of what a catalog knows of a bundle whose manifests it does not have. It
// installs nothing: what is installed comes out of the bundle's image.
type stubCSV struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Annotations stdjson.RawMessage `json:"annotations,omitempty"`
		Labels      stdjson.RawMessage `json:"labels,omitempty"`
		Name        string             `json:"name"`
	} `json:"metadata"`
	Spec struct {
		APIServiceDefinitions     stdjson.RawMessage `json:"apiservicedefinitions,omitempty"`
		CustomResourceDefinitions stdjson.RawMessage `json:"customresourcedefinitions,omitempty"`
		Description               string             `json:"description,omitempty"`
		DisplayName               stdjson.RawMessage `json:"displayName,omitempty"`
		Icon                      []stubIcon         `json:"icon,omitempty"`
		Install                   struct {
			Spec struct {
				Deployments []struct{} `json:"deployments"`
			} `json:"spec"`
			Strategy string `json:"strategy"`
		} `json:"install"`
		InstallModes   stdjson.RawMessage `json:"installModes,omitempty"`
		Keywords       stdjson.RawMessage `json:"keywords,omitempty"`
		Links          stdjson.RawMessage `json:"links,omitempty"`
		Maintainers    stdjson.RawMessage `json:"maintainers,omitempty"`
		Maturity       stdjson.RawMessage `json:"maturity,omitempty"`
		MinKubeVersion stdjson.RawMessage `json:"minKubeVersion,omitempty"`
		NativeAPIs     stdjson.RawMessage `json:"nativeAPIs,omitempty"`
		Provider       stdjson.RawMessage `json:"provider,omitempty"`
		RelatedImages  []stubImage        `json:"relatedImages,omitempty"`
		Version        string             `json:"version"`
	} `json:"spec"`
}

type stubIcon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type stubImage struct {
	Image string `json:"image"`
	Name  string `json:"name"`
}

// csvMetadata is the value of an olm.csv.metadata property. What a ClusterServiceVersion has under the same names and in
// the same form is not looked into.
type csvMetadata struct {
	Annotations               stdjson.RawMessage `json:"annotations"`
	APIServiceDefinitions     stdjson.RawMessage `json:"apiServiceDefinitions"`
	CustomResourceDefinitions stdjson.RawMessage `json:"crdDescriptions"`
	Description               string             `json:"description"`
	DisplayName               stdjson.RawMessage `json:"displayName"`
	InstallModes              stdjson.RawMessage `json:"installModes"`
	Keywords                  stdjson.RawMessage `json:"keywords"`
	Labels                    stdjson.RawMessage `json:"labels"`
	Links                     stdjson.RawMessage `json:"links"`
	Maintainers               stdjson.RawMessage `json:"maintainers"`
	Maturity                  stdjson.RawMessage `json:"maturity"`
	MinKubeVersion            stdjson.RawMessage `json:"minKubeVersion"`
	NativeAPIs                stdjson.RawMessage `json:"nativeAPIs"`
	Provider                  stdjson.RawMessage `json:"provider"`
}

// stub makes the ClusterServiceVersion of a bundle that has none. It is needed for the heads of channels, which OLM shows
// and without which opm reads no package; for names of images, which are nowhere else in a database; and where the
// catalog has the metadata of one. Any other bundle has none, as in databases of opm's semver mode.
func (p *packageWriter) stub(b *declcfg.Bundle, plan *plan, property property.Package) ([]byte, error) {
	at := slices.IndexFunc(b.Properties, func(p declcfg.Property) bool { return p.Type == declcfg.PropertyCSVMetadata })
	named := slices.ContainsFunc(b.RelatedImages, func(r declcfg.RelatedImage) bool { return r.Name != "" })
	if at < 0 && !named && !plan.head {
		return nil, nil
	}
	var m csvMetadata
	if at >= 0 {
		if err := stdjson.Unmarshal(b.Properties[at].Value, &m); err != nil {
			return nil, fmt.Errorf("%w: property %d of type %s: %w", ErrInvalid, at, declcfg.PropertyCSVMetadata, shorten(err))
		}
	}
	c := stubCSV{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion"}
	c.Metadata.Name, c.Metadata.Annotations, c.Metadata.Labels = b.Name, m.Annotations, m.Labels
	s := &c.Spec
	s.APIServiceDefinitions, s.CustomResourceDefinitions, s.NativeAPIs = m.APIServiceDefinitions, m.CustomResourceDefinitions, m.NativeAPIs
	s.DisplayName, s.Description, s.Keywords, s.Links, s.Maintainers, s.Provider = m.DisplayName, m.Description, m.Keywords, m.Links, m.Maintainers, m.Provider
	s.InstallModes, s.Maturity, s.MinKubeVersion = m.InstallModes, m.Maturity, m.MinKubeVersion
	s.Version = property.Version
	s.Install.Strategy, s.Install.Spec.Deployments = "deployment", []struct{}{}
	for _, r := range b.RelatedImages {
		s.RelatedImages = append(s.RelatedImages, stubImage{r.Image, r.Name})
	}
	if plan.head && len(p.part.Packages) > 0 {
		pkg := &p.part.Packages[0]
		if s.Description == "" {
			s.Description = pkg.Description
		}
		if pkg.Icon != nil {
			s.Icon = []stubIcon{{pkg.Icon.Data, pkg.Icon.MediaType}}
		}
	}
	return encodeJSON(c)
}

// withIcon returns a ClusterServiceVersion with the icon of the package, or without one if the package has none. It is
// for the head of the default channel, where the icon of a package is in a database; the manifests stay as they are.
func (p *packageWriter) withIcon(b *declcfg.Bundle, document []byte) ([]byte, error) {
	if len(p.part.Packages) == 0 {
		return document, nil
	}
	want := p.part.Packages[0].Icon
	if have, err := readIcon(document); err != nil || have == nil && want == nil {
		if want == nil {
			return document, nil
		}
	} else if have != nil && want != nil && bytes.Equal(have.Data, want.Data) && have.MediaType == want.MediaType {
		return document, nil
	}
	var top, spec map[string]stdjson.RawMessage
	err := stdjson.Unmarshal(document, &top)
	if err == nil && top["spec"] != nil {
		err = stdjson.Unmarshal(top["spec"], &spec)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the ClusterServiceVersion: %w", ErrInvalid, shorten(err))
	}
	if spec == nil {
		spec = map[string]stdjson.RawMessage{}
	}
	delete(spec, "icon")
	if want != nil {
		spec["icon"], err = encodeJSON([]stubIcon{{want.Data, want.MediaType}})
	}
	if err == nil {
		top["spec"], err = encodeJSON(spec)
	}
	if err == nil {
		document, err = encodeJSON(top)
	}
	if err != nil {
		return nil, errors.Join(ErrInvalid, err)
	}
	p.changed(Finding{Bundle: b.Name, Field: "icon", Reason: "the icon of the package is not that of the bundle, the head of the default channel; column csv has that of the package"})
	return document, nil
}

// encodeJSON encodes a value without HTML escapes and without a newline.
func encodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := stdjson.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
