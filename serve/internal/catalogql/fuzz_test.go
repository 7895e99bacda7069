package catalogql

import (
	"context"
	"testing"
	"time"
)

// FuzzQuery gives any text as a query: the answer is JSON, comes soon, and nothing panics.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"{olmbundles(limit:1,offset:1){name properties{type value}}}", "{summary{totalSchemas schemas{name}}}",
		"query Q($n:Int=2){customthings(limit:$n){list objs{someKey}}}", "{...F} fragment F on Query{...F}",
		"{__schema{types{name fields{name type{name}}}}}",
		"{a:__typename @skip(if:true) b:__typename @include(if:false)}",
		"mutation{x}", "{\"\"\"é\"\"\"}", "#é\n{x}", "{olmbundles(limit:[[1]]){name}}", "type A{b:Int}", "query($n:){x}", "",
	} {
		f.Add(query)
	}
	s := sampleService(f)
	f.Fuzz(func(t *testing.T, query string) {
		if len(query) > 100_000 {
			t.Skip()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		answered(t, ctx, s, query)
		if took := time.Since(start); took > 8*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// FuzzDiscover gives any JSON object as a blob: the type system is made or refused, and answers about it are JSON.
func FuzzDiscover(f *testing.F) {
	for _, text := range sampleBlobs {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line, schema := canonical(text)
		if line == nil {
			t.Skip()
		}
		var d Discovery
		if d.Add(schema, line) != nil {
			return
		}
		s, err := d.Service(blobsInMemory{schema: {line}})
		if err != nil {
			return
		}
		query := s.schema.QueryType()
		for _, name := range fieldNames(query) {
			if name == "summary" {
				continue
			}
			all := "{" + name + "{schema "
			for _, field := range fieldNames(elementOf(query.Fields()[name].Type)) {
				if object := elementOf(elementOf(query.Fields()[name].Type).Fields()[field].Type); object == nil {
					all += field + " "
				} else {
					all += field + "{__typename " + fieldNames(object)[0] + "}"
				}
			}
			answered(t, t.Context(), s, all+"}}")
		}
		answered(t, t.Context(), s, "{summary{schemas{name totalObjects totalFields}}}")
	})
}
