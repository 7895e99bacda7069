package catalogql

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/graphql-go/graphql"
)

// Answers to random queries about random catalogs are those of the library's executor with decoded blobs.
func TestAnswersAreThoseOfTheLibrary(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 16))
		g := generator{r}
		var blobs []anyMap
		var texts []string
		for range 1 + r.IntN(12) {
			b := g.blob()
			text, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			var decoded anyMap
			if err := json.Unmarshal(text, &decoded); err != nil {
				t.Fatal(err)
			}
			blobs, texts = append(blobs, decoded), append(texts, string(text))
		}
		model, modelErr := modelSchema(blobs)
		s, err := serviceOf(t, texts...)
		if (err != nil) != (modelErr != nil) && !strings.Contains(fmt.Sprint(err), "collision") {
			t.Fatalf("seed %d: %v, the model %v", seed, err, modelErr)
		}
		if err != nil {
			seen["no type system"]++
			continue
		}
		for range 40 {
			query := g.query(&model)
			got := decoded(t, answered(t, t.Context(), s, query))
			want := decoded(t, modelAnswer(t, model, query))
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %s\ngot  %v\nwant %v\nof %s", seed, query, got, want, texts)
			}
			switch answer := got.(anyMap); {
			case answer["data"] == nil:
				seen["no data"]++
			case answer["errors"] != nil:
				seen["errors"]++
			default:
				seen["data"]++
			}
		}
	}
	for _, kind := range []string{"no data", "errors", "data"} {
		if seen[kind] < 50 {
			t.Errorf("few answers with %s: %v", kind, seen)
		}
	}
}

// modelAnswer returns catalogd's answer.
func modelAnswer(t *testing.T, schema graphql.Schema, query string) string {
	t.Helper()
	result := &graphql.Result{}
	if doc, err := parse(query); err == nil {
		err = checkComplexity(doc, fragmentsOf(doc))
		if err != nil {
			return string(fail(graphql.Do(graphql.Params{Schema: schema, RequestString: "{"}).Errors...))
		}
	}
	result = graphql.Do(graphql.Params{Schema: schema, RequestString: query})
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// decoded returns an answer with its errors sorted, since the library returns them in no particular order.
func decoded(t *testing.T, text string) any {
	t.Helper()
	var v anyMap
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if errs, ok := v["errors"].([]any); ok {
		for _, e := range errs {
			e := e.(anyMap)
			text := strings.TrimPrefix(e["message"].(string), "query parse error: ")
			// The library names the source differently if it parses by itself.
			text = strings.Replace(text, "GraphQL request", "GraphQL", 1)
			if strings.HasPrefix(text, "Syntax Error") {
				e["locations"] = nil
			}
			e["message"], _, _ = strings.Cut(text, " Did you mean") // names at one distance in any order
		}
		slices.SortFunc(errs, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	unordered(v)
	return v
}

// unordered sorts the lists that the library makes of maps.
func unordered(v any) {
	switch v := v.(type) {
	case anyMap:
		for key, value := range v {
			unordered(value)
			if list, ok := value.([]any); ok && slices.Contains([]string{"args", "types", "directives"}, key) {
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	case []any:
		for _, one := range v {
			unordered(one)
		}
	}
}

// generator makes random catalogs and queries.
type generator struct{ r *rand.Rand }

func pick[T any](g generator, all ...T) T { return all[g.r.IntN(len(all))] }

func (g generator) value(depth int) any {
	switch n := g.r.IntN(12); {
	case n < 3:
		return pick(g, "", "x", "<b>\u2028", "1", "1e3", "true", "é")
	case n < 5:
		return pick[any](g, 0, 1, -7, 1.5, 1e21, 3e9, 2147483647, -2147483649, 1e-9, 100000000.0)
	case n < 6:
		return pick(g, true, false)
	case n < 7:
		return nil
	case n < 9 && depth > 0:
		return g.object(depth - 1)
	case depth > 0:
		list := []any{}
		objects := g.r.IntN(2) == 0
		for range g.r.IntN(13) {
			if objects && g.r.IntN(8) > 0 {
				list = append(list, g.object(depth-1))
			} else {
				list = append(list, g.value(depth-1))
			}
		}
		return list
	}
	return "leaf"
}

func (g generator) object(depth int) anyMap {
	object := anyMap{}
	for range g.r.IntN(5) {
		object[pick(g, "a", "b", "c-d", "E_F", "9", "name", "_x", "é", "", "value", "aB", "a_b")] = g.value(depth)
	}
	return object
}

func (g generator) blob() anyMap {
	b := g.object(3)
	b["schema"] = pick(g, "olm.bundle", "olm.package", "x", "custom.thing", "olm.channel")
	if g.r.IntN(40) == 0 {
		b["schema"] = pick(g, "olm-bundle", "9", "x.9y", ".9", "query", "é", "__a")
	}
	return b
}

// query returns a query that is mostly valid.
func (g generator) query(schema *graphql.Schema) string {
	if g.r.IntN(12) == 0 {
		return pick(g, "{", "{}", "query", "{a", "mutation{x}", "subscription{x}", "{__typename}",
			"fragment F on Query{summary{totalSchemas}}", "query A{__typename} query B{__typename}", "type A{b:Int}",
			"{...F}", "query($n:Int!){__typename @skip(if:$n)}", "query($n:Int!=1){xs(limit:$n){schema}}",
			"query($b:Boolean=true){__typename @skip(if:$b)}", "query($n:Boolean!){__typename @include(if:$n)}",
			"{__schema{types{name kind}}}", "{__schema{directives{name locations args{name}}}}",
			"{__type(name:\"Query\"){name fields{name type{kind name ofType{name}} args{name defaultValue}}}}",
			"{__schema{queryType{name} mutationType{name}}}", "{__type(name:\"Nope\"){name}}",
			"{__type(name:\"Int\"){description kind fields{name}}}",
			"{__type(name:\"__TypeKind\"){enumValues{name isDeprecated}}}", "{\n  summary {\r\n\tnope }, }",
			"{summary{totalSchemas{x}}}", "{summary}", "{summary(a:1){totalSchemas}}", "{\"é\"}",
			"{__type(name:1){name}}", "{...on Query{__typename}...on Nope{x}}",
			"{a:__typename a:summary{totalSchemas}}", "{xs @skip(if:true){schema}}", "{xs @nope{schema}}",
			"extend type Query{a:Int}")
	}
	query := schema.QueryType()
	fields := fieldNames(query)
	var b strings.Builder
	b.WriteString("{")
	for i := range 1 + g.r.IntN(3) {
		name := pick(g, fields...)
		if g.r.IntN(3) > 0 {
			fmt.Fprintf(&b, "q%d:", i)
		}
		b.WriteString(name)
		if name != "summary" && g.r.IntN(3) == 0 {
			b.WriteString(pick(g, "(limit:2)", "(offset:1)", "(limit:0,offset:-1)", "(limit:1,offset:9)",
				"(limit:1000)", "(limit:null)", "(limit:\"a\")", "(limit:2.5)", "(nope:1)", "(limit:99999999999)",
				"(limit:3000000000)", "(limit:[1])", "(limit:{a:1})", "(limit:A)"))
		}
		g.selection(&b, query.Fields()[name].Type, 3)
		b.WriteString(pick(g, " ", ",", "\n", "\r\n", " #c\n"))
	}
	b.WriteString("}")
	return b.String()
}

// selection writes fields of an object type.
func (g generator) selection(b *strings.Builder, t graphql.Output, depth int) {
	if list, ok := t.(*graphql.List); ok {
		t = list.OfType.(graphql.Output)
	}
	object, ok := t.(*graphql.Object)
	if !ok {
		return
	}
	fields := fieldNames(object)
	b.WriteString("{")
	for range 1 + g.r.IntN(5) {
		name := pick(g, fields...)
		switch g.r.IntN(24) {
		case 0:
			name = "__typename"
		case 1:
			name = pick(g, "nope", name+"x")
		case 2:
			if depth > 0 {
				fmt.Fprintf(b, "...on %s", object.Name())
				g.selection(b, object, depth-1)
			}
		}
		if g.r.IntN(6) == 0 {
			fmt.Fprintf(b, "%s:", pick(g, "a", "b", "z"))
		}
		b.WriteString(name)
		if g.r.IntN(12) == 0 {
			b.WriteString(pick(g, "@skip(if:true)", "@include(if:true)", "@include(if:false)", "@skip(if:false)"))
		}
		if f := object.Fields()[name]; f != nil {
			g.selection(b, f.Type, depth-1)
		}
		b.WriteString(" ")
	}
	b.WriteString("}")
}

func fieldNames(t *graphql.Object) (names []string) {
	for name := range t.Fields() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
