package declcfg_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

// With the option, blobs without a schema are read as catalogd stores them; without it they are opm's error.
func TestSchemaless(t *testing.T) {
	fsys := fstest.MapFS{"a.json": {Data: []byte(`{"schema":"olm.package","name":"a"}{"package":"a","x":1.0}{"y":2}`)},
		"b.yaml": {Data: []byte("# nothing\n")}}
	for _, schemaless := range []bool{false, true} {
		var got []string
		var failed error
		for b, err := range declcfg.Stream(t.Context(), fsys, declcfg.LoadOptions{Schemaless: schemaless}, nil) {
			if err != nil {
				failed = err
				break
			}
			got = append(got, b.BlobSchema()+"/"+b.BlobPackage())
		}
		slices.Sort(got)
		if schemaless && (failed != nil || !slices.Equal(got, []string{"/", "/a", "olm.package/a"})) {
			t.Errorf("%q, %v", got, failed)
		}
		if !schemaless && failed == nil {
			t.Errorf("%q", got)
		}
	}
}
