package opmcache

// sampleA is a package with everything that a cache can contain, including numbers that opm rounds.
const sampleA = `---
schema: olm.package
name: a
defaultChannel: stable
description: About <a>.
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
- {type: example.number, value: {large: 12345678901234567890, one: 1.0, small: 1.50}}
- {type: olm.bundle.object, value: {data: eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIiwibWV0YWRhdGEiOnsibmFtZSI6ImEudjEuMC4wIn19}}
---
schema: olm.bundle
package: a
name: a.v1.1.0
image: example.test/a:v1.1.0
properties:
- {type: olm.package, value: {packageName: a, version: 1.1.0}}
- {type: olm.package.required, value: {packageName: b, versionRange: ">=1.0.0"}}
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
number: 1.50
---
schema: example.notes
package: a
name: one
text: first
`

// sampleDash sorts before or after package a, depending on the rule.
const sampleDash = `---
{schema: olm.package, name: a-b, defaultChannel: only}
---
{schema: olm.channel, package: a-b, name: only, entries: [{name: a-b.v1.0.0}]}
---
{schema: olm.bundle, package: a-b, name: a-b.v1.0.0, image: example.test/b:v1, properties: [{type: olm.package, value: {packageName: a-b, version: 1.0.0}}]}
`

// sampleNone are blobs of no package.
const sampleNone = `---
{schema: example.all, name: x, number: 0.10}
`

func samples() []Package {
	none := textPackage("", sampleNone)
	none.Files[0].Name = configsDir + "/general.yaml"
	return []Package{textPackage("a", sampleA), textPackage("a-b", sampleDash), none}
}
