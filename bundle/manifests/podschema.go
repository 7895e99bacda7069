package manifests

import (
	"reflect"
	"strings"
	"sync"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// deploymentConfigSchema returns the schema of deploymentConfig, made from Kubernetes' types as Kubernetes' OpenAPI
// description is: a field is required if it is printed also when it is empty, and types refer to others.
var deploymentConfigSchema = sync.OnceValue(func() *shape {
	m := &schemaMaker{types: map[reflect.Type]*shape{}}
	config := reflect.TypeFor[v1alpha1.SubscriptionConfig]()
	root := &shape{types: []string{"object"}, closed: true, properties: map[string]*shape{}}
	for i := range config.NumField() {
		f := config.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "selector" { // of OLM v0 only
			continue
		}
		t := f.Type
		if t.Kind() == reflect.Slice {
			root.properties[name] = &shape{types: []string{"array"}, items: m.of(t.Elem())}
			continue
		}
		root.properties[name] = m.of(t)
	}
	return root
})

// schemaMaker makes schemas of Go types.
type schemaMaker struct{ types map[reflect.Type]*shape }

var (
	quantityType    = reflect.TypeFor[resource.Quantity]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
	timeType        = reflect.TypeFor[metav1.Time]()
	fieldsType      = reflect.TypeFor[metav1.FieldsV1]()
)

// of returns the schema of a type: of a struct a reference.
func (m *schemaMaker) of(t reflect.Type) *shape {
	switch t.Kind() {
	case reflect.Pointer:
		return m.of(t.Elem())
	case reflect.Struct:
		return &shape{ref: m.definition(t)}
	case reflect.Map:
		return &shape{types: []string{"object"}, additional: m.of(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &shape{types: []string{"string"}}
		}
		return &shape{types: []string{"array"}, items: described(m.of(t.Elem()))}
	case reflect.String:
		return &shape{types: []string{"string"}}
	case reflect.Bool:
		return &shape{types: []string{"boolean"}}
	case reflect.Float32, reflect.Float64:
		return &shape{types: []string{"number"}}
	default:
		return &shape{types: []string{"integer"}}
	}
}

// described returns a schema with room for a description beside it, which a reference does not have.
func described(s *shape) *shape {
	if s.ref == nil {
		return s
	}
	return &shape{allOf: []*shape{s}}
}

func (m *schemaMaker) definition(t reflect.Type) *shape {
	if s, ok := m.types[t]; ok {
		return s
	}
	s := &shape{types: []string{"object"}}
	m.types[t] = s
	switch t {
	case quantityType:
		*s = shape{oneOf: []*shape{{types: []string{"string"}}, {types: []string{"number"}}}}
	case intOrStringType:
		*s = shape{oneOf: []*shape{{types: []string{"integer"}}, {types: []string{"string"}}}}
	case timeType:
		*s = shape{types: []string{"string"}, format: "date-time"}
	case fieldsType:
	default:
		s.properties = map[string]*shape{}
		m.fields(s, t)
	}
	return s
}

// optional are fields that Kubernetes' types print also when they are empty, and declare to be optional.
var optional = map[string]bool{"ProjectedVolumeSource.sources": true, "TypedLocalObjectReference.apiGroup": true,
	"TypedObjectReference.apiGroup": true}

// fields adds the fields of a struct, and those of structs that are a part of it.
func (m *schemaMaker) fields(s *shape, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			m.fields(s, f.Type)
		case name == "" || name == "-":
		default:
			s.properties[name] = described(m.of(f.Type))
			if !strings.Contains(options, "omitempty") && !optional[t.Name()+"."+name] {
				s.required = append(s.required, name)
			}
		}
	}
}
