package web

import (
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

// sampleA and sampleB are a catalog with everything that pages show, in files that are not in the catalog's order.
const sampleB = `---
schema: olm.bundle
package: beta
name: beta.v1.0.0
image: example.test/beta@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
properties:
- {type: olm.package, value: {packageName: beta, version: 1.0.0}}
---
schema: olm.package
name: beta
defaultChannel: stable
---
schema: olm.channel
package: beta
name: stable
entries: [{name: beta.v1.0.0}]
---
schema: custom.none
name: alone
value: 1
`

const sampleA = `---
schema: olm.package
name: alpha
defaultChannel: stable
description: |
  # Alpha
  It does <b>things</b>.
icon: {base64data: iVBORw0KGgo=, mediatype: image/png}
---
schema: olm.channel
package: alpha
name: stable
entries:
- {name: alpha.v1.0.0}
- {name: alpha.v1.1.0, replaces: alpha.v1.0.0, skips: [alpha.v1.0.1], skipRange: ">=1.0.0 <1.1.0"}
---
schema: olm.channel
package: alpha
name: old
entries: [{name: alpha.v1.0.0}]
---
schema: olm.bundle
package: alpha
name: alpha.v1.0.0
image: example.test/alpha:v1.0.0
properties:
- {type: olm.package, value: {packageName: alpha, version: 1.0.0}}
- {type: olm.bundle.object, value: {data: eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIiwibWV0YWRhdGEiOnsibmFtZSI6ImFscGhhLnYxLjAuMCIsImFubm90YXRpb25zIjp7ImNhdGVnb3JpZXMiOiJTdG9yYWdlIn19LCJzcGVjIjp7ImRpc3BsYXlOYW1lIjoiQWxwaGEgT25lIn19}}
---
schema: olm.bundle
package: alpha
name: alpha.v1.1.0
image: example.test/alpha:v1.1.0
relatedImages:
- {name: operator, image: example.test/operator:v1}
- {name: "", image: example.test/alpha:v1.1.0}
properties:
- {type: olm.package, value: {packageName: alpha, version: 1.1.0}}
- {type: olm.gvk, value: {group: alpha.test, kind: Alpha, version: v1}}
- {type: olm.gvk.required, value: {group: beta.test, kind: Beta, version: v1}}
- {type: olm.package.required, value: {packageName: beta, versionRange: ">=1.0.0"}}
- {type: olm.package.required, value: {packageName: gamma, versionRange: "*"}}
- {type: olm.constraint, value: {failureMessage: needs, all: {constraints: []}}}
- {type: olm.csv.metadata, value: {displayName: Alpha Operator, description: Whole description., keywords: [storage], provider: {name: Someone}, links: [{name: Home, url: "https://alpha.test/"}, {name: Bad, url: "javascript:alert(1)"}], maintainers: [{name: M, email: m@alpha.test}], installModes: [{type: AllNamespaces, supported: true}, {type: OwnNamespace, supported: false}], crdDescriptions: {owned: [{name: alphas.alpha.test, version: v1, kind: Alpha, description: An alpha.}]}, apiServiceDefinitions: {}}}
---
schema: olm.deprecations
package: alpha
entries:
- {reference: {schema: olm.package}, message: alpha goes}
- {reference: {schema: olm.channel, name: old}, message: old goes}
- {reference: {schema: olm.bundle, name: alpha.v1.0.0}, message: one goes}
---
schema: custom.thing
package: alpha
name: thing
value: [1, 2]
`

func sampleFS() fstest.MapFS {
	return fstest.MapFS{"1.yaml": {Data: []byte(sampleB)}, "2.yaml": {Data: []byte(sampleA)}}
}

// contentOf returns the content of a catalog in files. The test closes it.
func contentOf(t testing.TB, fsys fs.FS) *Content {
	t.Helper()
	w, err := NewWriter(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := declcfg.Walk(t.Context(), fsys, declcfg.LoadOptions{},
		func(m *declcfg.Meta) error { return w.Add(m) }); err != nil {
		t.Fatal(err)
	}
	c, err := w.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// siteOf serves content.
func siteOf(t testing.TB, c *Content) *httptest.Server {
	t.Helper()
	s := NewSite("example.test/catalog:v1", nil)
	s.SetContent(c)
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.Close(); s.Close() })
	return server
}

// answer is an unprocessed response.
type answer struct {
	code   int
	header http.Header
	body   string
}

// ask makes a request; nothing is decompressed and no redirect followed. headers are pairs.
func ask(t testing.TB, method, url string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	if r.Header.Get("Accept-Encoding") == "" {
		r.Header.Set("Accept-Encoding", "identity")
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

func get(t testing.TB, url string, headers ...string) answer {
	t.Helper()
	return ask(t, http.MethodGet, url, headers...)
}

// blobsOf returns the blobs of JSON lines in their order.
func blobsOf(t testing.TB, body string) []*declcfg.Meta {
	t.Helper()
	r := declcfg.NewReader(declcfg.LoadOptions{})
	r.Reset(strings.NewReader(body), "answer")
	var out []*declcfg.Meta
	for {
		m, err := r.NextMeta()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
}
