package manifests

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Regular and SlowObjects are the two readers of files.
func Regular(text []byte) ([]*unstructured.Unstructured, bool) { return regular(text) }

func SlowObjects(text []byte) (found []*unstructured.Unstructured, err error) {
	err = slowObjects("f", text, func(u *unstructured.Unstructured) error {
		found = append(found, u)
		return nil
	})
	return found, err
}

// Schema checks a configuration against a schema with a deploymentConfig.
func Schema(content any) error {
	s := &shape{types: []string{"object"}, closed: true,
		properties: map[string]*shape{"deploymentConfig": deploymentConfigSchema()}}
	return checkSchema(s, content, "")
}

// PropertiesOf returns the annotation with the properties.
func PropertiesOf(b *Bundle) string { return b.csv.Annotations[propertiesAnnotation] }
