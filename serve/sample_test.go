package serve

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// sampleA is a package with everything that a cache file can contain.
const sampleA = `---
schema: olm.package
name: a
defaultChannel: stable
description: About a.
icon: {base64data: iVBORw0KGgo=, mediatype: image/png}
---
schema: olm.channel
package: a
name: stable
entries:
- {name: a.v1.0.0}
- {name: a.v1.1.0, replaces: a.v1.0.0, skips: [a.v1.0.1, a.v1.0.0], skipRange: ">=1.0.0 <1.1.0"}
---
schema: olm.channel
package: a
name: beta
entries:
- {name: a.v1.1.0, skips: [a.v1.0.1]}
---
schema: olm.bundle
package: a
name: a.v1.0.0
image: example.test/a:v1.0.0
properties:
- {type: olm.package, value: {packageName: a, version: 1.0.0}}
- {type: olm.gvk, value: {group: a.test, kind: A, version: v1}}
- {type: olm.bundle.object, value: {data: eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIiwibWV0YWRhdGEiOnsibmFtZSI6ImEudjEuMC4wIn19}}
---
schema: olm.bundle
package: a
name: a.v1.1.0
image: example.test/a:v1.1.0
properties:
- {type: olm.package, value: {packageName: a, version: 1.1.0}}
- {type: olm.gvk, value: {group: a.test, kind: A, version: v1}}
- {type: olm.gvk, value: {group: a.test, kind: A, version: v2}}
- {type: olm.package.required, value: {packageName: b, versionRange: ">=1.0.0"}}
- {type: olm.gvk.required, value: {group: b.test, kind: B, version: v1}}
- {type: olm.csv.metadata, value: {annotations: {x: "<y>"}, displayName: A, crdDescriptions: {owned: [{name: as.a.test, version: v1, kind: A}]}, apiServiceDefinitions: {}, provider: {name: Someone}}}
relatedImages:
- {name: operator, image: example.test/operator:v1}
---
schema: olm.deprecations
package: a
entries:
- {reference: {schema: olm.package}, message: a goes}
- {reference: {schema: olm.channel, name: beta}, message: beta goes}
- {reference: {schema: olm.bundle, name: a.v1.0.0}, message: v1.0.0 goes}
---
schema: example.notes
package: a
name: one
text: first
---
schema: example.notes
package: a
name: two
number: 1.5
`

// sampleB is a small package whose bundle has no image.
const sampleB = `---
schema: olm.package
name: b
defaultChannel: only
---
schema: olm.channel
package: b
name: only
entries:
- {name: b.v1.0.0}
---
schema: olm.bundle
package: b
name: b.v1.0.0
properties:
- {type: olm.package, value: {packageName: b, version: 1.0.0}}
- {type: olm.gvk, value: {group: b.test, kind: B, version: v1}}
- {type: olm.bundle.object, value: {data: eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIiwibWV0YWRhdGEiOnsibmFtZSI6ImIudjEuMC4wIn19}}
`

// sampleNone is a blob of no package.
const sampleNone = `---
schema: example.notes
name: free
text: of no package
`

func parse(t testing.TB, text string) *declcfg.Catalog {
	t.Helper()
	c, err := declcfg.Read(context.Background(), strings.NewReader(text), "catalog.yaml", declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encodeSample(t testing.TB, text string) []byte {
	t.Helper()
	file, err := EncodePackage(parse(t, text), nil,
		SourceFile{Name: "a/catalog.yaml", Size: int64(len(text)), Packages: 1})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func openBytes(b []byte) (*Package, error) { return OpenPackage(bytes.NewReader(b), int64(len(b))) }

// sampleServer serves the whole sample.
func sampleServer(t testing.TB, limits Limits) *server {
	t.Helper()
	s := newServer(limits, nil)
	s.SetStore(catalogStore(t, parse(t, sampleA+sampleB+sampleNone)))
	return s
}
