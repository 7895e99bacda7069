package serve

import (
	"cmp"

	json "github.com/go-json-experiment/json/v1"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
)

// clusterServiceVersion is the part of a ClusterServiceVersion that a catalog contains, in the field order of the
// Operator Lifecycle Manager's type, whose JSON the answers have.
type clusterServiceVersion struct {
	Kind       string    `json:"kind"`
	APIVersion string    `json:"apiVersion"`
	Metadata   csvMeta   `json:"metadata"`
	Spec       csvSpec   `json:"spec"`
	Status     csvStatus `json:"status"`
}

type csvMeta struct {
	Name        string            `json:"name,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type csvSpec struct {
	Install                   csvInstall                         `json:"install"`
	Version                   string                             `json:"version"`
	Maturity                  string                             `json:"maturity,omitempty"`
	CustomResourceDefinitions property.CustomResourceDefinitions `json:"customresourcedefinitions"`
	APIServiceDefinitions     property.APIServiceDefinitions     `json:"apiservicedefinitions"`
	NativeAPIs                []property.GroupVersionKind        `json:"nativeAPIs,omitempty"`
	MinKubeVersion            string                             `json:"minKubeVersion,omitempty"`
	DisplayName               string                             `json:"displayName"`
	Description               string                             `json:"description,omitempty"`
	Keywords                  []string                           `json:"keywords,omitempty"`
	Maintainers               []property.Maintainer              `json:"maintainers,omitempty"`
	Provider                  property.AppLink                   `json:"provider"`
	Links                     []property.AppLink                 `json:"links,omitempty"`
	Icon                      []csvIcon                          `json:"icon,omitempty"`
	InstallModes              []property.InstallMode             `json:"installModes,omitempty"`
	Cleanup                   struct {
		Enabled bool `json:"enabled"`
	} `json:"cleanup"`
	RelatedImages []csvRelatedImage `json:"relatedImages,omitempty"`
}

// csvInstall names a strategy without deployments. Consumers access the strategy without a check, so it must exist.
type csvInstall struct {
	Strategy string `json:"strategy"`
	Spec     struct {
		Deployments []struct{} `json:"deployments"`
	} `json:"spec"`
}

type csvIcon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type csvRelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

type csvStatus struct {
	Cleanup struct{} `json:"cleanup"`
}

// synthesizeCSV builds a ClusterServiceVersion from its metadata in the catalog, as compact JSON.
func synthesizeCSV(pkg *declcfg.PackageNode, b *declcfg.BundleNode, metadata *declcfg.Property) ([]byte, error) {
	m := &csvMetadata{}
	if err := json.Unmarshal(metadata.Value, m); err != nil {
		return nil, propertyError(metadata, err)
	}
	csv := clusterServiceVersion{
		Kind:       "ClusterServiceVersion",
		APIVersion: "operators.coreos.com/v1alpha1",
		Metadata:   csvMeta{Name: b.Name, Labels: m.Labels, Annotations: m.Annotations},
		Spec: csvSpec{
			Version:                   b.Version.Version.String(),
			Maturity:                  m.Maturity,
			CustomResourceDefinitions: m.CustomResourceDefinitions,
			APIServiceDefinitions:     m.APIServiceDefinitions,
			NativeAPIs:                m.NativeAPIs,
			MinKubeVersion:            m.MinKubeVersion,
			DisplayName:               m.DisplayName,
			Description:               m.Description,
			Keywords:                  m.Keywords,
			Maintainers:               m.Maintainers,
			Provider:                  m.Provider,
			Links:                     m.Links,
			InstallModes:              m.InstallModes,
		},
	}
	csv.Spec.Install.Strategy = "deployment"
	csv.Spec.Description = cmp.Or(csv.Spec.Description, pkg.Description)
	if pkg.Icon != nil {
		csv.Spec.Icon = []csvIcon{{Data: pkg.Icon.Data, MediaType: pkg.Icon.MediaType}}
	}
	for _, r := range b.RelatedImages {
		csv.Spec.RelatedImages = append(csv.Spec.RelatedImages, csvRelatedImage{Name: r.Name, Image: r.Image})
	}
	return json.Marshal(csv)
}
