package shape_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/shape"
)

type common struct {
	Note string `json:"note"`
}

// settings has each kind of field that a file of a user is decoded to.
type settings struct {
	common
	Name    string            `json:"name"`
	Size    *int64            `json:"size"`
	Ratio   float64           `json:"ratio"`
	On      bool              `json:"active"`
	Key     []byte            `json:"key"`
	Tags    []string          `json:"tags"`
	Labels  map[string]string `json:"labels"`
	Entries []struct {
		Path string `json:"path"`
	} `json:"entries"`
	Since   time.Time  `json:"since"`
	Address netip.Addr `json:"address"`
	Any     any        `json:"any"`
	Plain   string
	Left    string `json:"-"`
}

func TestRead(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
		kind error
	}{
		"every kind": {"note: a\nname: node\nsize: 5\nratio: 1.5\nactive: true\nkey: YQ==\ntags: [a]\nlabels: {a: b}\n" +
			"entries:\n- path: p\nsince: \"2026-01-02T03:04:05Z\"\naddress: 127.0.0.1\nany: [1]\nPlain: x\n", nil, nil},
		"JSON":                      {`{"name": "node", "entries": [{"path": "p"}]}`, nil, nil},
		"empty":                     {"# nothing\n", []string{"f: it is empty"}, fault.ErrInvalid},
		"two documents":             {"name: a\n---\nname: b\n", []string{"f: it has more than one document"}, fault.ErrInvalid},
		"no YAML":                   {"name: a\nb: [\n", []string{"f:"}, fault.ErrInvalid},
		"damage after the document": {"name: a\n---\n\x00\n", []string{"f:"}, fault.ErrInvalid},
		"too long": {"name: " + strings.Repeat("a", 2000) + "\n",
			[]string{"f: document size exceeds the limit of 1500"}, nil},
		"all faults, each at its place": {"---\nnmae: a\ntags:\n- a\n- {}\nentries:\n- path: 1.10\n" +
			"  paht: x\nhidden: x\nLeft: x\n",
			[]string{`f:2:7: unknown field "nmae" (perhaps name)`,
				`f:5:3: tags[1] is an object, expected a string`,
				`f:7:9: entries[0].path is a number, expected a string (write it in quotes: "1.10")`,
				`f:8:9: entries[0]: unknown field "paht" (perhaps path)`, `f:9:9: unknown field "hidden" (the fields are `,
				`f:10:7: unknown field "Left" (the fields are Plain, active, `}, fault.ErrInvalid},
		"a hundred faults at most": {"tags:\n" + strings.Repeat("- {}\n", 120),
			slices.Collect(func(yield func(string) bool) {
				for i := range 100 {
					if !yield(fmt.Sprintf("f:%d:3: tags[%d] is an object", i+2, i)) {
						return
					}
				}
				yield("... and 20 more problems")
			}), fault.ErrInvalid},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			doc, err := shape.Read(strings.NewReader(test.text), shape.Strict[settings](),
				shape.Options{File: "f", Limits: canon.Limits{MaxDocument: 1500}})
			if test.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				var got settings
				if err := doc.Decode(&got); err != nil || got.Name != "node" || got.Entries[0].Path != "p" {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			var limit *canon.LimitError
			if test.kind != nil && !errors.Is(err, test.kind) || test.kind == nil && !errors.As(err, &limit) {
				t.Fatal(err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(test.want) {
				t.Fatalf("got %d lines:\n%v", len(lines), err)
			}
			for i, line := range lines {
				if !strings.HasPrefix(line, test.want[i]) {
					t.Errorf("got %q, want %q", line, test.want[i])
				}
			}
		})
	}
}

func TestReadWarnsOfRepeatedKeys(t *testing.T) {
	var warned []string
	doc, err := shape.Read(strings.NewReader("---\nname: a\nname: b\n"), shape.For[settings](), shape.Options{File: "f",
		Warn: func(line int, text string) { warned = append(warned, fmt.Sprintf("%d: %s", line, text)) }})
	if err != nil || len(warned) != 1 || !strings.HasPrefix(warned[0], "3: ") || !strings.Contains(warned[0], "name") {
		t.Fatalf("%q, %v", warned, err)
	}
	var got settings
	if err := doc.Decode(&got); err != nil || got.Name != "b" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestPlacesInDocuments(t *testing.T) {
	text := "\n# first\n---\nname: node\nentries:\n- path: p\n  more: x\n"
	doc, err := shape.Read(strings.NewReader(text), shape.For[settings](), shape.Options{File: "f"})
	if err != nil {
		t.Fatal(err)
	}
	for want, path := range map[string][]any{
		"f:4:7": {"name"}, "f:6:9": {"entries", 0, "path"}, "f:6": {"entries", 0, "nosuch"}, "f:4": {"nosuch"},
	} {
		if got := doc.At(path...).String(); got != want {
			t.Errorf("%v: got %s, want %s", path, got, want)
		}
	}
	if at, from := doc.Line("entries", 0, "path"), doc.Line("nosuch"); at != 6 || from != 4 {
		t.Errorf("lines %d and %d", at, from)
	}
	var wrong struct {
		Entries []struct {
			Path int `json:"path"`
		} `json:"entries"`
	}
	if err := doc.Decode(&wrong); err == nil || err.Error() != "entries[0].path is a string, expected a whole number" ||
		errors.Unwrap(err) == nil {
		t.Error(err)
	}
}

func TestFieldsOfTypes(t *testing.T) {
	var names []string
	for name := range shape.FieldsOf[settings]() {
		names = append(names, name)
	}
	slices.Sort(names)
	want := "Plain active address any entries key labels name note ratio since size tags"
	if got := strings.Join(names, " "); got != want {
		t.Error(got)
	}
	for text, want := range map[string]string{
		`{"other":1,"entries":[{"other":1}]}`: "",
		`{"since":5}`:                         "",
		`{"address":5}`:                       "address is a number, expected a string (write it in quotes: \"5\")",
		`{"key":"*"}`:                         "key is a string, expected a string in base64",
	} {
		var got []string
		shape.For[settings]().Check([]byte(text), func(f shape.Fault) { got = append(got, f.String()) })
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestSuggest(t *testing.T) {
	if got := shape.Suggest("chanels", []string{"channels", "packages"}); got != "perhaps channels" {
		t.Error(got)
	}
	if got := shape.Suggest("x", []string{"channels", "packages"}); got != "the fields are channels, packages" {
		t.Error(got)
	}
}
