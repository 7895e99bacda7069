package property

import "encoding/json"

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

// CustomResourceDefinitions are the CRDs that an operator owns and requires.
type CustomResourceDefinitions struct {
	Owned    []CRDDescription `json:"owned,omitempty"`
	Required []CRDDescription `json:"required,omitempty"`
}

// CRDDescription describes one CRD. Name is its full name, PLURAL.GROUP.
type CRDDescription struct {
	Name              string                 `json:"name"`
	Version           string                 `json:"version"`
	Kind              string                 `json:"kind"`
	DisplayName       string                 `json:"displayName,omitempty"`
	Description       string                 `json:"description,omitempty"`
	Resources         []APIResourceReference `json:"resources,omitempty"`
	StatusDescriptors []Descriptor           `json:"statusDescriptors,omitempty"`
	SpecDescriptors   []Descriptor           `json:"specDescriptors,omitempty"`
	ActionDescriptors []Descriptor           `json:"actionDescriptors,omitempty"`
}

// APIServiceDefinitions are the aggregated APIs that an operator owns and requires.
type APIServiceDefinitions struct {
	Owned    []APIServiceDescription `json:"owned,omitempty"`
	Required []APIServiceDescription `json:"required,omitempty"`
}

// APIServiceDescription describes one aggregated API. Name is its plural.
type APIServiceDescription struct {
	Name              string                 `json:"name"`
	Group             string                 `json:"group"`
	Version           string                 `json:"version"`
	Kind              string                 `json:"kind"`
	DeploymentName    string                 `json:"deploymentName,omitempty"`
	ContainerPort     int32                  `json:"containerPort,omitempty"`
	DisplayName       string                 `json:"displayName,omitempty"`
	Description       string                 `json:"description,omitempty"`
	Resources         []APIResourceReference `json:"resources,omitempty"`
	StatusDescriptors []Descriptor           `json:"statusDescriptors,omitempty"`
	SpecDescriptors   []Descriptor           `json:"specDescriptors,omitempty"`
	ActionDescriptors []Descriptor           `json:"actionDescriptors,omitempty"`
}

// APIResourceReference names a resource that an API uses.
type APIResourceReference struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// Descriptor describes how a user interface shows a field of an API.
type Descriptor struct {
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
