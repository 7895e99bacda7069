package yamlout

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Values without numbers that YAML cannot hold are written as sigs.k8s.io/yaml writes them.
func TestEqualsLibrary(t *testing.T) {
	for _, src := range []string{
		`{}`, `[]`, `null`, `""`, `{"b":1,"a":{"y":true,"n":"no","10":"x","9":"y"},"c":[1,-2,[],{}]}`,
		`{"s":"line\nbreak","t":"trailing \n","u":"\u2028","v":"  lead","w":"a: b","x":"# no","y":"yes","z":"1.0","1e3":"1e3"}`,
		`{"long":"` + strings.Repeat("word ", 60) + `"}`, `{"k":"0x10","o":"010","d":"2026-01-01","e":"~","f":"=","g":"<<"}`,
		`[0,1,9223372036854775807]`,
	} {
		want, err := yaml.JSONToYAML([]byte(src))
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendYAML(nil, []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s\ngot  %q\nwant %q", src, got, want)
		}
	}
}

func TestNumbersKeepTheirText(t *testing.T) {
	got, err := AppendYAML(nil, []byte(`{"a":1.0,"b":[1e400,-0,9007199254740993],"c":123456789012345678901234567890}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "a: 1.0\nb:\n- 1e400\n- -0\n- 9007199254740993\nc: 123456789012345678901234567890\n"
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
