package manifests_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// What the fast reader reads is what Kubernetes' library reads, and it reads nearly everything.
func TestRegularFiles(t *testing.T) {
	total, odd := 0, 0
	for name, files := range whole(t).bundles {
		for file, f := range files {
			if !strings.HasPrefix(file, "manifests/") || f.Mode.IsDir() {
				continue
			}
			total++
			fast, ok := manifests.Regular(f.Data)
			if !ok {
				odd++
				continue
			}
			if slow, err := manifests.SlowObjects(f.Data); err != nil || !reflect.DeepEqual(fast, slow) {
				t.Errorf("%s/%s: read otherwise (%v)", name, file, err)
			}
		}
	}
	if odd > total/100 {
		t.Errorf("%d of %d files are irregular", odd, total)
	}
}

const annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: demo}\n"

const csv = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",` +
	`"metadata":{"name":"demo.v1"},"spec":{"version":"1.0.0",` +
	`"installModes":[{"type":"AllNamespaces","supported":true}],"install":{"strategy":"deployment"}}}`

func bundleOf(extra map[string]string) fstest.MapFS {
	files := map[string]string{"metadata/annotations.yaml": annotations, "manifests/a.yaml": csv}
	maps.Copy(files, extra)
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return out
}

func TestReadErrors(t *testing.T) {
	for name, c := range map[string]struct {
		files      map[string]string
		want, file string
	}{
		"no annotations": {map[string]string{"metadata/annotations.yaml": "annotations: {" +
			"operators.operatorframework.io.bundle.package.v1: []}"},
			"error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go struct field " +
				"Annotations.annotations.operators.operatorframework.io.bundle.package.v1 of type string",
			"metadata/annotations.yaml"},
		"metadata of another type": {map[string]string{"manifests/b.yaml": "kind: Secret\nmetadata: {labels: " +
			"{a: true}}"},
			`error parsing objects in "manifests/b.yaml": unable to decode "manifests/b.yaml": json: cannot ` +
				"unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string", "manifests/b.yaml"},
		"a version of another type": {map[string]string{"manifests/b.yaml": "apiVersion: 1\nkind: Secret\n"},
			`error parsing objects in "manifests/b.yaml": unable to decode "manifests/b.yaml": json: cannot ` +
				"unmarshal number into Go struct field metadataOnlyObject.TypeMeta.apiVersion of type string",
			"manifests/b.yaml"},
		"a whole number as a fraction": {map[string]string{"manifests/b.yaml": "apiVersion: v1\n" +
			"kind: CustomResourceDefinition\nspec: {group: 1e3}\n"},
			`error parsing objects in "manifests/b.yaml": cannot convert int64 to string`, "manifests/b.yaml"},
		"an item without a version": {map[string]string{"manifests/b.yaml": "kind: List\nitems: [{kind: Secret}]"},
			`error parsing objects in "manifests/b.yaml": unable to get type info from the object ` +
				`"*unstructured.Unstructured": Object 'apiVersion' is missing in 'object has no apiVersion field'`,
			"manifests/b.yaml"},
		"not an object": {map[string]string{"manifests/b.yaml": "- a\n"},
			`error parsing objects in "manifests/b.yaml": unable to decode "manifests/b.yaml": json: cannot ` +
				"unmarshal array into Go value of type unstructured.detector", "manifests/b.yaml"},
		"a value of another type": {map[string]string{"manifests/b.yaml": "apiVersion: apiextensions.k8s.io/v1\n" +
			"kind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {group: true}\n"},
			`error parsing objects in "manifests/b.yaml": unrecognized type: string`, "manifests/b.yaml"},
		"properties": {map[string]string{"metadata/properties.yaml": "properties: {}"},
			"failed to unmarshal metadata/properties.yaml: error unmarshaling JSON: while decoding JSON: json: " +
				"cannot " +
				"unmarshal object into Go struct field RegistryV1Properties.properties of type []property.Property",
			"metadata/properties.yaml"},
		"too deep": {map[string]string{"manifests/b.json": strings.Repeat(`{"a":`, 101) + "1" +
			strings.Repeat("}", 101)}, `error parsing objects in "manifests/b.json": limit exceeded: ` +
			"manifests/b.json is nested deeper than 100", "manifests/b.json"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifests.Read(bundleOf(c.files))
			var read *manifests.ReadError
			if !errors.As(err, &read) || err.Error() != c.want || read.File != c.file {
				t.Errorf("got %v (%+v)\nwant %s", err, read, c.want)
			}
			if !errors.Is(err, manifests.ErrInvalid) {
				t.Error("of another class")
			}
		})
	}
}

// Metadata that is no object stays as it is, where Kubernetes' own method cannot set a namespace either.
func TestOddMetadata(t *testing.T) {
	for text, want := range map[string]string{
		"kind: Secret\napiVersion: v1\nmetadata: null\n": `{"apiVersion":"v1","kind":"Secret","metadata":null}`,
		"kind: Secret\napiVersion: v1\n":                 `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"ns"}}`,
		"kind: List\napiVersion: v1\nitems: [{kind: Secret, apiVersion: v1, metadata: 1}]\n": `{"apiVersion":"v1",` +
			`"kind":"Secret","metadata":1}`,
	} {
		b, err := manifests.Read(bundleOf(map[string]string{"manifests/b.yaml": text}))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := b.Manifests(manifests.Settings{InstallNamespace: "ns"})
		if err != nil || len(objects) != 1 || string(objects[0].JSON) != want {
			t.Errorf("%q: %v, %v", text, objects, err)
		}
	}
}

func TestReadAbsent(t *testing.T) {
	for _, c := range []struct {
		remove, want string
	}{
		{"metadata/annotations.yaml", "open metadata/annotations.yaml: no such file or directory"},
		{"manifests/a.yaml", "stat manifests: no such file or directory"},
	} {
		files := bundleOf(nil)
		delete(files, c.remove)
		dir := t.TempDir()
		if err := os.CopyFS(dir, files); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		for _, fsys := range []fs.FS{files, os.DirFS(dir), root.FS()} {
			if _, err := manifests.Read(fsys); err == nil || err.Error() != c.want || !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%T: %v", fsys, err)
			}
		}
	}
}

// A file that is too large is an error of the class of limits.
func TestReadLimits(t *testing.T) {
	_, err := manifests.Read(bundleOf(map[string]string{"manifests/b.yaml": "#" + strings.Repeat("a", 5<<20)}))
	if !errors.Is(err, fault.ErrLimit) {
		t.Errorf("%v", err)
	}
}

// What a catalog has of a bundle renders to what its files do.
func TestFromObjects(t *testing.T) {
	c := whole(t)
	compared := 0
	for _, name := range slices.Sorted(maps.Keys(c.bundles)) {
		files := c.bundles[name]
		b, err := manifests.Read(files)
		if err != nil || files["metadata/properties.yaml"] != nil {
			continue
		}
		var objects []json.RawMessage
		for _, file := range slices.Sorted(maps.Keys(files)) {
			if strings.HasPrefix(file, "manifests/") && !files[file].Mode.IsDir() {
				value, _ := json.Marshal(map[string][]byte{"data": files[file].Data})
				objects = append(objects, value)
			}
		}
		same, err := manifests.FromObjects(b.Package(), objects, []declcfg.Property{{Type: "olm.package"}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := manifests.Settings{InstallNamespace: "ns", Certs: manifests.CertManager}
		want, wantErr := b.Manifests(s)
		got, gotErr := same.Manifests(s)
		if !reflect.DeepEqual(got, want) || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%s: rendered otherwise: %v, %v", name, gotErr, wantErr)
		}
		compared++
	}
	if compared < 200 {
		t.Errorf("only %d bundles", compared)
	}
}

func TestFromObjectsValues(t *testing.T) {
	data := func(text string) json.RawMessage {
		return json.RawMessage(`{"data":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"}`)
	}
	for name, c := range map[string]struct {
		objects []json.RawMessage
		want    string
	}{
		"encoded": {[]json.RawMessage{data(csv)}, ""},
		"plain":   {[]json.RawMessage{json.RawMessage(csv)}, ""},
		"a Secret": {[]json.RawMessage{json.RawMessage(csv), json.RawMessage(`{"kind":"Secret","data":{"a":"b"}}`)},
			""},
		"none":     {nil, `no ClusterServiceVersion found in "manifests"`},
		"a number": {[]json.RawMessage{json.RawMessage("1")}, "olm.bundle.object: json: cannot unmarshal"},
		"no base64": {[]json.RawMessage{json.RawMessage(`{"data":"?"}`)},
			"olm.bundle.object: invalid: illegal base64 data at input byte 0"},
	} {
		_, err := manifests.FromObjects("p", c.objects, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Properties of the catalog that the annotation lacks are those of metadata/properties.yaml.
func TestFromObjectsProperties(t *testing.T) {
	b, err := manifests.FromObjects("demo", []json.RawMessage{json.RawMessage(strings.Replace(csv,
		`"name":"demo.v1"`, `"name":"demo.v1","annotations":{"olm.properties":"[{\"type\":\"a\",\"value\":1}]"}`, 1))},
		[]declcfg.Property{{Type: "olm.gvk", Value: []byte("{}")}, {Type: "a", Value: []byte(" 1")},
			{Type: "b", Value: []byte("2")}})
	if err != nil {
		t.Fatal(err)
	}
	if got := manifests.PropertiesOf(b); got != `[{"type":"a","value":1},{"type":"b","value":2}]` {
		t.Error(got)
	}
}
