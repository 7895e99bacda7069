package sqlite

import (
	"bytes"
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/canon"
)

// stubCSV is a ClusterServiceVersion generated from catalog data for a bundle without manifests. It installs nothing:
// OLM takes what it installs from the bundle's image.
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
		csvTitle
		Icon    []declcfg.Icon `json:"icon,omitempty"`
		Install struct {
			Spec struct {
				Deployments []struct{} `json:"deployments"`
			} `json:"spec"`
			Strategy string `json:"strategy"`
		} `json:"install"`
		csvDetails
		RelatedImages []stubImage `json:"relatedImages,omitempty"`
		Version       string      `json:"version"`
	} `json:"spec"`
}

// csvTitle and csvDetails are what a ClusterServiceVersion and an olm.csv.metadata property have under the same names
// and in the same form, which is not decoded. They are two types because of the order of the fields.
type csvTitle struct {
	Description string             `json:"description,omitempty"`
	DisplayName stdjson.RawMessage `json:"displayName,omitempty"`
}

type csvDetails struct {
	InstallModes   stdjson.RawMessage `json:"installModes,omitempty"`
	Keywords       stdjson.RawMessage `json:"keywords,omitempty"`
	Links          stdjson.RawMessage `json:"links,omitempty"`
	Maintainers    stdjson.RawMessage `json:"maintainers,omitempty"`
	Maturity       stdjson.RawMessage `json:"maturity,omitempty"`
	MinKubeVersion stdjson.RawMessage `json:"minKubeVersion,omitempty"`
	NativeAPIs     stdjson.RawMessage `json:"nativeAPIs,omitempty"`
	Provider       stdjson.RawMessage `json:"provider,omitempty"`
}

// stubImage is a [declcfg.RelatedImage] with its fields in the order of their names.
type stubImage struct {
	Image string `json:"image"`
	Name  string `json:"name"`
}

// csvMetadata is the value of an olm.csv.metadata property.
type csvMetadata struct {
	Annotations               stdjson.RawMessage `json:"annotations"`
	APIServiceDefinitions     stdjson.RawMessage `json:"apiServiceDefinitions"`
	CustomResourceDefinitions stdjson.RawMessage `json:"crdDescriptions"`
	Labels                    stdjson.RawMessage `json:"labels"`
	csvTitle
	csvDetails
}

// stub generates the ClusterServiceVersion of a bundle that has none. It does so for channel heads, which OLM displays
// and opm requires; for names of images, which databases store nowhere else; and if the catalog has its metadata. Other
// bundles get none, as in databases of opm's semver mode.
func (p *packageWriter) stub(b *declcfg.Bundle, plan *plan, property property.Package) ([]byte, error) {
	at := slices.IndexFunc(b.Properties, func(p declcfg.Property) bool { return p.Type == declcfg.PropertyCSVMetadata })
	named := slices.ContainsFunc(b.RelatedImages, func(r declcfg.RelatedImage) bool { return r.Name != "" })
	if at < 0 && !named && !plan.head {
		return nil, nil
	}
	var m csvMetadata
	if at >= 0 {
		if err := stdjson.Unmarshal(b.Properties[at].Value, &m); err != nil {
			return nil, fmt.Errorf("%w: property %d of type %s: %w", ErrInvalid, at, declcfg.PropertyCSVMetadata,
				shorten(err))
		}
	}
	c := stubCSV{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion"}
	c.Metadata.Name, c.Metadata.Annotations, c.Metadata.Labels = b.Name, m.Annotations, m.Labels
	s := &c.Spec
	s.APIServiceDefinitions, s.CustomResourceDefinitions = m.APIServiceDefinitions, m.CustomResourceDefinitions
	s.csvTitle, s.csvDetails = m.csvTitle, m.csvDetails
	s.Version = property.Version
	s.Install.Strategy, s.Install.Spec.Deployments = "deployment", []struct{}{}
	for _, r := range b.RelatedImages {
		s.RelatedImages = append(s.RelatedImages, stubImage{r.Image, r.Name})
	}
	if plan.head && len(p.part.Packages) > 0 {
		pkg := &p.part.Packages[0]
		s.Description = cmp.Or(s.Description, pkg.Description)
		if pkg.Icon != nil {
			s.Icon = []declcfg.Icon{*pkg.Icon}
		}
	}
	return canon.Encode(c)
}

// withIcon returns a ClusterServiceVersion with the icon of the package, or without one if the package has none. It is
// for the head of the default channel, where databases store a package's icon; the manifests do not change.
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
		spec["icon"], err = canon.Encode([]declcfg.Icon{*want})
	}
	if err == nil {
		top["spec"], err = canon.Encode(spec)
	}
	if err == nil {
		document, err = canon.Encode(top)
	}
	if err != nil {
		return nil, errors.Join(ErrInvalid, err)
	}
	p.changed(Finding{Bundle: b.Name, Field: "icon",
		Reason: "the icon of the package is not that of the bundle, the head of the default channel; column csv has " +
			"that of the package"})
	return document, nil
}
