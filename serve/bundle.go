package serve

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"

	json "github.com/go-json-experiment/json/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/api"
)

// properties are a bundle's properties in the form of the service.
type properties struct {
	provided     []gvk
	required     []gvk
	dependencies [][2]string // type and JSON value
	shown        []declcfg.Property
	csv          *declcfg.Property // of type olm.csv.metadata; nil if there is none
}

func propertyError(p *declcfg.Property, err error) error {
	return fmt.Errorf("parse properties: property of type %q: %w", p.Type, err)
}

// dependencyPackage is the value of an olm.package dependency, whose field "version" is a range.
type dependencyPackage struct {
	PackageName string `json:"packageName"`
	Version     string `json:"version"`
}

// readProperties sorts a bundle's properties by their use. Manifests and CSV metadata are omitted: they are in the
// fields csvJson and object.
func readProperties(b *declcfg.Bundle) (*properties, error) {
	p := &properties{}
	for i := range b.Properties {
		prop := &b.Properties[i]
		if err := p.add(prop); err != nil {
			return nil, propertyError(prop, err)
		}
		if prop.Type != declcfg.PropertyBundleObject && prop.Type != declcfg.PropertyCSVMetadata {
			p.shown = append(p.shown, *prop)
		}
	}
	return p, nil
}

func (p *properties) add(prop *declcfg.Property) error {
	switch prop.Type {
	case declcfg.PropertyGVK, declcfg.PropertyGVKRequired:
		var v property.GVK
		if err := json.Unmarshal(prop.Value, &v); err != nil {
			return err
		}
		k := gvk{v.Group, v.Version, v.Kind}
		if prop.Type == declcfg.PropertyGVK {
			p.provided = append(p.provided, k)
			return nil
		}
		p.required = append(p.required, k)
		p.dependencies = append(p.dependencies, [2]string{declcfg.PropertyGVK, string(prop.Value)})
	case declcfg.PropertyPackageRequired:
		var v property.PackageRequired
		if err := json.Unmarshal(prop.Value, &v); err != nil {
			return err
		}
		dependency, err := declcfg.NewProperty(declcfg.PropertyPackage,
			dependencyPackage{v.PackageName, v.VersionRange})
		if err != nil {
			return err
		}
		p.dependencies = append(p.dependencies, [2]string{dependency.Type, string(dependency.Value)})
	case declcfg.PropertyCSVMetadata:
		if p.csv != nil {
			return fmt.Errorf("expected at most 1 property")
		}
		p.csv = prop
	}
	return nil
}

// lightBundle returns the fields of an api.Bundle that are the same in every channel, without the manifests.
func lightBundle(pkg *declcfg.PackageNode, b *declcfg.BundleNode, p *properties) []byte {
	m := appendString(nil, bundleCSVName, b.Name)
	m = appendString(m, bundlePackageName, pkg.Name)
	m = appendString(m, bundlePath, b.Image)
	for _, k := range p.provided {
		m = appendGVK(m, bundleProvidedAPIs, k)
	}
	for _, k := range p.required {
		m = appendGVK(m, bundleRequiredAPIs, k)
	}
	m = appendString(m, bundleVersion, b.PackageProperty.Version)
	for _, d := range p.dependencies {
		m = appendPair(m, bundleDependencies, d[0], d[1])
	}
	for _, prop := range p.shown {
		m = appendPair(m, bundleProperties, prop.Type, string(prop.Value))
	}
	return appendDeprecation(m, bundleDeprecation, b.Deprecation)
}

// appendHeavyBundle appends the fields csvJson and object of an api.Bundle. A bundle without manifests gets a CSV
// synthesized from its metadata, if it has that.
func appendHeavyBundle(dst []byte, pkg *declcfg.PackageNode, b *declcfg.BundleNode,
	metadata *declcfg.Property) ([]byte, error) {
	if b.HasObjects && !hasValues(b.Bundle) {
		return nil, fmt.Errorf("its manifests were not loaded")
	}
	objects, csv, err := b.Manifests()
	if err != nil {
		return nil, err
	}
	if csv == nil && metadata != nil {
		if csv, err = synthesizeCSV(pkg, b, metadata); err != nil {
			return nil, err
		}
		if len(objects) == 0 {
			objects = [][]byte{csv}
		}
	}
	return appendManifests(dst, csv, objects), nil
}

// appendManifests appends the fields csvJson and object of an api.Bundle.
func appendManifests(dst, csv []byte, objects [][]byte) []byte {
	size := 1 + protowire.SizeBytes(len(csv))
	for _, o := range objects {
		size += 1 + protowire.SizeBytes(len(o))
	}
	dst = slices.Grow(dst, size)
	if len(csv) > 0 {
		dst = appendMessage(dst, bundleCSVJSON, csv)
	}
	for _, o := range objects {
		dst = appendMessage(dst, bundleObject, o)
	}
	return dst
}

// heavySize estimates the length of the heavy part of a bundle.
func heavySize(pkg *declcfg.PackageNode, b *declcfg.Bundle) int {
	size, largest, metadata := 0, 0, 0
	for i := range b.Properties {
		switch b.Properties[i].Type {
		case declcfg.PropertyBundleObject:
			n := base64.StdEncoding.DecodedLen(len(b.Properties[i].Value))
			size += n
			largest = max(largest, n) // an estimate of the CSV, which is in there twice
		case declcfg.PropertyCSVMetadata:
			metadata = len(b.Properties[i].Value)
		}
	}
	if size > 0 || metadata == 0 {
		return size + largest
	}
	csv := metadata + 500
	if pkg.Icon != nil {
		csv += base64.StdEncoding.EncodedLen(len(pkg.Icon.Data))
	}
	if len(b.RelatedImages) > 0 {
		csv += len(b.RelatedImages) * (30 + len(b.RelatedImages[0].Name) + len(b.RelatedImages[0].Image))
	}
	return 2 * csv
}

// hasValues returns false for a bundle whose manifests a skeleton load has dropped.
func hasValues(b *declcfg.Bundle) bool {
	return slices.ContainsFunc(b.Properties, func(p declcfg.Property) bool {
		return p.Type == declcfg.PropertyBundleObject
	})
}

// appendEntry appends the fields of an api.Bundle that depend on the channel. Only the list of all bundles has edges.
func appendEntry(dst []byte, channel string, e *indexEntry, edges bool) []byte {
	dst = appendString(dst, bundleChannelName, channel)
	dst = appendString(dst, bundleSkipRange, e.skipRange)
	if !edges {
		return dst
	}
	dst = appendString(dst, bundleReplaces, e.replaces)
	for _, s := range e.skips {
		dst = appendElement(dst, bundleSkips, s)
	}
	return dst
}

// structMessage returns the google.protobuf.Struct of a blob.
func structMessage(blob []byte) ([]byte, error) {
	var s structpb.Struct
	if err := s.UnmarshalJSON(blob); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(&s)
}

// BundleAnswers returns the answers about a bundle, one for each channel that has it, with manifests, which they share,
// and edges; which of these an answer contains depends on the call. The bundle must not be one of a skeleton.
func BundleAnswers(pkg *declcfg.PackageNode, b *declcfg.BundleNode) ([]*api.Bundle, error) {
	common, err := commonAnswer(pkg, b)
	if err != nil {
		return nil, fmt.Errorf("package %q, bundle %q: %w", pkg.Name, b.Name, err)
	}
	var all []*api.Bundle
	for _, c := range pkg.Channels {
		entry := c.Entry(b.Name)
		if entry == nil {
			continue
		}
		all = append(all, &api.Bundle{
			CsvName: common.CsvName, PackageName: common.PackageName, ChannelName: c.Name, CsvJson: common.CsvJson,
			Object:     common.Object,
			BundlePath: common.BundlePath, ProvidedApis: common.ProvidedApis, RequiredApis: common.RequiredApis,
			Version:   common.Version,
			SkipRange: entry.SkipRange, Dependencies: common.Dependencies, Properties: common.Properties,
			Replaces: entry.Replaces, Skips: entry.Skips, Deprecation: common.Deprecation,
		})
	}
	return all, nil
}

// commonAnswer returns the common part of the answers about a bundle.
func commonAnswer(pkg *declcfg.PackageNode, b *declcfg.BundleNode) (*api.Bundle, error) {
	props, err := readProperties(b.Bundle)
	if err != nil {
		return nil, err
	}
	wire, err := appendHeavyBundle(lightBundle(pkg, b, props), pkg, b, props.csv)
	if err != nil {
		return nil, err
	}
	common := &api.Bundle{}
	return common, proto.Unmarshal(wire, common)
}

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
	Icon                      []declcfg.Icon                     `json:"icon,omitempty"`
	InstallModes              []property.InstallMode             `json:"installModes,omitempty"`
	Cleanup                   struct {
		Enabled bool `json:"enabled"`
	} `json:"cleanup"`
	RelatedImages []declcfg.RelatedImage `json:"relatedImages,omitempty"`
}

// csvInstall names a strategy without deployments. Consumers access the strategy without a check, so it must exist.
type csvInstall struct {
	Strategy string `json:"strategy"`
	Spec     struct {
		Deployments []struct{} `json:"deployments"`
	} `json:"spec"`
}

type csvStatus struct {
	Cleanup struct{} `json:"cleanup"`
}

// synthesizeCSV builds a ClusterServiceVersion from its metadata in the catalog, as compact JSON.
func synthesizeCSV(pkg *declcfg.PackageNode, b *declcfg.BundleNode, metadata *declcfg.Property) ([]byte, error) {
	m := &property.CSVMetadata{}
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
			RelatedImages:             b.RelatedImages,
		},
	}
	csv.Spec.Install.Strategy = "deployment"
	csv.Spec.Description = cmp.Or(csv.Spec.Description, pkg.Description)
	if pkg.Icon != nil {
		csv.Spec.Icon = []declcfg.Icon{*pkg.Icon}
	}
	return json.Marshal(csv)
}
