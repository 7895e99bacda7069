package bundlecheck

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// v1Fields are the fields of a CustomResourceDefinition that apiextensions.k8s.io/v1 has elsewhere than v1beta1 and the
// internal form, which the API server's validator names. Of fields that are the same in all versions the internal form
// has one.
var v1Fields = []struct{ beta, v1 string }{
	{"spec.conversion.webhookClientConfig", "spec.conversion.webhook.clientConfig"},
	{"spec.conversion.conversionReviewVersions", "spec.conversion.webhook.conversionReviewVersions"},
	{"spec.validation", "spec.versions[0].schema"},
	{"spec.subresources", "spec.versions[0].subresources"},
	{"spec.additionalPrinterColumns", "spec.versions[0].additionalPrinterColumns"},
	{"spec.selectableFields", "spec.versions[0].selectableFields"},
	{"spec.version", "spec.versions[0].name"},
}

// v1Field returns the field of v1 for one of the internal form.
func v1Field(name string) string {
	for _, f := range v1Fields {
		if rest, ok := strings.CutPrefix(name, f.beta); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			name = f.v1 + rest
			break
		}
	}
	if column, ok := strings.CutSuffix(name, ".JSONPath"); ok {
		return column + ".jsonPath"
	}
	return name
}

// obsolete is a field of v1beta1 in a definition of v1, where it means nothing.
type obsolete struct {
	path []any
	v1   string
}

// obsoleteFields returns those of a definition of v1.
func obsoleteFields(o object) (out []obsolete) {
	add := func(path []any, v1 string) {
		if valueAt(o.JSON, path) != nil {
			out = append(out, obsolete{path, v1})
		}
	}
	for _, f := range v1Fields {
		// spec.version harms nothing beside spec.versions, and selectableFields are younger than v1beta1.
		if f.beta != "spec.version" && f.beta != "spec.selectableFields" {
			add(bundlefs.FieldPath(f.beta), f.v1)
		}
	}
	for i, v := range o.crd.Spec.Versions {
		for n := range v.AdditionalPrinterColumns {
			column := []any{"spec", "versions", i, "additionalPrinterColumns", n}
			add(slices.Concat(column, []any{"JSONPath"}), canon.PathName(column)+".jsonPath")
		}
	}
	return out
}

// valueAt returns the value at a path in JSON; nil if there is none.
func valueAt(value []byte, path []any) []byte {
	for _, step := range path {
		if value == nil {
			return nil
		}
		switch step := step.(type) {
		case string:
			value = jsonscan.Member(value, step)
		case int:
			found, i := []byte(nil), 0
			jsonscan.Elements(value, func(v []byte) bool {
				if i == step {
					found = v
				}
				i++
				return found == nil
			})
			value = found
		}
	}
	return value
}

// definitionError returns the finding of an error of the API server's validator, with the field that the file has. Of
// the obsolete fields, those that an error is about are removed.
func definitionError(o object, e *field.Error, old *[]obsolete) finding {
	f := finding{Problem: bundle.Problem{Severity: bundle.SeverityError, Rule: "crd/" + ruleName(string(e.Type)),
		Field: e.Field, Message: errorText(e)}}
	v1 := v1Field(e.Field)
	if o.crdBeta != nil {
		if v1 != e.Field {
			f.Message += fmt.Sprintf("; write it as %s of %s", v1, crdVersion)
		}
		f.place = placeIn(o.Object, bundlefs.FieldPath(e.Field)...)
		return f
	}
	f.Field, f.place = v1, placeIn(o.Object, bundlefs.FieldPath(v1)...)
	for i, was := range *old {
		if v1 == was.v1 || strings.HasPrefix(v1, was.v1+".") || strings.HasPrefix(v1, was.v1+"[") {
			f.Message += "; " + canon.PathName(was.path) + " is " + was.text()
			f.place = placeIn(o.Object, was.path...)
			*old = slices.Delete(*old, i, i+1)
			break
		}
	}
	return f
}

func (o obsolete) text() string {
	return fmt.Sprintf("a field of v1beta1 that means nothing in %s: write %s", crdVersion, o.v1)
}

// errorText returns the text of an error without its field, and without a value that is an object of the internal form.
func errorText(e *field.Error) string {
	kind := reflect.Indirect(reflect.ValueOf(e.BadValue)).Kind()
	if e.Detail != "" && (kind == reflect.Struct || kind == reflect.Map || kind == reflect.Slice) {
		return e.Type.String() + ": " + e.Detail
	}
	return e.ErrorBody()
}
