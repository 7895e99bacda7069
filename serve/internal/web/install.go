package web

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/olmv1"
)

// The placeholders of the catalog in manifests that install a package: what serves a catalog does not know under which
// names a cluster has it.
const (
	placeholderSource    = "my-catalog"
	placeholderNamespace = "olm"
)

// manifests are what one applies to install a package.
type manifests struct {
	v0, v1 string
	mode   string // the install mode of v0
}

// plainScalar are the strings that are the same in YAML without quotes.
var plainScalar = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/-]*$`)

// wordsOfYAML are those that YAML 1.1 does not read as strings.
var wordsOfYAML = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

func scalar(s string) string {
	if plainScalar.MatchString(s) && !slices.Contains(wordsOfYAML, strings.ToLower(s)) {
		return s
	}
	return strconv.Quote(strings.ToValidUTF8(s, "\uFFFD")) // all of Go's escapes are YAML's
}

// objectName returns a name that Kubernetes takes for an object.
func objectName(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
		if b.Len() == 50 {
			break
		}
	}
	if name := strings.Trim(b.String(), "-"); name != "" {
		return name
	}
	return "operator"
}

// namespaceOf returns the namespace that a bundle suggests, or one named after the package.
func namespaceOf(pkg string, f *csv) string {
	for _, key := range []string{"operatorframework.io/suggested-namespace", "olm.suggested-namespace"} {
		if suggested := strings.TrimSpace(f.Annotations[key]); suggested != "" && suggested == objectName(suggested) {
			return suggested
		}
	}
	return objectName(pkg)
}

// install returns the manifests that install the newest bundle of a channel. Without known install modes it takes
// AllNamespaces, which OLM v1 expects too.
func install(pkg, channel string, f *csv) manifests {
	modes := f.modes()
	all := len(modes) == 0 || slices.Contains(modes, "AllNamespaces")
	namespace := namespaceOf(pkg, f)
	mode, groupSpec := "AllNamespaces", "spec: {} # all namespaces\n"
	switch {
	case all:
	case slices.Contains(modes, "OwnNamespace"):
		mode, groupSpec = "OwnNamespace", "spec:\n  targetNamespaces:\n  - "+scalar(namespace)+"\n"
	default:
		mode, groupSpec = "SingleNamespace",
			"spec:\n  targetNamespaces:\n  - default # the namespace that the operator is for\n"
	}
	channels := ""
	if channel != "" && olmv1.Channels([]string{channel}) == nil {
		channels = "      channels:\n      - " + scalar(channel) + "\n"
	}
	fill := strings.NewReplacer("{namespace}", scalar(namespace), "{object}", scalar(objectName(pkg)), "{package}", scalar(pkg),
		"{channel}", scalar(channel), "{groupSpec}", groupSpec, "{account}", scalar(objectName(pkg)+"-installer"), "{channels}",
		channels)
	return manifests{fill.Replace(v0Manifests), fill.Replace(v1Manifests), mode}
}

const v0Manifests = `apiVersion: v1
kind: Namespace
metadata:
  name: {namespace}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: {object}
  namespace: {namespace}
{groupSpec}---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: {object}
  namespace: {namespace}
spec:
  name: {package}
  channel: {channel}
  source: ` + placeholderSource + `
  sourceNamespace: ` + placeholderNamespace + `
`

const v1Manifests = `apiVersion: v1
kind: Namespace
metadata:
  name: {namespace}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {account}
  namespace: {namespace}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata:
  name: {object}
spec:
  namespace: {namespace}
  serviceAccount:
    name: {account}
  source:
    sourceType: Catalog
    catalog:
      packageName: {package}
{channels}      selector:
        matchLabels:
          olm.operatorframework.io/metadata.name: ` + placeholderSource + `
`

// installSection shows how a package is installed.
func (p *page) installSection(v *view, f *csv) {
	m := install(v.summary.name, v.pkg.DefaultChannel, f)
	modes := f.modes()
	p.emit(`<section aria-labelledby="install"><h2 id="install">Install</h2>
<p class="own">Replace <code>my-catalog</code> by the name that this catalog has in your cluster, and apply the manifests with
<code>kubectl apply -f</code>.</p>
<details open><summary>OLM v0: Subscription</summary>
<p class="own"><code>source</code> and <code>sourceNamespace</code> are the name and the namespace of the CatalogSource that serves
this catalog; on OpenShift the namespace is <code>openshift-marketplace</code>.`)
	p.emit(` The OperatorGroup is for the install mode {}.`, m.mode)
	if len(modes) == 0 || slices.Contains(modes, "AllNamespaces") {
		p.emit(` Where a namespace has such an OperatorGroup already, as <code>operators</code> or
<code>openshift-operators</code>, the Subscription in it is enough.`)
	}
	p.emit(`</p>`)
	p.snippet("Subscription", "Manifests with a Subscription", m.v0)
	p.emit(`</details>
<details><summary>OLM v1: ClusterExtension</summary>
<p>The label selects the ClusterCatalog of this name. The ServiceAccount needs the rights to create all objects of the
bundle: bind it to a ClusterRole that has them.`)
	if len(modes) > 0 && !slices.Contains(modes, "AllNamespaces") {
		p.emit(` The bundle does not support AllNamespaces, which OLM v1 expects by default.`)
	}
	if channel := v.pkg.DefaultChannel; channel != "" && olmv1.Channels([]string{channel}) != nil {
		p.emit(` A ClusterExtension cannot name the channel <code>{}</code>, which is no DNS subdomain: without
<code>channels</code> all bundles of the package are candidates.`, name(channel))
	}
	p.emit(`</p>`)
	p.snippet("ClusterExtension", "Manifests with a ClusterExtension", m.v1)
	p.emit("</details></section>\n")
}

// snippet shows manifests; the page's script adds a button that copies them.
func (p *page) snippet(label, describes, text string) {
	p.emit(`<div class="snippet" data-copy="{}"><pre tabindex="0" role="group" aria-label="{}"><code>{}</code></pre></div>`+
		"\n", label, describes, text)
}
