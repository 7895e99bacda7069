package bundlecheck

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	apierrors "github.com/operator-framework/api/pkg/validation/errors"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// definition validates a CustomResourceDefinition as the API server does. The library's validators do the same without
// the schema. Problems of the schema are warnings, as the API server reports them only later.
func (r *run) definition(o object) {
	in, err := internalDefinition(o)
	if err != nil {
		r.fail("crd/parse-error", placeIn(o.Object), "error converting crd: %v", err)
		return
	}
	if r.o.SDK {
		withoutSchemas(in)
	}
	if n := boundRules(in); n > maxDefinitionRules {
		r.addFinding(finding{place: placeIn(o.Object, "spec", "versions"),
			Problem: bundle.Problem{Severity: bundle.SeverityWarning, Rule: "crd-rules",
				Message: fmt.Sprintf("the definition has %d validation rules: the first %d are checked", n,
					maxDefinitionRules)}})
	}
	var old []obsolete
	if o.crd != nil {
		old = obsoleteFields(o)
	}
	for _, e := range crdvalidation.ValidateCustomResourceDefinition(r.ctx, in) {
		schema := strings.Contains(e.Field, "openAPIV3Schema")
		if e.Field == "status" || strings.HasPrefix(e.Field, "status.") || schema && o.crdBeta != nil {
			continue // the status is the cluster's business, and v1beta1 had other rules, where it was taken at all
		}
		f := definitionError(o, e, &old)
		f.opm = libraryOpm(apierrors.NewError(apierrors.ErrorType(e.Type), e.Error(), e.Field, e.BadValue), o)
		// opm does not look at errors of these fields.
		if schema || strings.Contains(e.Field, "status") {
			f.Severity, f.Message = bundle.SeverityWarning, "clusters refuse the definition: "+f.Message
		}
		if schema {
			f.Rule = "crd-schema"
		}
		r.addFinding(f)
	}
	for _, was := range old {
		r.warn("crd-v1beta1", placeIn(o.Object, was.path...), "%s", was.text())
	}
}

// withoutSchemas replaces the schemas of a definition by valid ones, which differ, as those of versions have to.
func withoutSchemas(in *apiextensions.CustomResourceDefinition) {
	schema := func(name string) *apiextensions.CustomResourceValidation {
		return &apiextensions.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object", Description: name}}
	}
	if in.Spec.Validation != nil {
		in.Spec.Validation = schema("")
	}
	for i := range in.Spec.Versions {
		v := &in.Spec.Versions[i]
		if v.SelectableFields = nil; v.Schema != nil {
			v.Schema = schema(v.Name)
		}
	}
	in.Spec.SelectableFields = nil
}

// internalDefinition converts the definition to the form that is validated, with defaults.
func internalDefinition(o object) (*apiextensions.CustomResourceDefinition, error) {
	out := &apiextensions.CustomResourceDefinition{}
	if o.crd != nil {
		in := o.crd.DeepCopy()
		crdv1.SetObjectDefaults_CustomResourceDefinition(in)
		return out, crdv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(in, out, nil)
	}
	in := o.crdBeta.DeepCopy()
	crdv1beta1.SetObjectDefaults_CustomResourceDefinition(in)
	return out, crdv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(in, out,
		nil)
}

// maxDefinitionRules is the maximum number of CEL rules of one definition that are compiled: the API server's validator
// takes milliseconds for each and cannot be interrupted. Real definitions have dozens.
const maxDefinitionRules = 500

// boundRules removes the rules beyond maxDefinitionRules, in the order of property names, and returns the original
// number.
func boundRules(in *apiextensions.CustomResourceDefinition) (n int) {
	var walk func(s *apiextensions.JSONSchemaProps)
	each := func(m map[string]apiextensions.JSONSchemaProps) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			s := m[name]
			walk(&s)
			m[name] = s
		}
	}
	list := func(l []apiextensions.JSONSchemaProps) {
		for i := range l {
			walk(&l[i])
		}
	}
	walk = func(s *apiextensions.JSONSchemaProps) {
		if s == nil {
			return
		}
		had := len(s.XValidations)
		s.XValidations = s.XValidations[:min(had, max(0, maxDefinitionRules-n))]
		n += had
		for _, group := range [][]apiextensions.JSONSchemaProps{s.AllOf, s.OneOf, s.AnyOf} {
			list(group)
		}
		walk(s.Not)
		if s.Items != nil {
			walk(s.Items.Schema)
			list(s.Items.JSONSchemas)
		}
		for _, more := range []*apiextensions.JSONSchemaPropsOrBool{s.AdditionalProperties, s.AdditionalItems} {
			if more != nil {
				walk(more.Schema)
			}
		}
		for _, named := range []map[string]apiextensions.JSONSchemaProps{s.Properties, s.PatternProperties,
			s.Definitions} {
			each(named)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
			walk(s.Dependencies[name].Schema)
		}
	}
	if in.Spec.Validation != nil {
		walk(in.Spec.Validation.OpenAPIV3Schema)
	}
	for _, v := range in.Spec.Versions {
		if v.Schema != nil {
			walk(v.Schema.OpenAPIV3Schema)
		}
	}
	return n
}

const inQuotes = `"(?:[^"\\]|\\.)*"`

const ofKind = `\w+: \(\[` + inQuotes + `(?: ` + inQuotes + `)*\]\),`

// randomLists are the lists that the library writes in an order that differs from run to run: channels, and the kinds
// of removed APIs, each with its objects.
var randomLists = []struct {
	whole, entry func() *regexp.Regexp
	separator    string
}{
	{lazyregexp.New(`^channel\(s\) \[(` + inQuotes + `(?: ` + inQuotes + `)+)\]`), lazyregexp.New(inQuotes), " "},
	{lazyregexp.New(`Migrate the API\(s\) for ((?:` + ofKind + `)+)$`), lazyregexp.New(ofKind), ""},
}

// settled returns a validator's message with these lists sorted.
func settled(text string) string {
	for _, list := range randomLists {
		if at := list.whole().FindStringSubmatchIndex(text); at != nil {
			entries := list.entry().FindAllString(text[at[2]:at[3]], -1)
			slices.Sort(entries)
			return text[:at[2]] + strings.Join(entries, list.separator) + text[at[3]:]
		}
	}
	return text
}

// libraryText returns a validator's message for people.
func libraryText(e apierrors.Error, about object) string {
	text := e.Detail
	if v := valueText(e.BadValue, about); v != "" && !strings.Contains(text, v) {
		text = v + ": " + text
	}
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	return text
}

// libraryOpm returns a validator's message as opm prints it, with values in place of their addresses.
func libraryOpm(e apierrors.Error, about object) string {
	if e.BadValue != nil {
		e.BadValue = valueText(e.BadValue, about)
	}
	return e.Error()
}

// valueText formats an invalid value. A whole object is only named.
func valueText(v any, about object) string {
	if s, ok := v.(fmt.Stringer); ok {
		return s.String()
	}
	if err, ok := v.(error); ok {
		return err.Error()
	}
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer && !rv.IsNil() {
		rv = rv.Elem()
	}
	switch {
	case !rv.IsValid():
		return ""
	case rv.Kind() == reflect.Struct:
		return fmt.Sprintf("%s %q", about.Kind, about.Name)
	}
	return fmt.Sprint(rv.Interface())
}

// libraryPath returns the path in the object that a validator's message is about, as far as known.
func libraryPath(validator string, e apierrors.Error) []any {
	if validator != "csv" {
		return nil
	}
	switch {
	case e.Type == apierrors.ErrorInvalidOperation, e.Type == apierrors.ErrorInvalidParse:
		return []any{"metadata", "annotations", "alm-examples"}
	case strings.Contains(e.Detail, "install mode"), strings.Contains(e.Detail, "InstallMode"):
		return []any{"spec", "installModes"}
	case strings.Contains(e.Detail, "MinKubeVersion"):
		return []any{"spec", "minKubeVersion"}
	case strings.Contains(e.Detail, "spec.replaces"):
		return []any{"spec", "replaces"}
	case strings.Contains(e.Detail, "metadata.name"):
		return []any{"metadata", "name"}
	}
	return nil
}

// ruleName converts CSVFileNotValid to csv-file-not-valid.
func ruleName(t string) string {
	var b strings.Builder
	letters := []rune(t)
	for i, c := range letters {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			continue
		}
		if i > 0 && unicode.IsUpper(c) && (unicode.IsLower(letters[i-1]) ||
			i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
