package declcfg_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

// A catalog that can be loaded can be written and loaded again with the same result; and validating the skeleton gives
// the same result as validating the whole.
func FuzzLoad(f *testing.F) {
	seeds, err := filepath.Glob("../testdata/oracle/fbc-cases/*/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range seeds {
		if data, err := os.ReadFile(name); err == nil && len(data) < 8<<10 {
			f.Add(data)
		}
	}
	f.Add(
		[]byte(
			"schema: olm.package\nname: foo\ndefaultChannel: y\nicon: {base64data: aGVsbG8=, mediatype: " +
				"x}\n---\nschema: olm.channel\nname: on\npackage: foo\nentries: [{name: b, skips: [a], skipRange: " +
				"'>1.0.0'}]\n"))
	f.Add(
		[]byte(
			`{"Schema":"olm.bundle","NAME":"b","package":"p","properties":[{"type":"olm.bundle.object","value":{"data":"e30="}}],"x":1.0}`))
	f.Add(
		[]byte(
			`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle","name":"b"},"message":"m"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fsys := fstest.MapFS{"catalog": {Data: data}}
		ctx := context.Background()
		c, err := declcfg.Load(ctx, fsys, declcfg.LoadOptions{})
		skeleton, skeletonErr := declcfg.Load(ctx, fsys, declcfg.LoadOptions{Skeleton: true})
		if text(err) != text(skeletonErr) {
			t.Fatalf("load: %v\nskeleton: %v", err, skeletonErr)
		}
		if err != nil {
			return
		}
		if whole, reduced := text(c.Validate()), text(skeleton.Validate()); whole != reduced {
			t.Fatalf("validation: %v\nof the skeleton: %v", whole, reduced)
		}
		var first bytes.Buffer
		if err := c.Write(&first, declcfg.FormatJSON); err != nil {
			t.Fatal(err)
		}
		for _, format := range []declcfg.Format{declcfg.FormatJSON, declcfg.FormatYAML} {
			var written bytes.Buffer
			if err := c.Write(&written, format); err != nil {
				t.Fatal(err)
			}
			again, err := declcfg.Read(ctx, &written, "written", declcfg.LoadOptions{})
			if err != nil {
				t.Fatalf("written %s does not load: %v\n%s", format, err, first.Bytes())
			}
			var second bytes.Buffer
			if err := again.Write(&second, declcfg.FormatJSON); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Fatalf("by way of %s:\n%s\nbecame\n%s", format, first.Bytes(), second.Bytes())
			}
		}
	})
}
