package bundlecheck

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-bindery/bindery/check/internal/apiserver"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// The ids of what an API server refuses.
const (
	idAPIVersion = "api-version"
	idAPIInvalid = "api-invalid"
	idBeta       = "crd-v1beta1"
	idTwice      = "object-twice"
)

// APIs are those of the version of Kubernetes for which bundles are checked. One value remembers the definitions that
// have been validated, as the bundles of a package share them. It is safe for concurrent use.
type APIs struct {
	version apiserver.Version

	mu          sync.Mutex
	definitions map[[sha256.Size]byte]verdict
}

// verdict is the API server's answer about a definition.
type verdict struct {
	errors []fieldError
	// unknown is the reason why the definition could not be judged.
	unknown string
}

// fieldError is an error of the API server: the path of a field as it writes it, and its message.
type fieldError struct{ field, message string }

// NewAPIs returns the APIs of a version of Kubernetes, such as 1.36; if it is empty, of the one that [APIs.Version]
// returns then.
func NewAPIs(version string) (*APIs, error) {
	a := &APIs{version: apiserver.Current, definitions: map[[sha256.Size]byte]verdict{}}
	if version == "" {
		return a, nil
	}
	var err error
	a.version, err = apiserver.ParseVersion(version)
	return a, err
}

// Version returns the version of Kubernetes, as 1.36.
func (a *APIs) Version() string { return a.version.String() }

// apiProblem is why an API server refuses an object of a bundle.
type apiProblem struct {
	manifests.Problem
	path     []any  // in the object, or in the ClusterServiceVersion
	at       string // the field of the object in the words of the API server
	fix      string
	severity rules.Severity
}

// maxAPIProblems limits those of one object, maxAPIMessage the bytes of each.
const maxAPIProblems, maxAPIMessage = 20, 1000

// problems returns why a cluster does not install a bundle: what OLM v1 refuses, and then what an API server refuses of
// its objects, but no two for one mistake.
func (a *APIs) problems(ctx context.Context, b *manifests.Bundle, s manifests.Settings) (out []apiProblem) {
	for _, p := range b.Problems(s) {
		out = append(out, apiProblem{Problem: p, path: refusalPaths[p.ID]})
	}
	unrendered := slices.ContainsFunc(out, func(p apiProblem) bool { return p.ID == manifests.IDRender })
	own, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	applied := b.Applied(s)
	for _, o := range applied {
		if ctx.Err() != nil {
			return nil
		}
		if !manifests.Supported(o.Kind, o.Path != nil) {
			continue // OLM v1 refuses it
		}
		found := slices.DeleteFunc(a.ofObject(own, o), func(p apiProblem) bool {
			return unrendered && p.at == "spec.preserveUnknownFields"
		})
		out = append(out, found[:min(len(found), maxAPIProblems)]...)
	}
	return append(out, findRepeated(applied)...)
}

// findRepeated returns the objects that are there twice. Helm has a file for each object of a chart, which its hash
// names, so that of equal ones there is one. It cannot create the others, but after that failure it updates them, in
// the order of the hashes. Boxcutter refuses both.
func findRepeated(applied []manifests.Applied) (out []apiProblem) {
	objects := make([]manifests.Object, len(applied))
	for i, o := range applied {
		objects[i] = o.Object
	}
	repeated := manifests.Repeated(objects)
	for _, i := range slices.Sorted(maps.Keys(repeated)) {
		first, o := applied[repeated[i]], applied[i]
		if o.Kind == kindCRD {
			continue // a validator of OLM v1 refuses it
		}
		from, helm := "", "one over the other"
		if o.File != first.File {
			from = ", in " + first.File + " too"
		}
		if bytes.Equal(first.JSON, o.JSON) && (first.Path == nil) == (o.Path == nil) {
			helm = "one of them"
		}
		out = append(out, problemOf(o, idTwice, sourcePath(o, nil), rules.Warning, "", "%s %q is there twice%s: "+
			"the runtime Helm applies %s, Boxcutter says: duplicate object found in phases: %s", o.Kind, o.Name, from, helm,
			manifests.Phases([]manifests.Object{o.Object})[0].Name))
	}
	return out[:min(len(out), maxAPIProblems)]
}

// problemOf returns a problem with an object, or with what it is generated from.
func problemOf(o manifests.Applied, id string, path []any, severity rules.Severity, fix, format string, args ...any) apiProblem {
	kind, name := o.Kind, o.Name
	if o.Path != nil {
		kind, name = kindCSV, ""
	}
	return apiProblem{manifests.Problem{ID: id, File: o.File, Object: strings.TrimSpace(kind + " " + name),
		Message: fmt.Sprintf(format, args...)}, path, "", fix, severity}
}

func (a *APIs) ofObject(ctx context.Context, o manifests.Applied) (out []apiProblem) {
	problem := func(id string, path []any, severity rules.Severity, fix, format string, args ...any) apiProblem {
		return problemOf(o, id, path, severity, fix, format, args...)
	}
	why, instead := apiserver.Served(o.APIVersion, o.Kind, a.version)
	if o.Kind == kindCRD {
		beta := o.APIVersion == crdVersionV1beta1
		v := a.definition(ctx, o.Object)
		switch {
		case beta && why == "":
			return append(out, problem(idBeta, []any{"apiVersion"}, rules.Warning, "",
				"CustomResourceDefinition %q is of the version v1beta1, whose schema OLM v1 drops", o.Name))
		case beta:
			boxcutter := "the runtime Boxcutter applies it as v1 without the fields of v1beta1"
			if len(v.errors) > 0 {
				boxcutter = "the runtime Boxcutter applies it as v1: " + v.errors[0].message
			}
			return append(out, problem(idBeta, []any{"apiVersion"}, rules.Error, "", "%s (the runtime Helm); %s", why,
				boxcutter))
		case why == "":
			for _, e := range v.errors {
				out = append(out, problem(idAPIInvalid, bundlefs.FieldPath(v1Field(e.field)), rules.Error, "", "%s",
					e.message))
				out[len(out)-1].at = e.field
			}
			if v.unknown != "" {
				out = append(out, problem(idAPIInvalid, nil, rules.Warning, "", "CustomResourceDefinition %q: %s", o.Name,
					v.unknown))
			}
			return out
		}
	}
	if why != "" {
		fix := "use a cluster that serves it"
		if instead != "" {
			fix = "write " + instead
		}
		return append(out, problem(idAPIVersion, sourcePath(o, []any{"apiVersion"}), rules.Error, fix, "%s", why))
	}
	found := apiserver.Validate(o.APIVersion, o.Kind, o.JSON, a.version)
	if found.Unknown != "" {
		return append(out, problem(idAPIInvalid, sourcePath(o, nil), rules.Warning, "", "%s %q: %s", o.Kind, o.Name,
			found.Unknown))
	}
	if found.Decode != nil {
		path, text := bundlefs.TypeProblem(o.JSON, found.Decode)
		if len(path) > 0 {
			text = canon.PathName(path) + ": " + text
		}
		return append(out, problem(idAPIInvalid, sourcePath(o, path), rules.Error, "",
			"%s in version %q cannot be handled as a %s: %s", o.Kind, o.APIVersion, o.Kind, text))
	}
	for _, e := range found.Fields {
		out = append(out, problem(idAPIInvalid, sourcePath(o, bundlefs.FieldPath(e.Field)), rules.Error, "", "%s",
			clipRefusal(o.Object, e)))
		out[len(out)-1].at = e.Field
	}
	return out
}

// sourcePath returns the place of a field: in the object, or as far as known in the ClusterServiceVersion.
func sourcePath(o manifests.Applied, path []any) []any {
	if o.Path == nil {
		return path
	}
	if o.Kind == "Deployment" && len(path) > 0 && path[0] == "spec" {
		return append(o.Path, path...)
	}
	return o.Path
}

// clipRefusal returns the words of the API server, as far as a finding holds them.
func clipRefusal(o manifests.Object, e *field.Error) string {
	kind := schema.GroupKind{Group: o.Group(), Kind: o.Kind}
	return fault.Clip(apierrors.NewInvalid(kind, o.Name, field.ErrorList{e}).Error(), maxAPIMessage)
}

// definitionTime is how long one definition is validated; those of a bundle have [defaultTimeout].
const definitionTime = 10 * time.Second

// definition validates a CustomResourceDefinition as the API server does when it is created. Identical ones are
// validated once.
func (a *APIs) definition(ctx context.Context, o manifests.Object) verdict {
	key := sha256.Sum256(o.JSON)
	a.mu.Lock()
	v, ok := a.definitions[key]
	a.mu.Unlock()
	if ok {
		return v
	}
	v = validateDefinition(ctx, o)
	if ctx.Err() == nil {
		a.mu.Lock()
		a.definitions[key] = v
		a.mu.Unlock()
	}
	return v
}

func validateDefinition(ctx context.Context, o manifests.Object) verdict {
	if len(o.JSON) > maxObject || bytes.Count(o.JSON, []byte("{")) > maxDefinitionNodes {
		return verdict{unknown: "the definition is too large to be validated"}
	}
	ctx, cancel := context.WithTimeout(ctx, definitionTime)
	defer cancel()
	done := make(chan verdict, 1)
	go func() { // the library takes no context, and does not expect hostile input
		v := verdict{}
		defer func() {
			if p := recover(); p != nil {
				v = verdict{unknown: fmt.Sprintf("its validation failed: %v", p)}
			}
			done <- v
		}()
		typed := &crdv1.CustomResourceDefinition{}
		if json.Unmarshal(o.JSON, typed) != nil {
			return // reading found it
		}
		in, err := internalDefinition(object{crd: typed})
		if err != nil {
			return
		}
		boundRules(in)
		for _, e := range crdvalidation.ValidateCustomResourceDefinition(ctx, in) {
			if e.Field != "status" && !strings.HasPrefix(e.Field, "status.") && len(v.errors) < maxAPIProblems {
				v.errors = append(v.errors, fieldError{fault.Clip(e.Field, maxAPIMessage), clipRefusal(o, e)})
			}
		}
	}()
	select {
	case v := <-done:
		return v
	case <-ctx.Done():
		return verdict{unknown: "its validation takes too long"}
	}
}
