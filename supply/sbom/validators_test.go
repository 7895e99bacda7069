package sbom

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/klauspost/compress/zstd"
	"github.com/package-url/packageurl-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// spdxSchema compiles the schema that the SPDX project publishes.
func spdxSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	packed, err := os.ReadFile("testdata/spdx-2.3.schema.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("spdx.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("spdx.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// SPDX documents satisfy the schema and the project's own library, and every relationship is between entries that are
// there.
func TestSPDXDocumentsAreValid(t *testing.T) {
	schema := spdxSchema(t)
	for name, inv := range inventories() {
		t.Run(name, func(t *testing.T) {
			doc := text(t, SPDX, inv)
			parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
			if err != nil {
				t.Fatalf("%v\n%s", err, doc)
			}
			if err := schema.Validate(parsed); err != nil {
				t.Errorf("%v\n%s", err, doc)
			}
			read, err := spdxjson.Read(bytes.NewReader(doc))
			if err != nil {
				t.Fatal(err)
			}
			if err := spdxlib.ValidateDocument(read); err != nil {
				t.Error(err)
			}
			ids := map[string]bool{"DOCUMENT": true}
			valid := regexp.MustCompile(`^[A-Za-z0-9.-]+$`)
			for _, p := range read.Packages {
				id := string(p.PackageSPDXIdentifier)
				if ids[id] || !valid.MatchString(id) {
					t.Errorf("identifier %q", id)
				}
				ids[id] = true
				for _, ref := range p.PackageExternalReferences {
					checkPURL(t, ref.Locator)
				}
			}
			reached := map[string]bool{"DOCUMENT": true}
			for _, r := range read.Relationships {
				for _, id := range []string{string(r.RefA.ElementRefID), string(r.RefB.ElementRefID)} {
					if !ids[id] {
						t.Errorf("relationship with %q, which is not there", id)
					}
				}
				if r.RefA == r.RefB {
					t.Errorf("%q needs itself", r.RefA.ElementRefID)
				}
				reached[string(r.RefB.ElementRefID)] = true
			}
			if len(reached) != len(ids) {
				t.Errorf("%d entries of %d are in relationships", len(reached), len(ids))
			}
			checkText(t, doc)
		})
	}
}

// CycloneDX documents can be decoded, their references are unique, and dependencies are between references that are
// there.
func TestCycloneDXDocumentsAreValid(t *testing.T) {
	for name, inv := range inventories() {
		t.Run(name, func(t *testing.T) {
			doc := text(t, CycloneDX, inv)
			var read cdx.BOM
			strict := json.NewDecoder(bytes.NewReader(doc))
			strict.DisallowUnknownFields()
			if err := strict.Decode(&read); err != nil {
				t.Fatalf("%v\n%s", err, doc)
			}
			if read.SpecVersion != cdx.SpecVersion1_6 || read.BOMFormat != "CycloneDX" || read.Version != 1 ||
				!regexp.MustCompile(
					`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(
					read.SerialNumber) {
				t.Errorf("%s %s %d %s", read.BOMFormat, read.SpecVersion, read.Version, read.SerialNumber)
			}
			refs := map[string]bool{}
			for _, c := range append([]cdx.Component{*read.Metadata.Component}, *read.Components...) {
				if refs[c.BOMRef] || c.BOMRef == "" || c.Name == "" || c.Type == "" {
					t.Errorf("component %q %q %q", c.BOMRef, c.Name, c.Type)
				}
				refs[c.BOMRef] = true
				if c.PackageURL != "" {
					checkPURL(t, c.PackageURL)
				}
			}
			met, reached := map[string]bool{}, map[string]bool{read.Metadata.Component.BOMRef: true}
			for _, d := range *read.Dependencies {
				if met[d.Ref] || !refs[d.Ref] {
					t.Errorf("dependencies of %q", d.Ref)
				}
				met[d.Ref] = true
				seen := map[string]bool{}
				for _, on := range *d.Dependencies {
					if !refs[on] || seen[on] || on == d.Ref {
						t.Errorf("%q depends on %q", d.Ref, on)
					}
					seen[on], reached[on] = true, true
				}
			}
			if len(reached) != len(refs) {
				t.Errorf("%d components of %d are reached by dependencies", len(reached), len(refs))
			}
			checkText(t, doc)
		})
	}
}

// checkPURL checks that a package URL is in its canonical form: the reference library writes the same text.
func checkPURL(t *testing.T, text string) {
	t.Helper()
	p, err := packageurl.FromString(text)
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return
	}
	// Libraries differ in the colon of a port and in the plus of a version; the specification encodes both.
	if got := strings.NewReplacer("localhost:5000", "localhost%3A5000", "+", "%2B").Replace(p.ToString()); got != text {
		t.Errorf("%s: the canonical form is %s", text, got)
	}
}

// checkText checks that a document ends with a line feed and has no characters that a terminal obeys.
func checkText(t *testing.T, doc []byte) {
	t.Helper()
	if !bytes.HasSuffix(doc, []byte("}\n")) {
		t.Errorf("it ends with %q", doc[len(doc)-5:])
	}
	for _, bad := range []string{"\x1b", "\u202e", "\xff", `\u001b`} {
		if bytes.Contains(doc, []byte(bad)) {
			t.Errorf("it has %q", bad)
		}
	}
}
