package manifests

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// deploymentConfig is what the configuration changes in deployments as the field spec.config of
// a Subscription does. nil changes nothing.
type deploymentConfig v1alpha1.SubscriptionConfig

// parseDeploymentConfig reads a deploymentConfig; nil and null are none.
func parseDeploymentConfig(text json.RawMessage) (*deploymentConfig, error) {
	var c *deploymentConfig
	if len(text) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, refusef("invalid deploymentConfig: failed to unmarshal deploymentConfig: %v", err)
	}
	return c, nil
}

// apply changes a deployment. Init containers are left alone.
func (c *deploymentConfig) apply(d *appsv1.Deployment) {
	if c == nil {
		return
	}
	pod := &d.Spec.Template.Spec
	for i := range pod.Containers {
		container := &pod.Containers[i]
		container.Env = overlaid(container.Env, c.Env, func(e corev1.EnvVar) string { return e.Name })
		container.EnvFrom = added(container.EnvFrom, c.EnvFrom)
		container.VolumeMounts = overlaid(container.VolumeMounts, c.VolumeMounts,
			func(m corev1.VolumeMount) string { return m.Name })
		if c.Resources != nil {
			container.Resources = *c.Resources
		}
	}
	pod.Volumes = overlaid(pod.Volumes, c.Volumes, func(v corev1.Volume) string { return v.Name })
	pod.Tolerations = added(pod.Tolerations, c.Tolerations)
	if c.NodeSelector != nil {
		pod.NodeSelector = c.NodeSelector
	}
	pod.Affinity = c.affinity(pod.Affinity)
	d.Annotations = addMissing(d.Annotations, c.Annotations)
	d.Spec.Template.Annotations = addMissing(d.Spec.Template.Annotations, c.Annotations)
}

// overlaid replaces the last item of the same name, and appends items of other names.
func overlaid[T any](items, more []T, name func(T) string) []T {
	at := make(map[string]int, len(items))
	for i, item := range items {
		at[name(item)] = i
	}
	for _, item := range more {
		if i, ok := at[name(item)]; ok {
			items[i] = item
		} else {
			items = append(items, item)
		}
	}
	return items
}

// added appends what is not there yet.
func added[T any](items, more []T) []T {
	for _, item := range more {
		if !slices.ContainsFunc(items, func(old T) bool { return reflect.DeepEqual(old, item) }) {
			items = append(items, item)
		}
	}
	return items
}

// addMissing adds the annotations whose keys are not there yet.
func addMissing(annotations, more map[string]string) map[string]string {
	if len(more) == 0 {
		return annotations
	}
	out := maps.Clone(more)
	maps.Copy(out, annotations)
	return out
}

// affinity replaces the parts of an affinity that are given, and takes away those that are given and empty.
func (c *deploymentConfig) affinity(old *corev1.Affinity) *corev1.Affinity {
	given := c.Affinity
	if given == nil {
		return old
	}
	if *given == (corev1.Affinity{}) {
		return nil
	}
	var out corev1.Affinity
	if old != nil {
		out = *old
	}
	if n := given.NodeAffinity; n != nil {
		out.NodeAffinity = unlessEmpty(n, emptyNodeAffinity(n))
	}
	if p := given.PodAffinity; p != nil {
		out.PodAffinity = unlessEmpty(p, emptyPodAffinity(p))
	}
	if p := given.PodAntiAffinity; p != nil {
		out.PodAntiAffinity = unlessEmpty(p, emptyPodAffinity((*corev1.PodAffinity)(p)))
	}
	if emptyNodeAffinity(out.NodeAffinity) && emptyPodAffinity(out.PodAffinity) &&
		emptyPodAffinity((*corev1.PodAffinity)(out.PodAntiAffinity)) {
		return nil
	}
	return &out
}

func unlessEmpty[T any](value *T, empty bool) *T {
	if empty {
		return nil
	}
	return value
}

// emptyPodAffinity reports whether an affinity or anti-affinity of pods says nothing; they have the same terms.
func emptyPodAffinity(p *corev1.PodAffinity) bool {
	return p == nil || len(p.RequiredDuringSchedulingIgnoredDuringExecution)+
		len(p.PreferredDuringSchedulingIgnoredDuringExecution) == 0
}

func emptyNodeAffinity(n *corev1.NodeAffinity) bool {
	if n == nil {
		return true
	}
	required := n.RequiredDuringSchedulingIgnoredDuringExecution
	return (required == nil || len(required.NodeSelectorTerms) == 0) &&
		len(n.PreferredDuringSchedulingIgnoredDuringExecution) == 0
}

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
			root.properties[name] = &shape{types: []string{"array"}, items: m.makeSchema(t.Elem())}
			continue
		}
		root.properties[name] = m.makeSchema(t)
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

// makeSchema returns the schema of a type: of a struct a reference.
func (m *schemaMaker) makeSchema(t reflect.Type) *shape {
	switch t.Kind() {
	case reflect.Pointer:
		return m.makeSchema(t.Elem())
	case reflect.Struct:
		return &shape{ref: m.definition(t)}
	case reflect.Map:
		return &shape{types: []string{"object"}, additional: m.makeSchema(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &shape{types: []string{"string"}}
		}
		return &shape{types: []string{"array"}, items: described(m.makeSchema(t.Elem()))}
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
		m.addFields(s, t)
	}
	return s
}

// optional are fields that Kubernetes' types print also when they are empty, and declare to be optional.
var optional = map[string]bool{"ProjectedVolumeSource.sources": true, "TypedLocalObjectReference.apiGroup": true,
	"TypedObjectReference.apiGroup": true}

// addFields adds the fields of a struct, and those of structs that are a part of it.
func (m *schemaMaker) addFields(s *shape, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			m.addFields(s, f.Type)
		case name == "" || name == "-":
		default:
			s.properties[name] = described(m.makeSchema(f.Type))
			if !strings.Contains(options, "omitempty") && !optional[t.Name()+"."+name] {
				s.required = append(s.required, name)
			}
		}
	}
}
