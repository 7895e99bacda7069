package declcfg

import (
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/shape"
)

// scanner decodes blobs of the usual form.
type scanner struct {
	jsonscan.Scanner
	odd bool // a field that its schema does not define was skipped
}

func newScanner(b []byte) scanner { return scanner{Scanner: jsonscan.NewScanner(b)} }

// shapeOf maps the property types with a Go type to the shape of that type. It allows checking values without decoding
// them, which is most of the cost of validating a 20 MB catalog.
var shapeOf = map[string]*shape.Shape{
	PropertyPackage:         shape.For[property.Package](),
	PropertyPackageRequired: shape.For[property.PackageRequired](),
	PropertyGVK:             shape.For[property.GVK](),
	PropertyGVKRequired:     shape.For[property.GVK](),
	PropertyCSVMetadata:     shape.For[property.CSVMetadata](),
}
