package catalogql

import (
	"strings"
	"testing"

	"github.com/graphql-go/graphql/language/parser"
)

// The error for a query with long lines is the one that the library has for it, though it is given short ones.
func TestSyntaxErrorsInLongLines(t *testing.T) {
	pad := strings.Repeat(" ", maxLine+100)
	words := strings.Repeat("name, ", maxLine/5)
	for name, query := range map[string]string{
		"at the end":            "{olmbundles{" + words,
		"in the middle":         "{olmbundles{" + words + "!" + words + "}}",
		"at the beginning":      "}" + pad + "{olmbundles{" + words + "}}",
		"between other lines":   "{\n" + words + ")" + words + "\r\n}\nx",
		"in the last line":      "{\r\n\ta" + pad + "}\r" + pad + "]",
		"after a comment":       "{a # not \"a text\n" + pad + "}}",
		"after texts":           `{a(b:"x \" y", c:"""` + "\n \"x \n" + `""")` + pad + "}}",
		"a text that ends late": `{a(b:"x` + "\n" + pad + `")}`,
		"a text in its place":   "{a}" + pad + `"x  y"`,
		"lines of a text":       "{a}" + pad + "\"\"\"x\n\ny\"\"\"",
		"a control character":   "{a" + pad + "\x01\x02}",
		"a wrong number":        "{a(b:01" + pad + ")}",
	} {
		t.Run(name, func(t *testing.T) {
			_, want := parser.Parse(parser.ParseParams{Source: query})
			_, got := parse(query)
			if want == nil || got == nil || got.Error() != "query parse error: "+want.Error() {
				t.Errorf("got  %.300v\nwant %.300v", got, want)
			}
		})
	}
}

// A variable without a whole type is an error with a place: the parser takes it for one.
func TestVariablesWithoutType(t *testing.T) {
	s := sampleService(t)
	for _, typ := range []string{"", "!", "]", "]!", "[!]", "[!]!", "[[!]]", "=1"} {
		got := answered(t, t.Context(), s, "\nquery($n: "+typ+"){summary{totalSchemas}}")
		want := `{"data":null,"errors":[{"message":"query parse error: Syntax Error GraphQL (2:7) ` +
			`Variable $n has no type, or a part of one","locations":[]}]}` + "\n"
		if got != want {
			t.Errorf("%q: %s", typ, got)
		}
	}
	for _, typ := range []string{"Int", "Int!", "[Int]", "[[Int!]!]!"} {
		if got := answered(t, t.Context(), s, "query($n: "+typ+"){summary{totalSchemas}}"); strings.Contains(got, "has no type") {
			t.Errorf("%q: %s", typ, got)
		}
	}
}

// A valid query of one long line is parsed, and errors in an invalid one have their right places.
func TestPlacesInLongLines(t *testing.T) {
	s := sampleService(t)
	for name, test := range map[string]struct{ query, want string }{
		"spaces": {"{olmpackages{name}" + strings.Repeat(" ", 90000) + "}", `{"data":{"olmpackages":[{"name":"p1"}]}}`},
		"an error": {"{\n" + strings.Repeat(" ", 90000) + "nope}",
			`{"data":null,"errors":[{"message":"Cannot query field \"nope\" on type \"Query\".",` +
				`"locations":[{"line":2,"column":90001}]}]}`},
		"a long comment": {"{a} #" + strings.Repeat("x", 90000),
			`{"data":null,"errors":[{"message":"query has a name, text or comment of more than 4096 bytes",` +
				`"locations":[]}]}`},
	} {
		if got := answered(t, t.Context(), s, test.query); got != test.want+"\n" {
			t.Errorf("%s: %.300s", name, got)
		}
	}
}

// Names are made as in catalogd.
func TestNames(t *testing.T) {
	for key, want := range map[string]string{
		"name": "name", "defaultChannel": "defaultChannel", "Some-Key": "someKey", "UPPER": "upper",
		"UPPER_CASE": "upperCase",
		"_lead":      "lead", "9digit": "field_9digit", "": "value", "é": "field_", "a__b.c": "aBC",
		"x9Y-zED": "x9YZed",
		"A9":      "a9",
	} {
		if got := fieldName(key); got != want {
			t.Errorf("the field for %q is %q, not %q", key, got, want)
		}
	}
	for schema, want := range map[string][2]string{
		"olm.bundle": {"OlmBundle", "olmbundles"}, "olm.deprecations": {"OlmDeprecations", "olmdeprecationss"},
		"io.openshift.operators.lifecycles.v1alpha1": {"IoOpenshiftOperatorsLifecyclesV1alpha1",
			"ioopenshiftoperatorslifecyclesv1alpha1s"},
		"9a": {"A", "9as"}, ".9": {"9", "9s"}, "é": {"Unknown", "s"}, "A-B": {"AB", "abs"},
	} {
		if got := [2]string{typeName(schema), rootName(schema)}; got != want {
			t.Errorf("the names of %q are %q, not %q", schema, got, want)
		}
	}
}

// catalogd's limits of depth, aliases and fields count each fragment where it is first spread.
func TestLimitsOfQueries(t *testing.T) {
	s := sampleService(t)
	deep := func(n int) string { return "{" + strings.Repeat("a{", n-1) + "a" + strings.Repeat("}", n) }
	const (
		depth, aliases, fields = "query exceeds maximum depth of 10", "query exceeds maximum alias count of 50",
			"query exceeds maximum field count of 500"
		none = "Cannot query field"
	)
	for name, test := range map[string]struct{ query, want string }{
		"10 levels":                     {deep(10), none},
		"11 levels":                     {deep(11), depth},
		"levels of a fragment":          {"{...F} fragment F on Query" + deep(9), none},
		"too many levels of a fragment": {"{...F} fragment F on Query" + deep(10), depth},
		"levels of an unused fragment":  {"{a} fragment F on Query" + deep(20), none},
		"levels of an inline fragment":  {"{... on Query" + deep(10) + "}", depth},
		"50 aliases":                    {"{" + numbered(50, "a%d:x ") + "}", none},
		"51 aliases":                    {"{" + numbered(51, "a%d:x ") + "}", aliases},
		"51 aliases in a fragment":      {"{...F} fragment F on Query{" + numbered(51, "a%d:x ") + "}", aliases},
		"30 aliases of two spreads":     {"{...F ...F} fragment F on Query{" + numbered(30, "a%d:x ") + "}", none},
		"500 fields": {"{" + strings.Repeat("olmpackages{name} ", 250) + "}",
			`{"data":{"olmpackages"`},
		"501 fields": {"{" + strings.Repeat("x ", 501) + "}", fields},
		"501 fields of two operations": {"query A{" + strings.Repeat("x ", 250) + "} query B{" + strings.Repeat("x ",
			251) + "}", fields},
		"1001 fields of a fragment twice": {"{" + strings.Repeat("...F ",
			3) + "} fragment F on Query{" + strings.Repeat("x ", 400) + "}", "query has more than 1000 fields after"},
	} {
		if got := answered(t, t.Context(), s, test.query); !strings.Contains(got, test.want) {
			t.Errorf("%s: %.300s", name, got)
		}
	}
}
