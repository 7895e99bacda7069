package web

import (
	"encoding/json"
	"reflect"
	"testing"
)

// Headers are those that encoding/json reads, of objects of any form.
func FuzzHeaderOf(f *testing.F) {
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"b","labels":{"name":"c"}},"spec":{"ports":[]}}`,
		`{"kind":"CustomResourceDefinition","spec":{"group":"a.b","names":{"kind":"Foo","plural":"foos"},` +
			`"versions":[{"name":"v1","storage":true,"schema":{}},{"name":"v2","storage":false},{}]}}`,
		`{"Kind":"A","kind":"B"}`, `{"kind":"A","kind":"B"}`, `{"kind":1,"apiVersion":"v1"}`, `{"kind":null}`, `{"kind":"\u0041"}`,
		`{"metadata":null}`, `{"metadata":[]}`, `{"metadata":{"name":"a"},"metadata":{"namespace":"b"}}`, `{"spec":{"names":1}}`,
		`{"spec":{"versions":{}}}`, `{"spec":{"versions":[1,{"name":"v1"}]}}`, `{"spec":{"versions":[{"storage":"true"}]}}`,
		`{ "kind": "A" }`, "{\"kind\":\"\xff\"}", `{"ſpec":{"group":"a"}}`, `{"\u006bind":"A"}`, `[]`, `1`, `{}`,
		`{"spec":{"versions":[{"name":"v1","name":"v2"}]}}`, `{"spec":{"versions":null}}`, `{"spec":{"versions":[]}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		if !json.Valid(object) {
			return
		}
		var want header
		_ = json.Unmarshal(object, &want)
		got := headerOf(object)
		if len(got.Spec.Versions) == 0 && len(want.Spec.Versions) == 0 {
			got.Spec.Versions = want.Spec.Versions
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", object, got, want)
		}
	})
}
