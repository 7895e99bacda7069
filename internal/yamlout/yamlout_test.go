package yamlout

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/testing/cputime"
)

// Values without special numbers are written as sigs.k8s.io/yaml writes them.
func TestEqualsLibrary(t *testing.T) {
	for _, src := range []string{
		`{}`, `[]`, `null`, `""`, `{"b":1,"a":{"y":true,"n":"no","10":"x","9":"y"},"c":[1,-2,[],{}]}`,
		`{"s":"line\nbreak","t":"trailing \n","u":"\u2028","v":"  lead","w":"a: b","x":"# no","y":"yes","z":"1.0","1e3":"1e3"}`,
		`{"long":"` + strings.Repeat("word ", 60) + `"}`,
		`{"k":"0x10","o":"010","d":"2026-01-01","e":"~","f":"=","g":"<<"}`,
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

// manyNumbers returns an object with n numbers and a text like a placeholder, and its YAML.
func manyNumbers(n int) (src, want string) {
	var in, out strings.Builder
	in.WriteString(`{"z":1.50`)
	for i := range n {
		fmt.Fprintf(&in, `,"k%05d":%d.0`, n-1-i, n-1-i)
		fmt.Fprintf(&out, "k%05d: %d.0\n", i, i)
	}
	text := "\u0192number\u0192000000000\u0192"
	fmt.Fprintf(&in, `,"text":%q}`, text)
	fmt.Fprintf(&out, "text: %s\nz: 1.50\n", text)
	return in.String(), out.String()
}

// Numbers are restored however many there are, in whatever order they are sorted, and next to texts that look like
// placeholders.
func TestManyNumbersAndTextsLikePlaceholders(t *testing.T) {
	written := func(n int) func() {
		src, want := manyNumbers(n)
		return func() {
			got, err := AppendYAML([]byte("before\n"), []byte(src))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != "before\n"+want {
				t.Error("numbers or texts are not what they were")
			}
		}
	}
	if ratio := cputime.Ratio(written(2_500), written(20_000)); ratio > 24 {
		t.Errorf("eight times the numbers take %.1f times as long", ratio)
	}
}

// A value is written up to the length of its YAML, and one byte less is too little, however deep the value is. What is
// too long or is no JSON leaves what was there.
func TestLongestYAML(t *testing.T) {
	for _, src := range []string{`null`, `true`, `"text"`, `1`, `1.50`, `{"a":{"b":{"c":[1,{"d":2.0},[3,[4]]]}}}`,
		`[[[["x"]]]]`, `{"long":"` + strings.Repeat("word ", 60) + `"}`, `{"quoted":"a: b\n","s":"\u2028"}`} {
		all, err := AppendYAML(nil, []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := Append([]byte("before\n"), []byte(src), len(all))
		if err != nil || !ok || string(got) != "before\n"+string(all) {
			t.Errorf("%s: %q, %v, %v", src, got, ok, err)
		}
		for most := range len(all) {
			if got, ok, err := Append([]byte("before\n"), []byte(src), most); ok || err != nil || string(got) != "before\n" {
				t.Errorf("%s within %d bytes: %q, %v, %v", src, most, got, ok, err)
			}
		}
		for end := range len(src) - 1 {
			if got, err := AppendYAML([]byte("before\n"), []byte(src[:end])); src[0] != '1' && (err == nil ||
				string(got) != "before\n") {
				t.Errorf("%s: %q, %v", src[:end], got, err)
			}
		}
	}
	if got, err := AppendYAML([]byte("before\n"), []byte(`{"a":]}`)); err == nil || string(got) != "before\n" {
		t.Errorf("no JSON: %q, %v", got, err)
	}
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	if got, err := AppendYAML([]byte("before\n"), []byte(deep)); err == nil || string(got) != "before\n" {
		t.Errorf("too deep: %d bytes, %v", len(got), err)
	}
}
