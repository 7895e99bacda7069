package property

import (
	"encoding/json"
	"fmt"
)

// CSVMetadata is the value of an olm.csv.metadata property: the part of a ClusterServiceVersion (CSV) that a catalog
// contains if it lacks the bundle's manifests. The fields are in the order in which they are written.
type CSVMetadata struct {
	Annotations               map[string]string         `json:"annotations,omitempty"`
	APIServiceDefinitions     APIServiceDefinitions     `json:"apiServiceDefinitions"`
	CustomResourceDefinitions CustomResourceDefinitions `json:"crdDescriptions"`
	Description               string                    `json:"description,omitempty"`
	DisplayName               string                    `json:"displayName,omitempty"`
	InstallModes              []InstallMode             `json:"installModes,omitempty"`
	Keywords                  []string                  `json:"keywords,omitempty"`
	Labels                    map[string]string         `json:"labels,omitempty"`
	Links                     []AppLink                 `json:"links,omitempty"`
	Maintainers               []Maintainer              `json:"maintainers,omitempty"`
	Maturity                  string                    `json:"maturity,omitempty"`
	MinKubeVersion            string                    `json:"minKubeVersion,omitempty"`
	NativeAPIs                []GroupVersionKind        `json:"nativeAPIs,omitempty"`
	Provider                  AppLink                   `json:"provider"`
}

// CSVMetadataOf returns the metadata of a ClusterServiceVersion. Fields of another type than they have are an error; the
// others are there all the same.
func CSVMetadataOf(object []byte) (*CSVMetadata, error) {
	var csv struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
			Labels      map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			APIServiceDefinitions     APIServiceDefinitions     `json:"apiservicedefinitions"`
			CustomResourceDefinitions CustomResourceDefinitions `json:"customresourcedefinitions"`
			Description               string                    `json:"description"`
			DisplayName               string                    `json:"displayName"`
			InstallModes              []InstallMode             `json:"installModes"`
			Keywords                  []string                  `json:"keywords"`
			Links                     []AppLink                 `json:"links"`
			Maintainers               []Maintainer              `json:"maintainers"`
			Maturity                  string                    `json:"maturity"`
			MinKubeVersion            string                    `json:"minKubeVersion"`
			NativeAPIs                []GroupVersionKind        `json:"nativeAPIs"`
			Provider                  AppLink                   `json:"provider"`
		} `json:"spec"`
	}
	err := json.Unmarshal(object, &csv)
	if err != nil {
		err = fmt.Errorf("read ClusterServiceVersion: %w", err)
	}
	s := &csv.Spec
	return &CSVMetadata{
		Annotations:               csv.Metadata.Annotations,
		APIServiceDefinitions:     s.APIServiceDefinitions,
		CustomResourceDefinitions: s.CustomResourceDefinitions,
		Description:               s.Description,
		DisplayName:               s.DisplayName,
		InstallModes:              s.InstallModes,
		Keywords:                  s.Keywords,
		Labels:                    csv.Metadata.Labels,
		Links:                     s.Links,
		Maintainers:               s.Maintainers,
		Maturity:                  s.Maturity,
		MinKubeVersion:            s.MinKubeVersion,
		NativeAPIs:                s.NativeAPIs,
		Provider:                  s.Provider,
	}, err
}

// CustomResourceDefinitions are the CRDs that an operator owns and requires.
type CustomResourceDefinitions struct {
	Owned    []crdDescription `json:"owned,omitempty"`
	Required []crdDescription `json:"required,omitempty"`
}

// crdDescription describes one CRD. Name is its full name, PLURAL.GROUP.
type crdDescription struct {
	Name              string                 `json:"name"`
	Version           string                 `json:"version"`
	Kind              string                 `json:"kind"`
	DisplayName       string                 `json:"displayName,omitempty"`
	Description       string                 `json:"description,omitempty"`
	Resources         []apiResourceReference `json:"resources,omitempty"`
	StatusDescriptors []descriptor           `json:"statusDescriptors,omitempty"`
	SpecDescriptors   []descriptor           `json:"specDescriptors,omitempty"`
	ActionDescriptors []descriptor           `json:"actionDescriptors,omitempty"`
}

// APIServiceDefinitions are the aggregated APIs that an operator owns and requires.
type APIServiceDefinitions struct {
	Owned    []apiServiceDescription `json:"owned,omitempty"`
	Required []apiServiceDescription `json:"required,omitempty"`
}

// apiServiceDescription describes one aggregated API. Name is its plural.
type apiServiceDescription struct {
	Name              string                 `json:"name"`
	Group             string                 `json:"group"`
	Version           string                 `json:"version"`
	Kind              string                 `json:"kind"`
	DeploymentName    string                 `json:"deploymentName,omitempty"`
	ContainerPort     int32                  `json:"containerPort,omitempty"`
	DisplayName       string                 `json:"displayName,omitempty"`
	Description       string                 `json:"description,omitempty"`
	Resources         []apiResourceReference `json:"resources,omitempty"`
	StatusDescriptors []descriptor           `json:"statusDescriptors,omitempty"`
	SpecDescriptors   []descriptor           `json:"specDescriptors,omitempty"`
	ActionDescriptors []descriptor           `json:"actionDescriptors,omitempty"`
}

// apiResourceReference names a resource that an API uses.
type apiResourceReference struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// descriptor describes how a user interface shows a field of an API.
type descriptor struct {
	Path         string          `json:"path"`
	DisplayName  string          `json:"displayName,omitempty"`
	Description  string          `json:"description,omitempty"`
	XDescriptors []string        `json:"x-descriptors,omitempty"`
	Value        json.RawMessage `json:"value,omitempty"`
}

// InstallMode says whether an operator supports one install mode.
type InstallMode struct {
	Type      string `json:"type"`
	Supported bool   `json:"supported"`
}

// AppLink is a name with a URL.
type AppLink struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// Maintainer is a maintainer of an operator.
type Maintainer struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

// GroupVersionKind names an API.
type GroupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}
