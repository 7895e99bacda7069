package shape_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/shape"
)

var whole = shape.Object(shape.Fields{
	"name": shape.Text, "size": shape.Whole, "on": shape.Switch, "data": shape.Binary, "any": shape.Any,
	"tags": shape.List(shape.Text), "labels": shape.Map(shape.Text),
	"open": shape.Open(shape.Fields{"Inner": shape.List(shape.Open(shape.Texts("x")))}),
})

func TestCheck(t *testing.T) {
	for doc, want := range map[string]string{
		`{"name":"a","size":5,"on":true,"data":"YQ==","any":[1],"tags":["x",null],"labels":{"a":"b"}}`: "",
		`{"name":null,"open":{"inner":[{"X":"y","more":1}]}}`:                                          "",
		`[]`:                     "the document is a list, expected an object",
		`{"name":1.10}`:          `name is a number, expected a string (write it in quotes: "1.10")`,
		`{"name":true}`:          `name is a boolean, expected a string (write it in quotes: "true")`,
		`{"name":{}}`:            `name is an object, expected a string`,
		`{"size":"5"}`:           `size is a string, expected a whole number (write 5 without quotes)`,
		`{"size":1.5}`:           `size is a number, expected a whole number`,
		`{"on":"false"}`:         `on is a string, expected a boolean (write false without quotes)`,
		`{"on":"perhaps"}`:       `on is a string, expected a boolean`,
		`{"data":"*"}`:           `data is a string, expected a string in base64`,
		`{"tags":"x\"y"}`:        `tags is a string, expected a list (write ["x\"y"])`,
		`{"tags":["a",{}]}`:      `tags[1] is an object, expected a string`,
		`{"labels":{"a.b":1}}`:   `labels[a.b] is a number, expected a string (write it in quotes: "1")`,
		`{"nmae":1,"name":2}`:    `unknown field "nmae" (perhaps name); name is a number, expected a string (write it in quotes: "2")`,
		`{"open":{"INNER":[1]}}`: `open.INNER[0] is a number, expected an object`,
	} {
		var got []string
		whole.Check([]byte(doc), func(f shape.Fault) { got = append(got, f.String()) })
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s: got %q, want %q", doc, text, want)
		}
		s := jsonscan.NewScanner([]byte(doc))
		if conforms := whole.Conforms(&s) && s.Done(); conforms && want != "" {
			t.Errorf("%s conforms", doc)
		}
	}
}

// FuzzConforms compares with encoding/json: what conforms can be decoded, and what cannot has a fault.
func FuzzConforms(f *testing.F) {
	s := shape.Open(shape.Fields{"A": shape.Text, "B": shape.List(shape.Text), "C": shape.Switch, "D": shape.Whole,
		"E": shape.Map(shape.Text)})
	for _, seed := range []string{`{}`, `{"A":"x","b":["y"]}`, `{"C":1}`, `{"D":1e3}`, `{"E":{"x":1}}`, `null`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var into struct {
			A string
			B []string
			C bool
			D int64
			E map[string]string
		}
		err := json.Unmarshal(doc, &into)
		scan := jsonscan.NewScanner(doc)
		if s.Conforms(&scan) && scan.Done() && err != nil && json.Valid(doc) {
			t.Errorf("%q conforms: %v", doc, err)
		}
		var wrong *json.UnmarshalTypeError
		var compact strings.Builder
		if !errors.As(err, &wrong) {
			return
		}
		var v any
		dec := json.NewDecoder(strings.NewReader(string(doc)))
		dec.UseNumber()
		if dec.Decode(&v) != nil {
			return
		}
		enc := json.NewEncoder(&compact)
		if enc.Encode(v) != nil {
			return
		}
		found := false
		s.Check([]byte(strings.TrimSuffix(compact.String(), "\n")), func(shape.Fault) { found = true })
		var again any = &into
		if !found && json.Unmarshal([]byte(compact.String()), again) != nil {
			t.Errorf("no fault in %s: %v", compact.String(), err)
		}
	})
}

// No message names a type of Go, wherever it comes from.
func TestPlain(t *testing.T) {
	type inner struct {
		List []string          `json:"list"`
		Map  map[string]string `json:"map"`
		Size int               `json:"size"`
		On   bool              `json:"on"`
		Any  interface{}       `json:"any"`
		Data []byte            `json:"data"`
		Num  float64           `json:"num"`
	}
	type outer struct {
		Inner []inner `json:"inner"`
		Name  string  `json:"name"`
	}
	for doc, want := range map[string]string{
		`{"name":5}`:               `name is a number, expected a string`,
		`{"name":[]}`:              `name is a list, expected a string`,
		`{"inner":{}}`:             `inner is an object, expected a list`,
		`{"inner":[{"list":"x"}]}`: `inner.list is a string, expected a list`,
		`{"inner":[{"map":"x"}]}`:  `inner.map is a string, expected an object`,
		`{"inner":[{"size":"x"}]}`: `inner.size is a string, expected a whole number`,
		`{"inner":[{"on":"x"}]}`:   `inner.on is a string, expected a boolean`,
		`{"inner":[{"num":"x"}]}`:  `inner.num is a string, expected a number`,
		`{"inner":[{"data":5}]}`:   `inner.data is a number, expected a string in base64`,
		`[]`:                       `the document is a list, expected an object`,
		`{"inner":[{"size":12345678901234567890}]}`: `inner.size is a number, expected a whole number`,
	} {
		var into outer
		err := json.Unmarshal([]byte(doc), &into)
		if err == nil {
			t.Errorf("%s can be decoded", doc)
			continue
		}
		wrapped := fmt.Errorf("file: %w", errors.Join(errors.New("x"), fmt.Errorf("y: %w", err)))
		for name, text := range map[string]string{
			"wrapped": shape.Plain(wrapped.Error(), wrapped), "flat": shape.Plain(fmt.Sprintf("y: %v, z", err), nil),
			"explained": shape.Explain(nil, err).Error(),
			"yaml":      shape.Plain(fmt.Sprint(yaml.Unmarshal([]byte(doc), &into)), nil),
		} {
			named := name == "wrapped" || name == "explained" || name == "flat" && !strings.HasPrefix(want, "the document")
			if named && !strings.Contains(text, want) ||
				strings.Contains(text, "Go ") || strings.Contains(text, "unmarshal ") {
				t.Errorf("%s of %s: %q, want %q", name, doc, text, want)
			}
		}
	}
	for text, want := range map[string]string{
		"yaml: unmarshal errors:\n  line 3: cannot unmarshal !!str `x` into int": "yaml: unmarshal errors:\n  line 3: \"x\" is a string, expected a whole number",
		"line 3: cannot unmarshal !!map into []string":                           "line 3: a value is an object, expected a list",
		"nothing of the kind": "nothing of the kind",
	} {
		if got := shape.Plain(text, nil); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
