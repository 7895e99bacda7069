package safety_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/cputime"
	"github.com/operator-bindery/bindery/olmv1/safety"
)

// definition returns a definition of the fields of its spec, in YAML.
func definition(t testing.TB, spec string) safety.Definition {
	t.Helper()
	return safety.NewDefinition("things.example.com", encoded(t, spec))
}

// encoded returns a definition as JSON.
func encoded(t testing.TB, spec string) []byte {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("%v\n%s", err, spec)
	}
	fields["group"], fields["names"] = "example.com", map[string]any{"kind": "Thing", "plural": "things"}
	if fields["scope"] == nil {
		fields["scope"] = "Namespaced"
	}
	out, err := json.Marshal(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things.example.com"}, "spec": fields})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// versioned returns a version with a schema in YAML's flow style.
func versioned(name, schema string, more ...string) string {
	rest := "served: true, storage: true"
	if len(more) > 0 {
		rest = more[0]
	}
	return fmt.Sprintf("- {name: %s, %s, schema: {openAPIV3Schema: %s}}\n", name, rest, schema)
}

// property returns the versions of a definition with one property f of spec.
func inSpec(schema string) string {
	return "versions:\n" + versioned("v1", "{type: object, properties: {spec: {type: object, properties: {f: "+schema+"}}}}")
}

const notStored = "served: true, storage: false"

// cases are changes with the lines of the message without its beginning. Each check of the library is there, and each
// answer that it has.
var cases = []struct {
	name, old, new string
	want           []string
}{
	{"equal", inSpec("{type: string}"), inSpec("{type: string}"), nil},
	{"scope", inSpec("{type: string}") + "scope: Namespaced", inSpec("{type: string}") + "scope: Cluster",
		[]string{`scope: scope changed : "Namespaced" -> "Cluster"`}},
	{"stored version removed", inSpec("{type: string}"), "versions:\n" + versioned("v2", "{type: object}"),
		[]string{"storedVersionRemoval: stored versions removed : [v1]"}},
	{"version that is not stored removed",
		"versions:\n" + versioned("v1", "{type: object}") + versioned("v1beta1", "{type: object}", notStored),
		"versions:\n" + versioned("v1", "{type: object}"), nil},
	{"field removed", inSpec("{type: object, properties: {a: {type: string}, b: {type: integer}}}"),
		inSpec("{type: object, properties: {a: {type: string}}}"),
		[]string{"existingFieldRemoval: removed field : v1.^.spec.f.b",
			`v1: ^.spec.f.b: type: type changed : "integer" -> ""`}},
	{"field removed within items", inSpec("{type: array, items: {type: object, properties: {a: {type: string}}}}"),
		inSpec("{type: array, items: {type: object}}"),
		[]string{"existingFieldRemoval: removed field : v1.^.spec.f.items.a",
			`v1: ^.spec.f.items.a: type: type changed : "string" -> ""`}},
	{"field added", inSpec("{type: object}"), inSpec("{type: object, properties: {a: {type: string}}}"), nil},
	{"type", inSpec("{type: string}"), inSpec("{type: integer}"),
		[]string{`v1: ^.spec.f: type: type changed : "string" -> "integer"`}},
	{"enum begun", inSpec("{type: string}"), inSpec("{type: string, enum: [b, a]}"),
		[]string{`v1: ^.spec.f: enum: enum constraint added when there was none previously : ["a" "b"]`}},
	{"enum value removed", inSpec("{type: string, enum: [a, b, c]}"), inSpec("{type: string, enum: [c]}"),
		[]string{`v1: ^.spec.f: enum: allowed enum values removed : ["a" "b"]`}},
	{"enum value added", inSpec("{type: string, enum: [a]}"), inSpec("{type: string, enum: [a, b]}"), nil},
	{"enum ended", inSpec("{type: string, enum: [a]}"), inSpec("{type: string}"),
		[]string{`v1: ^.spec.f: enum: allowed enum values removed : ["a"]`}},
	{"default added", inSpec("{type: integer}"), inSpec("{type: integer, default: 1}"),
		[]string{`v1: ^.spec.f: default: default added when there was none previously : "1"`}},
	{"default changed", inSpec("{type: string, default: a<b}"), inSpec("{type: string, default: c}"),
		[]string{`v1: ^.spec.f: default: default value changed : "\"a\\u003cb\"" -> "\"c\""`}},
	{"default removed", inSpec("{type: object, default: {b: 1, a: 2}}"), inSpec("{type: object}"),
		[]string{`v1: ^.spec.f: default: default value removed : "{\"a\":2,\"b\":1}"`}},
	{"default spelled in another way", inSpec("{type: number, default: 1.0}"), inSpec("{type: number, default: 1}"), nil},
	{"required", inSpec("{type: object, required: [a]}"), inSpec("{type: object, required: [c, a, b]}"),
		[]string{"v1: ^.spec.f: required: new required fields: [b c]"}},
	{"required no longer", inSpec("{type: object, required: [a, b]}"), inSpec("{type: object, required: [b]}"), nil},
	{"maximum begun", inSpec("{type: number}"), inSpec("{type: number, maximum: 1.5}"),
		[]string{"v1: ^.spec.f: maximum: maximum constraint added when there was none previously : 1.5"}},
	{"maximum lower", inSpec("{type: integer, maximum: 10}"), inSpec("{type: integer, maximum: 5}"),
		[]string{"v1: ^.spec.f: maximum: maximum decreased : 10 -> 5"}},
	{"maximum higher", inSpec("{type: integer, maximum: 10}"), inSpec("{type: integer, maximum: 50}"), nil},
	{"maximum removed", inSpec("{type: integer, maximum: 10}"), inSpec("{type: integer}"), nil},
	{"maximum exclusive", inSpec("{type: integer, maximum: 10}"),
		inSpec("{type: integer, maximum: 10, exclusiveMaximum: true}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (ExclusiveMaximum false -> true)"}},
	{"minimum begun", inSpec("{type: integer}"), inSpec("{type: integer, minimum: 1}"),
		[]string{"v1: ^.spec.f: minimum: minimum constraint added when there was none previously : 1"}},
	{"minimum higher", inSpec("{type: integer, minimum: 1}"), inSpec("{type: integer, minimum: 2}"),
		[]string{"v1: ^.spec.f: minimum: minimum increased : 1 -> 2"}},
	{"minimum lower", inSpec("{type: integer, minimum: 2}"), inSpec("{type: integer, minimum: 1}"), nil},
	{"minimum exclusive no longer", inSpec("{type: integer, minimum: 1, exclusiveMinimum: true}"),
		inSpec("{type: integer, minimum: 1}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (ExclusiveMinimum true -> false)"}},
	{"maxItems begun", inSpec("{type: array}"), inSpec("{type: array, maxItems: 3}"),
		[]string{"v1: ^.spec.f: maxItems: maximum constraint added when there was none previously : 3"}},
	{"maxItems lower", inSpec("{type: array, maxItems: 3}"), inSpec("{type: array, maxItems: 2}"),
		[]string{"v1: ^.spec.f: maxItems: maximum decreased : 3 -> 2"}},
	{"minItems begun", inSpec("{type: array}"), inSpec("{type: array, minItems: 1}"),
		[]string{"v1: ^.spec.f: minItems: minimum constraint added when there was none previously : 1"}},
	{"minItems higher", inSpec("{type: array, minItems: 1}"), inSpec("{type: array, minItems: 2}"),
		[]string{"v1: ^.spec.f: minItems: minimum increased : 1 -> 2"}},
	{"maxLength begun", inSpec("{type: string}"), inSpec("{type: string, maxLength: 3}"),
		[]string{"v1: ^.spec.f: maxLength: maximum constraint added when there was none previously : 3"}},
	{"maxLength lower", inSpec("{type: string, maxLength: 3}"), inSpec("{type: string, maxLength: 2}"),
		[]string{"v1: ^.spec.f: maxLength: maximum decreased : 3 -> 2"}},
	{"minLength begun", inSpec("{type: string}"), inSpec("{type: string, minLength: 1}"),
		[]string{"v1: ^.spec.f: minLength: minimum constraint added when there was none previously : 1"}},
	{"minLength higher", inSpec("{type: string, minLength: 1}"), inSpec("{type: string, minLength: 2}"),
		[]string{"v1: ^.spec.f: minLength: minimum increased : 1 -> 2"}},
	{"maxProperties begun", inSpec("{type: object}"), inSpec("{type: object, maxProperties: 3}"),
		[]string{"v1: ^.spec.f: maxProperties: maximum constraint added when there was none previously : 3"}},
	{"maxProperties lower", inSpec("{type: object, maxProperties: 3}"), inSpec("{type: object, maxProperties: 2}"),
		[]string{"v1: ^.spec.f: maxProperties: maximum decreased : 3 -> 2"}},
	{"minProperties begun", inSpec("{type: object}"), inSpec("{type: object, minProperties: 1}"),
		[]string{"v1: ^.spec.f: minProperties: minimum constraint added when there was none previously : 1"}},
	{"minProperties higher", inSpec("{type: object, minProperties: 1}"), inSpec("{type: object, minProperties: 2}"),
		[]string{"v1: ^.spec.f: minProperties: minimum increased : 1 -> 2"}},
	{"pattern begun", inSpec("{type: string}"), inSpec("{type: string, pattern: '^a'}"),
		[]string{`v1: ^.spec.f: pattern: pattern added : "" -> "^a"`}},
	{"pattern changed", inSpec("{type: string, pattern: '^a'}"), inSpec("{type: string, pattern: '^b'}"),
		[]string{`v1: ^.spec.f: pattern: pattern changed : "^a" -> "^b"`}},
	{"pattern removed", inSpec("{type: string, pattern: '^a'}"), inSpec("{type: string}"),
		[]string{`v1: ^.spec.f: pattern: pattern removed : "^a" -> ""`}},
	{"nullable", inSpec("{type: string}"), inSpec("{type: string, nullable: true}"),
		[]string{"v1: ^.spec.f: nullable: nullable added : false -> true"}},
	{"nullable no longer", inSpec("{type: string, nullable: true}"), inSpec("{type: string}"),
		[]string{"v1: ^.spec.f: nullable: nullable removed : true -> false"}},
	{"description", inSpec("{type: string, description: a}"), inSpec("{type: string, description: b}"), nil},
	{"description of a value of a map", inSpec("{type: object, additionalProperties: {type: string, description: a}}"),
		inSpec("{type: object, additionalProperties: {type: string, description: b}}"),
		[]string{`v1: ^.spec.f: unhandled: unhandled changes found (Description "a" -> "b")`}},
	{"title", inSpec("{type: string}"), inSpec("{type: string, title: A}"),
		[]string{`v1: ^.spec.f: unhandled: unhandled changes found (Title "" -> "A")`}},
	{"format", inSpec("{type: string, format: date}"), inSpec("{type: string, format: date-time}"),
		[]string{`v1: ^.spec.f: unhandled: unhandled changes found (Format "date" -> "date-time")`}},
	{"two changes that no check is for", inSpec("{type: string}"), inSpec("{type: string, format: date, title: T}"),
		[]string{`v1: ^.spec.f: unhandled: unhandled changes found (Format "" -> "date"; Title "" -> "T")`}},
	{"multipleOf", inSpec("{type: integer}"), inSpec("{type: integer, multipleOf: 2}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (MultipleOf nil -> &2)"}},
	{"uniqueItems", inSpec("{type: array}"), inSpec("{type: array, uniqueItems: true}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (UniqueItems false -> true)"}},
	{"unknown fields", inSpec("{type: object}"), inSpec("{type: object, x-kubernetes-preserve-unknown-fields: true}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (XPreserveUnknownFields nil -> &true)"}},
	{"int or string", inSpec("{x-kubernetes-int-or-string: true}"), inSpec("{type: integer}"),
		[]string{`v1: ^.spec.f: type: type changed : "" -> "integer"`,
			"v1: ^.spec.f: unhandled: unhandled changes found (XIntOrString true -> false)"}},
	{"embedded resource", inSpec("{type: object}"), inSpec("{type: object, x-kubernetes-embedded-resource: true}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (XEmbeddedResource false -> true)"}},
	{"list type", inSpec("{type: array}"), inSpec("{type: array, x-kubernetes-list-type: set}"),
		[]string{`v1: ^.spec.f: unhandled: unhandled changes found (XListType nil -> &"set")`}},
	{"map type", inSpec("{type: object, x-kubernetes-map-type: atomic}"),
		inSpec("{type: object, x-kubernetes-map-type: granular}"),
		[]string{`v1: ^.spec.f: unhandled: unhandled changes found (XMapType &"atomic" -> &"granular")`}},
	{"list keys", inSpec("{type: array, x-kubernetes-list-map-keys: [a]}"),
		inSpec("{type: array, x-kubernetes-list-map-keys: [a, b]}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (XListMapKeys <complex value> -> <complex value> (changed))"}},
	{"rules begun", inSpec("{type: object}"),
		inSpec("{type: object, x-kubernetes-validations: [{rule: self.a > 0, message: Not}]}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (XValidations nil -> ValidationRules{{Rule: " +
			`"self.a > 0", Message: "Not"}})`}},
	{"rules changed", inSpec("{type: object, x-kubernetes-validations: [{rule: a}, {rule: b}]}"),
		inSpec("{type: object, x-kubernetes-validations: [{rule: b}, {rule: c}]}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (XValidations <complex value> -> <complex value> (changed))"}},
	{"values of a map", inSpec("{type: object, additionalProperties: {type: string}}"),
		inSpec("{type: object, additionalProperties: {type: integer}}"),
		[]string{`v1: ^.spec.f: unhandled: unhandled changes found (Type "string" -> "integer")`,
			`v1: ^.spec.f.additionalProperties: type: type changed : "string" -> "integer"`}},
	{"map no longer", inSpec("{type: object, additionalProperties: {type: string}}"), inSpec("{type: object}"),
		[]string{"existingFieldRemoval: removed field : v1.^.spec.f.additionalProperties",
			"v1: ^.spec.f: unhandled: unhandled changes found (AdditionalProperties <complex value> -> nil)",
			`v1: ^.spec.f.additionalProperties: type: type changed : "string" -> ""`}},
	{"anyOf", inSpec("{anyOf: [{type: string}]}"), inSpec("{anyOf: [{type: string}, {type: integer}]}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (AnyOf <complex value> -> <complex value> (changed))"}},
	{"allOf begun", inSpec("{type: object}"), inSpec("{type: object, allOf: [{required: [a]}]}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (AllOf nil -> <complex value>)"}},
	{"not", inSpec("{type: string}"), inSpec("{type: string, not: {pattern: a}}"),
		[]string{"v1: ^.spec.f: unhandled: unhandled changes found (Not nil -> <complex value>)"}},
	{"another version is compared with its own", "versions:\n" + versioned("v1", "{type: object}") +
		versioned("v2", "{type: string}", "served: false, storage: false"),
		"versions:\n" + versioned("v1", "{type: object}") + versioned("v2", "{type: integer}", "served: false, storage: false"),
		[]string{`v2: ^: type: type changed : "string" -> "integer"`}},
	{"served version added that differs", "versions:\n" + versioned("v1", "{type: object, properties: {a: {type: string}}}"),
		"versions:\n" + versioned("v1", "{type: object, properties: {a: {type: string}}}") +
			versioned("v2", "{type: object, properties: {a: {type: integer}}}", notStored),
		[]string{`v1 -> v2: ^.a: type: type changed : "string" -> "integer"`}},
	{"served versions that differed before", "versions:\n" + versioned("v1", "{type: object, properties: {a: {type: string}}}") +
		versioned("v2", "{type: object, properties: {a: {type: integer}}}", notStored),
		"versions:\n" + versioned("v1", "{type: object, properties: {a: {type: string}, b: {type: string}}}") +
			versioned("v2", "{type: object, properties: {a: {type: integer}, b: {type: integer}}}", notStored),
		[]string{`v1 -> v2: ^.b: type: type changed : "string" -> "integer"`}},
	{"three served versions", "versions:\n" + versioned("v1", "{type: object}"),
		"versions:\n" + versioned("v1", "{type: object}") + versioned("v1beta1", "{type: object, title: b}", notStored) +
			versioned("v1alpha1", "{type: object, title: a}", notStored),
		[]string{`v1alpha1 -> v1: ^: unhandled: unhandled changes found (Title "a" -> "")`,
			`v1alpha1 -> v1beta1: ^: unhandled: unhandled changes found (Title "a" -> "b")`,
			`v1beta1 -> v1: ^: unhandled: unhandled changes found (Title "b" -> "")`}},
	{"served versions with a conversion webhook", "versions:\n" + versioned("v1", "{type: object}"),
		"conversion: {strategy: Webhook}\nversions:\n" + versioned("v1", "{type: object}") +
			versioned("v2", "{type: object, title: a}", notStored), nil},
	{"a conversion webhook excuses no change of a version", "versions:\n" + versioned("v1", "{type: object}"),
		"conversion: {strategy: Webhook}\nversions:\n" + versioned("v1", "{type: object, title: a}"),
		[]string{`v1: ^: unhandled: unhandled changes found (Title "" -> "a")`}},
	{"oneOf begun", inSpec("{type: object}"), inSpec("{type: object, oneOf: [{required: [a]}]}"),
		[]string{"v1: ^.spec.f: oneOf: oneOf constraint added when there was none previously: [" + inOneOf("[a]") + "]"}},
	{"oneOf schema added", inSpec("{oneOf: [{required: [a]}]}"), inSpec("{oneOf: [{required: [a]}, {required: [b]}]}"),
		[]string{"v1: ^.spec.f: oneOf: allowed oneOf schemas added: [" + inOneOf("[b]") + "]"}},
	{"oneOf schema removed", inSpec("{oneOf: [{required: [a]}, {required: [b]}]}"), inSpec("{oneOf: [{required: [a]}]}"),
		[]string{"existingFieldRemoval: removed field : v1.^.spec.f.oneOf[1]",
			"v1: ^.spec.f: oneOf: allowed oneOf schemas removed: [" + inOneOf("[b]") + "]"}},
	{"oneOf of equal schemas, of which the library compares addresses, if anything else changes",
		inSpec("{description: a, oneOf: [{properties: {a: {maximum: 1}}}]}"),
		inSpec("{description: b, oneOf: [{properties: {a: {maximum: 1}}}]}"),
		[]string{"v1: ^.spec.f: oneOf: allowed oneOf schemas removed: [" + strings.Replace(inOneOf("[]"),
			"map[string]JSONSchemaProps{},Addi", "map[string]JSONSchemaProps{a: {  <nil>     nil 0x… false <nil> false "+
				"<nil> <nil>  <nil> <nil> false <nil> [] <nil> <nil> [] nil [] [] [] nil map[] nil map[] map[] nil map[] "+
				"nil nil false <nil> false false [] <nil> <nil> []},},Addi", 1) + "]"}},
	{"oneOf of equal schemas beside values that change",
		inSpec("{oneOf: [{properties: {a: {maximum: 1}}}], additionalProperties: {type: string}}"),
		inSpec("{oneOf: [{properties: {a: {maximum: 1}}}], additionalProperties: {type: integer}}"),
		[]string{"v1: ^.spec.f: oneOf: allowed oneOf schemas removed: [" + strings.Replace(inOneOf("[]"),
			"map[string]JSONSchemaProps{},Addi", "map[string]JSONSchemaProps{a: {  <nil>     nil 0x… false <nil> false "+
				"<nil> <nil>  <nil> <nil> false <nil> [] <nil> <nil> [] nil [] [] [] nil map[] nil map[] map[] nil map[] "+
				"nil nil false <nil> false false [] <nil> <nil> []},},Addi", 1) + "]",
			`v1: ^.spec.f: unhandled: unhandled changes found (Type "string" -> "integer")`,
			`v1: ^.spec.f.additionalProperties: type: type changed : "string" -> "integer"`}},
	{"oneOf described", inSpec("{oneOf: [{required: [a], description: x}]}"),
		inSpec("{oneOf: [{required: [a], description: z}]}"), nil},
}

// inOneOf is how the library writes a schema with required fields.
func inOneOf(required string) string {
	return "&JSONSchemaProps{ID:,Schema:,Ref:nil,Description:,Type:,Format:,Title:,Default:nil,Maximum:nil," +
		"ExclusiveMaximum:false,Minimum:nil,ExclusiveMinimum:false,MaxLength:nil,MinLength:nil,Pattern:,MaxItems:nil," +
		"MinItems:nil,UniqueItems:false,MultipleOf:nil,Enum:[]JSON{},MaxProperties:nil,MinProperties:nil,Required:" +
		required + ",Items:nil,AllOf:[]JSONSchemaProps{},OneOf:[]JSONSchemaProps{},AnyOf:[]JSONSchemaProps{},Not:nil," +
		"Properties:map[string]JSONSchemaProps{},AdditionalProperties:nil,PatternProperties:map[string]JSONSchemaProps{}," +
		"Dependencies:JSONSchemaDependencies{},AdditionalItems:nil,Definitions:JSONSchemaDefinitions{},ExternalDocs:nil," +
		"Example:nil,Nullable:false,XPreserveUnknownFields:nil,XEmbeddedResource:false,XIntOrString:false," +
		"XListMapKeys:[],XListType:nil,XMapType:nil,XValidations:[]ValidationRule{},}"
}

func lines(changes []safety.Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.String())
	}
	return out
}

func TestEachCheck(t *testing.T) {
	j, err := safety.NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			from, to := definition(t, c.old), definition(t, c.new)
			for range 2 { // the second answer is remembered
				changes, err := j.Definition(t.Context(), from, to)
				if err != nil || !slices.Equal(lines(changes), c.want) {
					t.Fatalf("%v\n%s\nwant\n%s", err, strings.Join(lines(changes), "\n"), strings.Join(c.want, "\n"))
				}
			}
			if whole, ours := controller(t, from, to), sorted(c.want); !slices.Equal(whole, ours) {
				t.Errorf("the library says\n%s\nwant\n%s", strings.Join(whole, "\n"), strings.Join(ours, "\n"))
			}
		})
	}
}

// One judge of many upgrades says the same as one for each.
func TestRefusedOfOneJudge(t *testing.T) {
	j, err := safety.NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		texts := [][]byte{encoded(t, c.old), encoded(t, c.new), encoded(t, c.old)}
		for i := range 2 {
			alone, err := safety.Refused(t.Context(), "things.example.com", texts[i], texts[i+1])
			if err != nil {
				t.Fatal(err)
			}
			if got, err := j.Refused(t.Context(), "things.example.com", texts[i], texts[i+1]); err != nil || !slices.Equal(got, alone) {
				t.Errorf("%s: %v, %v; alone %v", c.name, got, err, alone)
			}
		}
	}
}

func TestUpgrade(t *testing.T) {
	j, err := safety.NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	a, b := definition(t, inSpec("{type: string}")), definition(t, inSpec("{type: integer}"))
	other := a
	other.Name = "others.example.com"
	refused, err := j.Upgrade(t.Context(), []safety.Definition{a}, []safety.Definition{other, b})
	const want = `validating upgrade for CRD "things.example.com": v1: ^.spec.f: type: type changed : "string" -> "integer"`
	if err != nil || len(refused) != 1 || refused[0].Error() != want {
		t.Errorf("%v, %v", err, refused)
	}
}

// nested returns a schema with a property in a property.
func nested(depth int, inner string) string {
	return strings.Repeat(`{"type":"object","properties":{"a":`, depth) + inner + strings.Repeat("}}", depth)
}

func inVersions(schema string) safety.Definition {
	return raw(`[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}}]`)
}

func raw(versions string) safety.Definition {
	return safety.NewDefinition("things.example.com", []byte(`{"apiVersion":"apiextensions.k8s.io/v1",`+
		`"kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},"spec":{"scope":"Namespaced",`+
		`"versions":`+versions+`}}`))
}

// wide returns a schema with many properties.
func wide(n int, inner string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":%s,`, i, inner)
	}
	return `{"type":"object","properties":{` + b.String() + `"z":{}}}`
}

// many returns a definition with served versions that differ.
func many(n int, schema func(i int) string) safety.Definition {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"name":"v%d","served":true,"schema":{"openAPIV3Schema":%s}}`, i+1, schema(i)))
	}
	return raw("[" + strings.Join(list, ",") + "]")
}

// Fields that were required between served versions before are no change, in whatever order the library writes them.
func TestRequiredBefore(t *testing.T) {
	versions := func(required, more string) string {
		return "versions:\n" + versioned("v1", "{type: object"+more+"}") +
			versioned("v2", "{type: object, required: ["+required+"]"+more+"}", notStored)
	}
	const added = ", properties: {a: {type: string}}"
	for required, want := range map[string]string{"a, b": "", "a, b, c, d, e": "",
		"a, b, c, d, e, f, g, h, i": "in one of some 1000 attempts"} {
		for _, more := range []string{added, ""} { // without it the definitions are the same
			for range 10 {
				j, err := safety.NewJudge()
				if err != nil {
					t.Fatal(err)
				}
				changes, err := j.Definition(t.Context(), definition(t, versions(required, "")), definition(t, versions(required, more)))
				if len(changes) > 0 || (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Fatalf("%s%s: %v, %v", required, more, lines(changes), err)
				}
			}
		}
	}
}

// Hostile definitions end in an error that names the definition, or in an answer, soon.
func TestHostileDefinitions(t *testing.T) {
	title := func(i int) string { return fmt.Sprintf(`{"title":"%d"}`, i) }
	long := strings.Repeat("p", 1<<20)
	lists := func(depth int, inner string) string {
		return strings.Repeat(`{"allOf":[{"title":"x"},`, depth) + inner + strings.Repeat("]}", depth)
	}
	for _, c := range []struct {
		name     string
		from, to safety.Definition
		want     string
	}{
		{"no schema", raw(`[{"name":"v1"}]`), inVersions("{}"), "has no schema"},
		{"no new schema", inVersions("{}"), raw(`[{"name":"v1","schema":{}}]`), "the new one: its version \"v1\" has no schema"},
		{"a version twice", inVersions("{}"), raw(`[{"name":"v1","schema":{"openAPIV3Schema":{}}},` +
			`{"name":"v1","schema":{"openAPIV3Schema":{}}}]`), "twice"},
		{"no JSON", inVersions("{}"), safety.NewDefinition("things.example.com", []byte("{")), "unexpected end"},
		{"deep", inVersions(nested(3_000, `{"type":"string"}`)), inVersions("{}"), "nested"},
		{"deeper", inVersions(nested(100_000, `{"type":"string"}`)), inVersions("{}"), "depth"},
		{"large", inVersions(wide(1_000_000, `{"type":"string"}`)), inVersions("{}"), "bytes"},
		{"many schemas", inVersions(wide(500_000, `{}`)), inVersions("{}"), "objects"},
		{"schemas", inVersions(wide(200_100, `{}`)), inVersions("{}"), "schemas"},
		{"many removed", inVersions(wide(1_500, nested(20, "{}"))), inVersions("{}"), "more than"},
		{"a long name over many", inVersions(`{"properties":{"` + long + `":` + wide(5_000, "{}") + `}}`),
			inVersions(`{"properties":{"` + long + `":{}}}`), "more than"},
		{"a long name over some", inVersions(`{"properties":{"` + long + `":` + wide(5, `{"title":"a"}`) + `}}`),
			inVersions(`{"properties":{"` + long + `":` + wide(5, `{"title":"b"}`) + `}}`), "more than"},
		{"long values", inVersions(wide(5, `{"pattern":"`+long+long+`"}`)), inVersions(wide(5, `{"pattern":"b"}`)), "8 MiB"},
		{"versions", many(2_000, title), many(1_999, title), "versions"},
		{"pairs of versions", inVersions("{}"), many(1_000, title), "more than"},
		{"lists in lists", inVersions(lists(60, `{"title":"a"}`)), inVersions(lists(60, `{"title":"b"}`)), "lists"},
		{"lists in a few lists", inVersions(lists(5, `{"title":"a"}`)), inVersions(lists(5, `{"title":"b"}`)), ""},
		{"pairs of equal versions", many(400, func(int) string { return "{}" }),
			many(399, func(int) string { return "{}" }), ""},
		{"a hundred levels", inVersions(nested(100, wide(100, `{"type":"string"}`))),
			inVersions(nested(100, wide(100, `{"type":"integer"}`))), ""},
		{"many rules", inVersions(`{"x-kubernetes-validations":[` + strings.Repeat(`{"rule":"a"},{"rule":"b"},`, 5_000) +
			`{"rule":"a"}]}`), inVersions(`{"x-kubernetes-validations":[` + strings.Repeat(`{"rule":"b"},{"rule":"c"},`, 5_000) +
			`{"rule":"a"}]}`), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, err := safety.NewJudge()
			if err != nil {
				t.Fatal(err)
			}
			took := cputime.Once(func() { _, err = j.Definition(t.Context(), c.from, c.to) })
			if took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.HasPrefix(err.Error(), `CustomResourceDefinition "things.example.com" cannot be compared: `)):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// Many definitions that each take long end in an error, too.
func TestHostileBundle(t *testing.T) {
	j, err := safety.NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	var from, to []safety.Definition
	long := strings.Repeat("p", 4<<10)
	for i := range 150 {
		for k, list := range []*[]safety.Definition{&from, &to} {
			d := inVersions(fmt.Sprintf(`{"properties":{%q:%s}}`, long, wide(100, fmt.Sprintf(`{"title":"%d"}`, 2*i+k))))
			d.Name = fmt.Sprint(i)
			*list = append(*list, d)
		}
	}
	if _, err := j.Upgrade(t.Context(), from, to); !errors.Is(err, fault.ErrLimit) ||
		!strings.Contains(err.Error(), "the two bundles") {
		t.Errorf("%v", err)
	}
}

// An ended context ends the comparison, and its error is not remembered.
func TestCanceled(t *testing.T) {
	j, err := safety.NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	a, b := definition(t, inSpec("{type: string}")), definition(t, inSpec("{type: integer}"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Definition(ctx, a, b); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if changes, err := j.Definition(t.Context(), a, b); err != nil || len(changes) != 1 {
		t.Errorf("%v, %v", changes, err)
	}
	deep := inVersions(nested(300, "{}"))
	if _, err := j.Definition(t.Context(), deep, a); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("%v", err)
	}
}
