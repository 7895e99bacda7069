package manifests

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// layout is how values of a Go type are printed: with it, squeeze takes text through the type without decoding it. Decoding
// CustomResourceDefinitions and printing them again would take most of the time of reading and rendering a bundle.
type layout struct {
	form   layoutForm
	fields map[string]*layoutField
	always []*layoutField // fields that are printed even if they are absent, by name
	item   *layout        // of lists and maps
	bits   int            // of whole numbers
	zero   string         // what an absent value is printed as
}

type layoutField struct {
	name string
	*layout
	// optional fields are not printed if they are empty, or, if they are pointers, if they are absent.
	optional, pointer bool
}

type layoutForm int

const (
	formOther layoutForm = iota // is left to the type
	formStruct
	formMap
	formList
	formString
	formBool
	formInt
	formFloat
	formJSON
	formSchemaOrBool
	formSchemaOrList
)

// definitionLayout is that of CustomResourceDefinitions.
var definitionLayout = sync.OnceValue(func() *layout {
	m := layoutMaker{}
	return m.makeLayout(reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]())
})

type layoutMaker map[reflect.Type]*layout

var (
	rawType       = reflect.TypeFor[apiextensionsv1.JSON]()
	orBoolType    = reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]()
	orArrayType   = reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]()
	schemaType    = reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()
	readsItself   = reflect.TypeFor[json.Unmarshaler]()
	printsItself  = reflect.TypeFor[json.Marshaler]()
	textReads     = reflect.TypeFor[encoding.TextUnmarshaler]()
	textPrints    = reflect.TypeFor[encoding.TextMarshaler]()
	ownInterfaces = []reflect.Type{readsItself, printsItself, textReads, textPrints}
)

func (m layoutMaker) makeLayout(t reflect.Type) *layout {
	if l, ok := m[t]; ok {
		return l
	}
	l := &layout{zero: "null"}
	m[t] = l
	switch {
	case t == rawType:
		l.form = formJSON
	case t == orBoolType:
		l.form, l.item = formSchemaOrBool, m.makeLayout(schemaType)
	case t == orArrayType:
		l.form, l.item = formSchemaOrList, m.makeLayout(schemaType)
	case slices.ContainsFunc(ownInterfaces, func(own reflect.Type) bool {
		return t.Implements(own) || reflect.PointerTo(t).Implements(own)
	}):
		if text, err := json.Marshal(reflect.Zero(t).Interface()); err == nil {
			l.zero = string(text)
		}
	default:
		m.plain(l, t)
	}
	return l
}

// plain makes the layout of a type that encoding/json reads and prints.
func (m layoutMaker) plain(l *layout, t reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		l.form, l.fields = formStruct, map[string]*layoutField{}
		m.addFields(l, t)
		slices.SortFunc(l.always, func(x, y *layoutField) int { return cmp.Compare(x.name, y.name) })
		var zero []string
		for _, f := range l.always {
			zero = append(zero, `"`+f.name+`":`+f.zero)
		}
		l.zero = "{" + strings.Join(zero, ",") + "}"
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			l.form, l.item = formMap, m.makeLayout(t.Elem())
		}
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			l.form, l.item = formList, m.makeLayout(t.Elem())
		}
	case reflect.String:
		l.form, l.zero = formString, `""`
	case reflect.Bool:
		l.form, l.zero = formBool, "false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		l.form, l.zero, l.bits = formInt, "0", t.Bits()
	case reflect.Float64:
		l.form, l.zero = formFloat, "0"
	}
}

func (m layoutMaker) addFields(l *layout, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			m.addFields(l, f.Type)
			continue
		case name == "" || name == "-":
			continue
		}
		one := &layoutField{name: name, optional: strings.Contains(options, "omitempty")}
		of := f.Type
		if one.pointer = of.Kind() == reflect.Pointer; one.pointer {
			of = of.Elem()
		}
		one.layout = m.makeLayout(of)
		l.fields[name] = one
		switch omitted := strings.Contains(options, "omitzero"); {
		case omitted && one.form != formOther:
			one.layout = &layout{} // these types have no such field: its values are left to the type
		case omitted:
		case !one.optional, of.Kind() == reflect.Struct && !one.pointer: // omitempty does not omit a struct
			if one.pointer {
				one.layout = &layout{zero: "null"}
			}
			l.always = append(l.always, one)
		}
	}
}
