package bundle

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/canon"
)

// convert decodes JSON with a function for numbers.
func convert(t *testing.T, text []byte, number func(json.Number) any) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k := range v {
				v[k] = walk(v[k])
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case json.Number:
			return number(v)
		}
		return v
	}
	return walk(value)
}

// rational returns the exact value of a number, or its text if the arithmetic would be expensive.
func rational(n json.Number) any {
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		if !strings.ContainsAny(string(n[:i]), "123456789") {
			n = n[:i] // zero, whatever the exponent
		} else if exponent, err := strconv.Atoi(string(n[i+1:])); err != nil || exponent > 2000 || exponent < -2000 {
			return n
		}
	}
	if r, ok := new(big.Rat).SetString(string(n)); ok {
		return r.String()
	}
	return n
}

// kubernetes decodes JSON as Kubernetes does: integers of 64 bits stay integers, other numbers become floats. exact
// reports whether no number changed.
func kubernetes(t *testing.T, text []byte) (value any, exact bool) {
	t.Helper()
	exact = true
	return convert(t, text, func(n json.Number) any {
		if i, err := n.Int64(); err == nil {
			return i
		}
		f, err := n.Float64()
		short, _ := json.Marshal(f)
		if err != nil || rational(n) != rational(json.Number(short)) {
			exact = false
			return n
		}
		if f == 0 {
			return int64(0) // YAML loses the sign of minus zero
		}
		return f
	}), exact
}

// FuzzOpmBytes checks that the result equals that of encoding/json, or has the same value where encoding/json would
// lose digits.
func FuzzOpmBytes(f *testing.F) {
	for _, seed := range []string{
		`{"a":"<b>&\u2028\"\\","n":[1,-1,1.0,1e3,-0,0.5,1e400,18446744073709551615,3.14159265358979323846]}`, `"x"`,
		`-0.0`, `[]`, `{"<":{}}`,
		`[true,false,null,1E+2,1e-7,123456789012345678901234567890]`, `"\u003c"`, `[0.1e1,"1.0"]`,
		`[1e-999999,0e5,1e999999999999999999999]`,
		`[0e-999999,9919999999999999990e5]`, `[1e-9,0e599999999,-0.0e99999999999999999999]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		src, err := canon.AppendJSON(nil, doc, canon.Limits{}, nil)
		if err != nil {
			return
		}
		got := appendOpm(nil, src)
		want, exact := kubernetes(t, src)
		if !exact {
			if !reflect.DeepEqual(convert(t, got, rational), convert(t, src, rational)) {
				t.Fatalf("%q became %q", src, got)
			}
			return
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, text) {
			t.Fatalf("%q became %q, want %q", src, got, text)
		}
	})
}
