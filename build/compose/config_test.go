package compose

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/problem"
)

func TestRead(t *testing.T) {
	want := &Config{Name: "community", Repo: "quay.io/c/catalog", Tag: "4.20", References: []Reference{
		{"etcd-operator", "quay.io/etcd/index@sha256:" + strings.Repeat("5", 64), 5},
		{"other", "oci:parts.oci:other", 7}}}
	for name, text := range map[string]string{
		"yaml": "name: community\nrepo: quay.io/c/catalog\ntag: 4.20\nreferences:\n- name: etcd-operator\n  image: " +
			want.References[0].Image + "\n- {name: other, image: 'oci:parts.oci:other'}\n",
		"json": "{\"name\":\"community\",\n\"repo\":\"quay.io/c/catalog\",\"tag\":\"4.20\",\n\n\"references\":[\n{\"name\":\"etcd-operator\",\n \"image\":\"" + want.References[0].Image + "\"},\n{\"name\":\"other\",\"image\":\"oci:parts.oci:other\"}]}",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(text), "f")
			if err != nil {
				t.Fatal(err)
			}
			if name == "json" {
				got.References[0].Line, got.References[1].Line = 5, 7
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// An invalid configuration is refused with all problems and their lines.
func TestReadTellsAllProblems(t *testing.T) {
	ok := "\n  image: example.com/a:v1\n"
	for text, want := range map[string][]string{
		"":                                       {"f: it is empty"},
		"# nothing\n":                            {"f: it is empty"},
		"a: [":                                   {"f:1: did not find expected node content"},
		"[]":                                     {"f:1:1: is a list, expected an object"},
		"name: x":                                {"references: missing"},
		"references: x":                          {"f:1:13: references: is a string, expected a list"},
		"references: []":                         {"references: empty"},
		"references:\n- x":                       {"f:2:3: references[0]: is a string, expected an object"},
		"references:\n- name: a":                 {"f:2:3: references[0].image: missing"},
		"references:\n- name:" + ok:              {"references[0].name: empty"},
		"references:\n- name: []" + ok:           {"references[0].name: is a list, expected a string"},
		"references:\n- name: ../a" + ok:         {`references[0].name: "../a" cannot be`},
		"references:\n- name: \"a\\u0007\"" + ok: {"control characters"},
		"references:\n- name: &x a" + ok:         {"anchors"},
		"references:\n- name: a" + ok + "- name: a" +
			ok: {`f:4:9: references[1].name: duplicate of "a" in line 2`},
		"references:\n- name: a" + ok + "  name: b\n":           {`duplicate field "name"`},
		"references:\n- name: a" + ok + "---\nreferences: []\n": {"more than one document"},
		"references:\n- name: a\n  image: catalog": {"references[0].image",
			"not the name of an image"},
		"references:\n- name: a\n  image: https://user:secret@example.com": {"references[0].image"},
		"tga: x\nreferences:\n- nme: a\n- image: b\n": {`f:1:1: unknown field "tga"`,
			`f:3:3: references[0]: unknown field "nme": perhaps name`, "references[0].name: missing",
			"references[0].image: missing", "f:4:3: references[1].name: missing"},
		"references:\n" + strings.Repeat("- {}\n", maxReferences+1): {"more than 5000"},
		strings.Repeat("#", maxConfig+1):                            {"longer than"},
		strings.Repeat("x: 1\n", problem.Most+7): {`f:100:1: unknown field "x"`,
			"... and 8 more problems"},
	} {
		t.Run(fmt.Sprintf("%.60q", text), func(t *testing.T) {
			_, err := Read(strings.NewReader(text), "f")
			if !errors.Is(err, images.ErrInvalid) {
				t.Fatalf("%v", err)
			}
			for _, want := range want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("a password in %v", err)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	c := &Config{References: []Reference{{"a", "example.com/a:v1", 1}}}
	if err := c.Replace(map[string]string{"a": "example.com/a:v2", "b": "example.com/b:v1"}); err != nil {
		t.Fatal(err)
	}
	if want := []Reference{{"a", "example.com/a:v2", 1}, {"b", "example.com/b:v1", 0}}; !reflect.DeepEqual(c.References,
		want) {
		t.Errorf("%+v", c.References)
	}
	if err := c.Replace(map[string]string{"a/b": "x"}); err == nil || !strings.Contains(err.Error(), "a/b") ||
		!strings.Contains(err.Error(), "not the name of an image") {
		t.Errorf("%v", err)
	}
}
