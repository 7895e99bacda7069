package bundle

import (
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// apis determines the APIs that the bundle provides: those of the CRDs in its manifests, which may be more than the
// ClusterServiceVersion owns, and the API services that it owns. A missing owned CRD is fatal.
func (r *reader) apis() {
	b := r.b
	for i := range b.Objects {
		if o := &b.Objects[i]; o.First() && o.Kind == kindCRD {
			r.crd(o)
		}
	}
	for _, api := range b.CSV.Owned[b.CSV.ownedCRDs:] {
		r.provide(api)
	}
	owned := bundlefs.Place{File: b.CSV.File, Line: b.CSV.Line,
		Path: []any{"spec", "customresourcedefinitions", "owned"}}
	for _, api := range b.CSV.Owned[:b.CSV.ownedCRDs] {
		if !r.provided[api] {
			r.fatal(r.problem(RuleCRD, owned, fmt.Sprintf("couldn't find %s in bundle. found: %s; add the CRD's manifest",
				api, names(b.provided))))
		}
	}
}

// provide adds an API that the bundle provides.
func (r *reader) provide(api API) {
	if r.provided == nil {
		r.provided = map[API]bool{}
	}
	if !r.provided[api] {
		r.provided[api] = true
		r.b.provided = append(r.b.provided, api)
	}
}

// String formats the API as "plural.group/version (kind)".
func (a API) String() string {
	return fmt.Sprintf("%s.%s/%s (%s)", cut(a.Plural), cut(a.Group), cut(a.Version), cut(a.Kind))
}

func cut(s string) string {
	q := fault.Quote(s)
	return q[1 : len(q)-1]
}

func names(apis []API) string {
	const most = 20
	var out []string
	for _, a := range apis[:min(len(apis), most)] {
		out = append(out, a.String())
	}
	if len(apis) > most {
		out = append(out, fmt.Sprintf("and %d more", len(apis)-most))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// crd adds the APIs of a CustomResourceDefinition without reading its schemas.
func (r *reader) crd(o *Object) {
	if o.APIVersion != "apiextensions.k8s.io/v1" && o.APIVersion != "apiextensions.k8s.io/v1beta1" {
		at := bundlefs.Place{File: o.File, Line: o.Line, Path: []any{"apiVersion"}}
		r.addProblem(r.problem(RuleCRD, at, fmt.Sprintf(
			"%s: a CustomResourceDefinition is of apiextensions.k8s.io/v1 or v1beta1", fault.Quote(o.APIVersion))))
	}
	_, version, found := strings.Cut(o.APIVersion, "/")
	if !found || version != "v1" && version != "v1beta1" {
		return
	}
	var api API
	var versions []string
	jsonscan.Members(jsonscan.Member(o.JSON, "spec"), func(key, value []byte) bool {
		switch string(key) {
		case "group":
			api.Group, _ = jsonscan.Text(value)
		case "names":
			api.Kind, api.Plural = jsonscan.TextAt(value, "kind"), jsonscan.TextAt(value, "plural")
		case "version":
			if v, _ := jsonscan.Text(value); v != "" && version == "v1beta1" {
				versions = append(versions, v)
			}
		case "versions":
			jsonscan.Elements(value, func(v []byte) bool {
				versions = append(versions, jsonscan.TextAt(v, "name"))
				return true
			})
		}
		return true
	})
	for _, v := range versions {
		api.Version = v
		r.provide(api)
	}
}
