package upgrade

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// Of two schemas only what differs is decoded, and the answer is that about whole ones.
func FuzzDiffering(f *testing.F) {
	const wide = `{"required":["a"],"properties":{"a":{"type":"string","description":"x"},"b":{"properties":{"c":{}}}}}`
	for _, c := range [][2]string{
		{`{}`, `{}`}, {`null`, `{}`}, {`[]`, `1`}, {wide, `{}`}, {wide, wide},
		{wide, `{"required":["a","b"],"properties":{"a":{"type":"string","description":"x"},"b":{"properties":{"c":{}}}}}`},
		{wide, `{"properties":{"a":{"type":"string","description":"y"},"b":{"properties":{"c":{"type":"integer"},"d":{}}}}}`},
		{wide, `{"required":["a","n"],"properties":{"a":{"type":"string","description":"x"},"n":{"type":"object"}}}`},
		{`{"items":{"type":"a"}}`, `{"items":{"type":"b","items":{}}}`}, {`{"items":[{}]}`, `{"items":[{}],"type":"a"}`},
		{`{"items":null}`, `{"items":{}}`}, {`{"additionalProperties":true}`, `{"additionalProperties":{}}`},
		{`{"additionalProperties":{"required":["a"]}}`, `{"additionalProperties":{"required":["b"],"properties":{"b":{}}}}`},
		{`{"properties":{"a":null,"b":null}}`, `{"properties":{"a":null,"b":{}}}`}, {`{"properties":[]}`, `{"properties":{}}`},
		{`{"properties":{"properties":{"type":"a"},"required":{}}}`, `{"properties":{"properties":{"type":"a"},"required":{"type":"b"}}}`},
		{`{"default":1.0,"enum":["a"],"required":[]}`, `{"default":1,"enum":["a","b"]}`}, {`{"a":1,"a":2}`, `{"\u0061":2}`},
	} {
		f.Add([]byte(c[0]), []byte(c[1]))
		f.Add([]byte(c[1]), []byte(c[0]))
	}
	f.Fuzz(func(t *testing.T, old, next []byte) {
		if !json.Valid(old) || !json.Valid(next) {
			return
		}
		var all [2][2]item // with schemas as text, and as values
		for i, schema := range [][]byte{old, next} {
			m := Manifest{Object{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "d"}, fmt.Appendf(nil,
				`{"spec":{"versions":[{"name":"v1"},{"name":"v2","schema":{"openAPIV3Schema":%s}}]}}`, schema)}
			content, err := decode(m)
			var whole map[string]any
			if err != nil || json.Unmarshal(m.JSON, &whole) != nil {
				return
			}
			all[0][i], all[1][i] = item{m.Object, content, m.JSON}, item{m.Object, whole, m.JSON}
		}
		got, err := compareDefinition(all[0][0], all[0][1], verdict{})
		want, wantErr := compareDefinition(all[1][0], all[1][1], verdict{})
		if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("from %s to %s:\n%+v, %v\nwant\n%+v, %v", old, next, got, err, want, wantErr)
		}
	})
}
