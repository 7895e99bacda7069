package catalogql

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/testing/race"
)

// Hostile queries end soon, with an answer of bounded size, whatever is in them.
func TestHostileQueries(t *testing.T) {
	s := sampleService(t)
	repeat := strings.Repeat
	chain := func(n int, form string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, form, i, i+1, i+1)
		}
		return b.String()
	}
	for name, query := range map[string]string{
		"open braces":              repeat("{a", 40000),
		"open lists":               "{olmbundles(limit:" + repeat("[", 90000),
		"many brackets":            "{olmbundles(limit:" + repeat("[]", 45000) + "){name}}",
		"one long line":            "{olmbundles{name}}" + repeat(" ", 99000) + "}",
		"one long name":            "{" + repeat("a", 99000) + "}",
		"a long name and an error": repeat("a", 99000),
		"long names":               "{" + repeat(repeat("a", 199)+" ", 490) + "}",
		"many fields":              "{" + repeat("olmbundles{name}", 6000) + "}",
		"fields of one name":       "{" + repeat("olmbundles{name}", 240) + "}",
		"fields of one name, deep": "{" + repeat("olmbundles{"+repeat("name ", 20)+"}", 22) + "}",
		"an unused fragment": "{summary{totalSchemas}} fragment F on Query{" + repeat(
			"olmbundles(limit:1){name}", 3900) + "}",
		"many arguments":       "{olmbundles(" + repeat("limit:1 ", 12000) + "){name}}",
		"many directives":      "{olmbundles " + repeat("@skip(if:true)", 6900) + "{name}}",
		"many variables":       "query(" + repeat("$a:Int ", 14000) + "){summary{totalSchemas}}",
		"many operations":      repeat("{summary{totalSchemas}}", 4300),
		"many fragments":       "{summary{totalSchemas}}" + repeat("fragment F on Query{a} ", 4200),
		"many spreads":         "{" + repeat("...F ", 19000) + "} fragment F on Query{summary{totalSchemas}}",
		"a fragment in itself": "{...F} fragment F on Query{...F}",
		"fragments in each other": "{...F} fragment F on Query{summary{totalSchemas} ...G} fragment G on " +
			"Query{summary{totalSchemas} ...F}",
		"a fragment in a field": "{...F} fragment F on Query{__schema{queryType{...G}}} fragment G on " +
			"__Type{ofType{...G}}",
		"fragments twice": "{...F0}" + chain(40, "fragment F%d on Query{...F%d ...F%d}"),
		"fragments twice in fields": "{__schema{queryType{...F0}}}" + chain(24,
			"fragment F%d on __Type{a:ofType{...F%d} b:ofType{...F%d}}"),
		"types of types":        "{__schema{types{fields{type{fields{type{fields{type{fields{name}}}}}}}}}}",
		"a comment":             "#" + repeat("é", 40000) + "\n{summary{totalSchemas}}",
		"brackets in a comment": "#" + repeat("é{", 30000) + "\n{summary{totalSchemas}}",
		"a string":              `{__type(name:"` + repeat("ä", 40000) + `"){name}}`,
		"a block string":        `{__type(name:"""` + repeat("\n ", 40000) + `"""){name}}`,
		"control characters":    repeat("\x00", 1000),
		"no UTF-8":              "{\xff\xfe}",
		"a big number":          "{olmbundles(limit:" + repeat("9", 90000) + "){name}}",
		"blobs fifty times":     "{" + blobsOften() + "}",
		"lines":                 repeat("\n", 99990) + "{x}",
		"errors in many lines":  "{" + repeat("\nx", 490) + "}",
		"other arguments":       "{" + numbered(480, "olmbundles(limit:%d){name} ") + "}",
		"other fields":          "{summary{totalSchemas}} fragment F on Query{" + numbered(900, "a:x%d ") + "}",
		"other fields deep": "{summary{totalSchemas}} fragment F on Query{" + repeat(
			"olmbundles{"+numbered(20, "a:x%d ")+"}", 45) + "}",
		"variables":      "query(" + numbered(3000, "$a%d:Int ") + "){olmbundles(limit:$a1){name}}",
		"a late error":   "{" + repeat("name ", 400) + numbered(2000, "x(a:%d) ") + "{",
		"types":          repeat("type A{a:Int} ", 7000),
		"a deep type":    "query($a:" + repeat("[", 2900) + "Int" + repeat("]", 2900) + "){summary{totalSchemas}}",
		"a deep value":   "{olmbundles(limit:" + repeat("[", 2900) + repeat("]", 2900) + "){name}}",
		"lists":          "{" + repeat("olmbundles(limit:["+repeat("1 ", 90)+"]){name}", 100) + "}",
		"short lists":    "{" + repeat("olmbundles(limit:[1 1]){name}", 240) + "}",
		"objects":        "{" + repeat("olmbundles(limit:{a:1 b:{c:1}}){name}", 240) + "}",
		"arguments":      "{" + repeat("olmbundles("+numbered(15, "a%d:1 ")+"){name}", 240) + "}",
		"same arguments": "{" + repeat("olmbundles(limit:1 offset:2){name}", 249) + "}",
		"arguments of fragments": "{" + repeat("...on Query{...F}",
			200) + "} fragment F on Query{olmbundles(" + numbered(900, "a%d:1 ") + "){name}}",
		"one name everywhere": "{" + repeat("olmbundles{"+repeat("name ", 9)+"}", 49) + "}",
		"values":              "{" + repeat("olmbundles(limit:["+repeat("1 ", 400)+"]){name}", 110) + "}",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			text := answered(t, ctx, s, query)
			runtime.ReadMemStats(&after)
			// What is allocated stands for the time, which depends on the machine: a query that took a minute allocated
			// 15 GB.
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 256 && !race.Enabled || len(text) > 1<<20 {
				t.Errorf("%d MB allocated, %d bytes of answer: %.150s", allocated, len(text), text)
			}
		})
	}
}

func numbered(n int, form string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, form, i)
	}
	return b.String()
}

func blobsOften() string {
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, "a%d:olmbundles{name properties{type value}}", i)
	}
	return b.String()
}

// A query of long names about a catalog of long names is refused: the names that could be meant are not looked for.
func TestLongNamesInQueryAndCatalog(t *testing.T) {
	var blobs []string
	for i := range 250 {
		blobs = append(blobs, fmt.Sprintf(`{"schema":"%s%d"}`, strings.Repeat("a", 1000), i))
	}
	s, err := serviceOf(t, blobs...)
	if err != nil {
		t.Fatal(err)
	}
	if got := answered(t, t.Context(), s,
		"{"+strings.Repeat(strings.Repeat("b", 199)+" ", 490)+"}"); !strings.Contains(got, "too long names") {
		t.Errorf("%.300s", got)
	}
	if got := answered(t, t.Context(), s, "{nope summary{totalSchemas}}"); !strings.Contains(got,
		"Cannot query field") {
		t.Errorf("%.300s", got)
	}
}

// A catalog of more schemas or fields than a type system has is refused.
func TestTypeSystemsThatAreTooLarge(t *testing.T) {
	many := func(n int, form string) string { return "{" + strings.TrimSuffix(numbered(n, form), ",") + "}" }
	var schemas []string
	for i := range maxSchemas + 1 {
		schemas = append(schemas, fmt.Sprintf(`{"schema":"s%d"}`, i))
	}
	for name, blobs := range map[string][]string{
		"schemas":       schemas,
		"fields":        {many(maxFields+1, `"f%d":1,`)},
		"nested fields": {`{"schema":"x","list":[` + many(maxFields+1, `"f%d":1,`) + `]}`},
		"a long name":   {`{"schema":"` + strings.Repeat("x", maxName+1) + `"}`},
		"a long key":    {`{"schema":"x","` + strings.Repeat("x", maxName+1) + `":1}`},
	} {
		for i, b := range blobs {
			if !strings.Contains(b, "schema") {
				blobs[i] = `{"schema":"x",` + b[1:]
			}
		}
		if _, err := serviceOf(t, blobs...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
