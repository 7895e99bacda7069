package declcfg_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// A lazy reader passes on the same objects as Bundle.Objects, and the same error as a reader that is not lazy.
func TestReaderHandsOverManifests(t *testing.T) {
	property := func(object string) string { return string(declcfg.NewBundleObject([]byte(object)).Value) }
	csv, yaml := property(`{"kind":"ClusterServiceVersion","a":1}`), property("kind: ConfigMap\nb: 2\n")
	for name, values := range map[string][]string{
		"none":             {},
		"one":              {csv},
		"the first counts": {yaml, csv, csv},
		"no data":          {`{"ref":"file"}`, csv},
		"no base64":        {csv, `{"data":"%"}`},
		"no manifest":      {csv, property("a: [\n")},
		"no object":        {`{"data":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			var properties []string
			for _, v := range values {
				properties = append(properties, `{"type":"olm.bundle.object","value":`+v+`}`)
			}
			text := "\n\n" + `{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[` +
				strings.Join(properties, ",") + `]}`
			read := func(lazy bool) (*declcfg.Reader, *declcfg.Bundle, error) {
				r := declcfg.NewReader(declcfg.LoadOptions{Lazy: lazy})
				r.Reset(strings.NewReader(text), "file")
				b, err := r.Next()
				bundle, _ := b.(*declcfg.Bundle)
				return r, bundle, err
			}
			_, whole, want := read(false)
			r, b, err := read(true)
			if err != nil {
				t.Fatal(err)
			}
			var objects []string
			at := -1
			err = r.Manifests(b, func(object []byte, csv bool) {
				if csv && at < 0 {
					at = len(objects)
				} else if csv {
					t.Error("two are called the ClusterServiceVersion")
				}
				objects = append(objects, string(object))
			})
			if want != nil || err != nil {
				if want == nil || err == nil || want.Error() != err.Error() {
					t.Errorf("got %v, want %v", err, want)
				}
				return
			}
			all, err := whole.Objects()
			if err != nil {
				t.Fatal(err)
			}
			var wanted []string
			for _, o := range all {
				wanted = append(wanted, string(o))
			}
			one, err := whole.CSV()
			if err != nil || !slices.Equal(objects, wanted) || (one == nil) != (at < 0) ||
				at >= 0 && objects[at] != string(one) {
				t.Errorf("got %q, the %d. is the ClusterServiceVersion; want %q and %s (%v)", objects, at, wanted, one,
					err)
			}
		})
	}
}

// A reader of what was checked before skips manifests; a skeleton says all the same that there were some.
func TestReaderOfChecked(t *testing.T) {
	text := `{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[{"type":"olm.bundle.object","value":{"data":"%"}}]}`
	for _, checked := range []bool{false, true} {
		r := declcfg.NewReader(declcfg.LoadOptions{Skeleton: true, Checked: checked})
		r.Reset(strings.NewReader(text), "file")
		blob, err := r.Next()
		if !checked {
			if err == nil {
				t.Error("a manifest that cannot be read is no error")
			}
			continue
		}
		if b, ok := blob.(*declcfg.Bundle); err != nil || !ok || !b.HasObjects {
			t.Errorf("checked: %+v, %v", blob, err)
		}
	}
}
