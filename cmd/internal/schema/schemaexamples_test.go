package schema_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/build/compose"
	"github.com/operator-bindery/bindery/check/rules"
	catalogcmd "github.com/operator-bindery/bindery/cmd/internal/catalog"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/docs/reference/schemas"
	"github.com/operator-bindery/bindery/images/lockfile"
	"github.com/operator-bindery/bindery/internal/testing/manual"
	"github.com/operator-bindery/bindery/internal/testing/schemagen"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/render/template"
)

// heredoc finds the files that documented commands write.
var heredoc = regexp.MustCompile(`(?s)<<-?'?([A-Z]+)'?\n(.*?)\n\s*([A-Z]+)\n`)

// schemaOf returns the name of the schema of a document, by the members that it has; empty if it is of another kind.
func schemaOf(v any) string {
	o, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return o[n] == nil })
	}
	switch kind, _ := o["kind"].(string); {
	case kind == "ImageSetConfiguration" && o["mirror"] != nil:
		return "image-set"
	case kind == "DeleteImageSetConfiguration":
		return "delete-image-set"
	case kind == "DeleteImageList":
		return "delete-list"
	case kind != "":
		return ""
	}
	switch schema, _ := o["schema"].(string); {
	case schema == "olm.semver":
		return "template-semver"
	case schema == "olm.template.basic":
		return "template-basic"
	case schema == "olm.template.substitutes":
		return "template-substitutes"
	case schema != "":
		return "catalog"
	}
	switch {
	case has("waivers"):
		return "waivers"
	case has("references"):
		return "compose"
	case has("rule_data"):
		return "rule-data"
	case has("version", "images"):
		return "lock"
	case has("class", "message"):
		return "error"
	case has("packages") && len(o) == 1:
		return "selection"
	}
	return ""
}

// Every example in the documentation that is a whole document of one of the formats is valid.
func TestSchemasAcceptDocumentedExamples(t *testing.T) {
	pages, err := manual.All(os.DirFS("../../.."), "*.md", "docs/**", "deploy/**")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, p := range pages {
		for _, b := range p.Blocks {
			texts := []string{b.Text}
			for _, m := range heredoc.FindAllStringSubmatch(b.Text+"\n", -1) {
				texts = append(texts, m[2])
			}
			for _, text := range texts {
				for _, doc := range yamlDocuments(text) {
					if elided(doc) {
						continue
					}
					name := schemaOf(parsed(t, doc))
					if name == "" {
						continue
					}
					found[name]++
					if err := clitest.Compiled(t, name).Validate(parsed(t, doc)); err != nil {
						t.Errorf("%s:%d: %v\n%s", p.Path, b.Line, err, doc)
					}
				}
			}
		}
	}
	t.Log(found)
	for _, name := range []string{"image-set", "lock", "compose", "waivers", "selection", "catalog", "error"} {
		if found[name] == 0 {
			t.Errorf("no documented example of %s", name)
		}
	}
}

// elided reports whether an example leaves something out, which a reader is to fill in.
func elided(doc []byte) bool {
	return bytes.Contains(doc, []byte(`"..."`)) || bytes.Contains(doc, []byte(`{}`))
}

// yamlDocuments returns the documents of a text as JSON, up to the first that is none.
func yamlDocuments(text string) (docs [][]byte) {
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var v any
		if err := dec.Decode(&v); err != nil {
			return docs
		}
		if doc, err := json.Marshal(v); err == nil {
			docs = append(docs, doc)
		}
	}
}

// readers read a document as the program does, and fail if they refuse it.
func readers(t *testing.T) map[string]func([]byte) error {
	set := func(kind imageset.Kind) func([]byte) error {
		return func(text []byte) error {
			_, err := imageset.Parse(text, "f", kind, imageset.Options{})
			return err
		}
	}
	templateOf := func(kind template.Type) func([]byte) error {
		return func(text []byte) error {
			_, err := template.ParseOptions{Type: kind}.Parse(context.Background(), bytes.NewReader(text))
			return err
		}
	}
	dir := t.TempDir()
	return map[string]func([]byte) error{
		"selection": func(text []byte) error {
			p := &option.Session{Program: &program.Program{Stdin: io.NopCloser(bytes.NewReader(text))}}
			_, err := catalogcmd.ReadSelections(p, context.Background(), "-")
			return err
		},
		"compose":   func(text []byte) error { _, err := compose.Read(bytes.NewReader(text), "f"); return err },
		"waivers":   func(text []byte) error { _, err := rules.ReadWaivers(bytes.NewReader(text), "f"); return err },
		"rule-data": func(text []byte) error { _, err := rules.ReadData(bytes.NewReader(text), "f"); return err },
		"lock": func(text []byte) error {
			file := filepath.Join(dir, "lock")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := lockfile.Open(t.Context(), file)
			return err
		},
		"image-set": set(imageset.Image), "delete-image-set": set(imageset.Delete),
		"delete-list": func(text []byte) error {
			file := filepath.Join(dir, "list")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := mirror.ReadDeleteList(t.Context(), file)
			return err
		},
		"template-semver": templateOf(template.Semver), "template-basic": templateOf(template.Basic),
		"template-substitutes": templateOf(template.Substitutes),
	}
}

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// readExamples are documents that the readers accept. Those of the program's own formats name their schema.
var readExamples = map[string]string{
	"selection": `{"$schema":"s","packages":[{"name":"a","headsOnly":true,
		"channels":[{"name":"c","minVersion":"1.0.0"}]}]}`,
	"compose":   `{"$schema":"s","name":"n","references":[{"name":"a","image":"quay.io/acme/a:v1"}]}`,
	"waivers":   `{"$schema":"s","waivers":[{"rule":"r","reason":"why","until":"2027-01-31","bundle":"a.*"}]}`,
	"rule-data": `{"$schema":"s","rule_data":{"required_labels":[{"name":"l","values":["v"]}],"other":1}}`,
	"lock":      `{"$schema":"s","version":1,"images":{"quay.io/acme/a:v1":"` + someDigest + `"}}`,
	"image-set": `{"kind":"ImageSetConfiguration","apiVersion":"mirror.openshift.io/v2alpha1","mirror":{"operators":
		[{"catalog":"quay.io/acme/c:v1","packages":[{"name":"a","channels":[{"name":"b"}]}]}],
		"additionalImages":[{"name":"quay.io/acme/i:v1"}],"blockedImages":[{"name":"x"}]}}`,
	"delete-image-set": `{"kind":"DeleteImageSetConfiguration",
		"delete":{"operators":[{"catalog":"quay.io/acme/c:v1"}]}}`,
	"delete-list": sampleTexts["delete-list"],
	"template-semver": `{"$schema":"s","schema":"olm.semver","generateMajorChannels":true,
		"defaultChannelTypePreference":"major","stable":{"bundles":[{"image":"quay.io/acme/b:v1"}]}}`,
	"template-basic": `{"$schema":"s","schema":"olm.template.basic",
		"entries":[{"schema":"olm.bundle","image":"quay.io/b:v1"}]}`,
	"template-substitutes": `{"$schema":"s","schema":"olm.template.substitutes","entries":[{"schema":"olm.package",
		"name":"a","defaultChannel":"c"},{"schema":"olm.channel","package":"a","name":"c","entries":[{"name":"a.v1"}]},
		{"schema":"olm.bundle","package":"a","name":"a.v1","image":"quay.io/acme/a:v1","properties":[{"type":
		"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}],
		"substitutions":[{"name":"quay.io/b:v2","base":"a.v1"}]}`,
}

// lenient are mutations that a reader accepts and its schema refuses, since they are mistakes all the same.
var lenient = map[string]string{
	"compose wrong type":         "a number is read as text: a tag may look like one",
	"waivers wrong type":         "a number is read as text",
	"rule-data wrong type":       "a number is read as text",
	"rule-data unknown member":   "beside rule_data, and in labels, other keys are those of the policy",
	"rule-data missing member":   "a label without a name fits nothing",
	"delete-list wrong type":     "a number is read as text",
	"delete-list wrong value":    "the type of an image is not used",
	"delete-list missing member": "an item without a reference fails when it is deleted",
}

// What a reader accepts is valid, and what is not valid is refused by the reader too, but for what lenient lists.
func TestSchemasAgreeWithReaders(t *testing.T) {
	for name, read := range readers(t) {
		t.Run(name, func(t *testing.T) {
			text := []byte(readExamples[name])
			if err := read(text); err != nil {
				t.Fatal(err)
			}
			s := clitest.Compiled(t, name)
			document := parsed(t, text)
			if err := s.Validate(document); err != nil {
				t.Fatal(err)
			}
			refuseMutations(t, name, s, document)
			text, _ = schemas.Text(name)
			for _, m := range schemagen.Mutate(parsed(t, text).(map[string]any), document) {
				changed, err := json.Marshal(m.Document)
				if err != nil {
					t.Fatal(err)
				}
				if read(changed) == nil && lenient[name+" "+m.Kind] == "" {
					t.Errorf("the reader accepts %s at %s: %s", m.Kind, m.Place, changed)
				}
			}
		})
	}
}

// Templates, image sets and catalogs among the test data are valid if the program reads them.
func TestSchemasAcceptTestData(t *testing.T) {
	read, n := readers(t), 0
	for _, pattern := range []string{"templates/templates/*.yaml", "templates/golden-fbc/*/*.yaml", "real/*/*.yaml"} {
		files, err := filepath.Glob("../../../testdata/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, doc := range yamlDocuments(clitest.ReadFile(t, file)) {
				name := schemaOf(parsed(t, doc))
				if name == "" || read[name] != nil && read[name](doc) != nil {
					continue
				}
				n++
				if err := clitest.Compiled(t, name).Validate(parsed(t, doc)); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d documents", n)
	}
}

// The schema of catalogs accepts the valid catalogs of the cases.
func TestSchemasAcceptCatalogs(t *testing.T) {
	dirs := []string{"../clitest/testdata/cases/ok-base"}
	more, err := filepath.Glob("../../../testdata/fbc/*")
	if err != nil || len(more) == 0 {
		t.Fatal(more, err)
	}
	dirs = append(dirs, more...)
	s := clitest.Compiled(t, "catalog")
	for _, dir := range dirs {
		for blob, err := range declcfg.Stream(context.Background(), os.DirFS(dir), declcfg.LoadOptions{}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(blob)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(parsed(t, text)); err != nil {
				t.Errorf("%s: %s %s: %v", dir, blob.BlobSchema(), blob.BlobName(), err)
			}
		}
	}
}
