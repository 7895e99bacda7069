package manifests

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Regular and SlowObjects are the two readers of files.
func Regular(text []byte) (objects []*unstructured.Unstructured, ok bool) {
	all, ok := regular(text, false)
	for _, f := range all {
		objects = append(objects, f.object)
	}
	return objects, ok
}

// Squeezed returns the definitions of a file as the fast reader prints them, and how many it does not read.
func Squeezed(text []byte) (printed []string, others int) {
	all, _ := regular(text, true)
	for _, f := range all {
		if f.definition != nil {
			printed = append(printed, string(f.definition.JSON))
		} else if f.kind() == kindCRD {
			others++
		}
	}
	return printed, others
}

// Typed returns a definition as its type prints it.
func Typed(u *unstructured.Unstructured) (string, error) {
	b := &Bundle{}
	if err := b.add("", found{object: u}); err != nil {
		return "", err
	}
	return string(b.crds[0].JSON), nil
}

func SlowObjects(text []byte) (found []*unstructured.Unstructured, err error) {
	err = slowObjects("f", text, func(u *unstructured.Unstructured) error {
		found = append(found, u)
		return nil
	})
	return found, err
}

// PropertiesOf returns the annotation with the properties.
func PropertiesOf(b *Bundle) string { return b.csv.Annotations[propertiesAnnotation] }
