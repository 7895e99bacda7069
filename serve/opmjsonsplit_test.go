package serve

import (
	"bytes"
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/operator-bindery/bindery/serve/api"
)

// FuzzSplitJSON compares an answer that is taken apart with what encoding/json makes of it.
func FuzzSplitJSON(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"csvName":"a","csvJson":"{\"a\":\"\\u003c\\n\"}","object":["x\u003c","\ud83d\ude00",""],"replaces":"b"}`,
		` { "csvJson" : "\u00e9\u0000\b\f\/" , "version":"1" } `, `{"object":[]}`, `{"object":null,"csvJson":null}`, `{"object":["a",]}`, `{"object":["a" "b"]}`,
		`{"csvJson":"a","csvJson":"b"}`, `{"CSVJSON":"a"}`, `{"object":[1]}`, "{\"csvJson\":\"\xff\"}", "{\"csvJson\":\"\n\"}", `{"csvJson":"\x"}`, `{"csvJson":"\ud800"}`, `{"a":1,}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rest, csv, objects, ok := splitJSON(text)
		if !ok {
			return
		}
		got, want := &api.Bundle{}, &api.Bundle{}
		err := json.Unmarshal(text, want)
		if json.Unmarshal(rest, got) != nil || got.CsvJson != "" || got.Object != nil {
			return // left to encoding/json
		}
		heavy, ok := appendJSONManifests(nil, csv, objects)
		if ok != (err == nil) {
			t.Fatalf("%q: taken: %v, encoding/json: %v", text, ok, err)
		}
		if !ok {
			return
		}
		if w := appendManifestTexts(nil, want.CsvJson, want.Object); !bytes.Equal(heavy, w) {
			t.Errorf("%q: manifests %q, want %q", text, heavy, w)
		}
		if want.CsvJson, want.Object = "", nil; !proto.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	})
}
