package declcfg

import (
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/shape"
)

// scanner decodes blobs of the usual form.
type scanner struct {
	jsonscan.Scanner
	odd bool // a field that its schema does not define was skipped
}

func newScanner(b []byte) scanner { return scanner{Scanner: jsonscan.NewScanner(b)} }

// shapeOf maps the property types with a Go type to the shape of that type.
var shapeOf = func() map[string]*shape.Shape {
	resources := shape.List(shape.Open(shape.Texts("name", "kind", "version")))
	descriptor := shape.Texts("path", "displayName", "description")
	descriptor["x-descriptors"] = shape.List(shape.Text)
	descriptor["value"] = shape.Any
	descriptors := shape.List(shape.Open(descriptor))
	description := func(f map[string]*shape.Shape) *shape.Shape {
		f["resources"] = resources
		f["statusDescriptors"], f["specDescriptors"], f["actionDescriptors"] = descriptors, descriptors, descriptors
		return shape.Open(f)
	}
	definitions := func(elem *shape.Shape) *shape.Shape {
		return shape.Open(map[string]*shape.Shape{"owned": shape.List(elem), "required": shape.List(elem)})
	}
	apiService := shape.Texts("name", "group", "version", "kind", "deploymentName", "displayName", "description")
	apiService["containerPort"] = shape.Whole

	csv := shape.Texts("description", "displayName", "maturity", "minKubeVersion")
	csv["annotations"], csv["labels"] = shape.Map(shape.Text), shape.Map(shape.Text)
	csv["apiServiceDefinitions"] = definitions(description(apiService))
	csv["crdDescriptions"] = definitions(description(shape.Texts("name", "version", "kind", "displayName",
		"description")))
	csv["installModes"] = shape.List(shape.Open(map[string]*shape.Shape{"type": shape.Text, "supported": shape.Switch}))
	csv["keywords"] = shape.List(shape.Text)
	csv["links"] = shape.List(shape.Open(shape.Texts("name", "url")))
	csv["maintainers"] = shape.List(shape.Open(shape.Texts("name", "email")))
	csv["nativeAPIs"] = shape.List(shape.Open(shape.Texts("group", "version", "kind")))
	csv["provider"] = shape.Open(shape.Texts("name", "url"))

	gvk := shape.Open(shape.Texts("group", "kind", "version"))
	return map[string]*shape.Shape{
		PropertyPackage:         shape.Open(shape.Texts("packageName", "version", "release")),
		PropertyPackageRequired: shape.Open(shape.Texts("packageName", "versionRange")),
		PropertyGVK:             gvk,
		PropertyGVKRequired:     gvk,
		PropertyCSVMetadata:     shape.Open(csv),
	}
}()
