package helmtemplate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

func newEngine(ctx context.Context) *engine {
	e := &engine{ctx: ctx, funcs: template.FuncMap{}, known: map[string]any{}, included: map[string]int{}}
	all := sprig.TxtFuncMap()
	delete(all, "env")
	delete(all, "expandenv")
	for name, f := range helmFuncs() {
		all[name] = f
	}
	for name, f := range all {
		e.funcs[name] = e.wrap(name, f)
	}
	for name := range e.funcs {
		e.known[name] = true
	}
	// Those of Go's templates that are not wrapped, and those that lateFuncs adds.
	for _, name := range []string{"and", "or", "not", "call", "index", "slice", "len", "eq", "ge", "gt", "le", "lt", "ne",
		"include", "tpl"} {
		e.known[name] = true
	}
	for name, f := range e.guards() {
		e.funcs[name] = f
	}
	return e
}

// helmFuncs are the functions that Helm adds to those of sprig or replaces, and those of Go that write values out.
func helmFuncs() template.FuncMap {
	return template.FuncMap{
		"toToml": toTOML,
		"fromToml": func(s string) map[string]any {
			m := map[string]any{}
			if err := toml.Unmarshal([]byte(s), &m); err != nil {
				m["Error"] = err.Error()
			}
			return m
		},
		"toYaml": toYAML,
		"toYamlPretty": func(v any) string {
			var b bytes.Buffer
			enc := yamlv3.NewEncoder(&b)
			enc.SetIndent(2)
			if err := enc.Encode(v); err != nil {
				return ""
			}
			return strings.TrimSuffix(b.String(), "\n")
		},
		"fromYaml":      func(s string) map[string]any { return mapOf(s, Unmarshal) },
		"fromYamlArray": func(s string) []any { return arrayOf(s, Unmarshal) },
		"toJson": func(v any) string {
			data, err := json.Marshal(v)
			if err != nil {
				return ""
			}
			return string(data)
		},
		"fromJson":      func(s string) map[string]any { return mapOf(s, json.Unmarshal) },
		"fromJsonArray": func(s string) []any { return arrayOf(s, json.Unmarshal) },
		"lookup":        func(string, string, string, string) (map[string]any, error) { return map[string]any{}, nil },
		"getHostByName": func(string) string { return "" },
		"required": func(text string, v any) (any, error) {
			if v == nil || v == "" {
				return v, &own{text}
			}
			return v, nil
		},
		"fail":     func(text string) (string, error) { return "", &own{text} },
		"print":    fmt.Sprint,
		"printf":   fmt.Sprintf,
		"println":  fmt.Sprintln,
		"html":     template.HTMLEscaper,
		"js":       template.JSEscaper,
		"urlquery": template.URLQueryEscaper,
	}
}

func toYAML(v any) string {
	data, err := yaml.Marshal(v)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}

func toTOML(v any) string {
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(v); err != nil {
		return err.Error()
	}
	return b.String()
}

func mapOf[F func([]byte, any) error](text string, decode F) map[string]any {
	m := map[string]any{}
	if err := decode([]byte(text), &m); err != nil {
		m["Error"] = err.Error()
	}
	return m
}

func arrayOf[F func([]byte, any) error](text string, decode F) []any {
	a := []any{}
	if err := decode([]byte(text), &a); err != nil {
		return []any{err.Error()}
	}
	return a
}

// Unmarshal decodes YAML as Helm does, and refuses aliases that make much of little.
func Unmarshal(data []byte, v any) error {
	if bytes.IndexByte(data, '*') >= 0 && bytes.IndexByte(data, '&') >= 0 {
		var tree any
		if goyaml.Unmarshal(data, &tree) == nil {
			if err := size(tree, written); err != nil {
				return err
			}
		}
	}
	return yaml.Unmarshal(data, v)
}

// writing are the functions that write out all of an argument, however deep, be it in an error; copying are those that
// copy it or compare it.
var (
	writing = words(`toToml toYaml toYamlPretty toJson toPrettyJson toRawJson mustToJson mustToPrettyJson mustToRawJson
		print println html js urlquery toString toStrings quote squote cat join sortAlpha toDecimal int int64 float64 add
		add1 sub div mod mul addf add1f subf divf mulf max min biggest maxf minf ceil floor round semver urlJoin`)
	copying = words(`deepCopy mustDeepCopy merge mergeOverwrite mustMerge mustMergeOverwrite deepEqual has mustHas without
		mustWithout uniq mustUniq`)
)

// passing are the functions that return one of their arguments or a part of one: it does not count again.
var passing = words(`default get index first mustFirst last mustLast ternary coalesce required dig fail set unset merge
	mergeOverwrite mustMerge mustMergeOverwrite trim trimAll trimSuffix trimPrefix trunc substr lookup`)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, word := range strings.Fields(s) {
		m[word] = true
	}
	return m
}

// results estimates how many bytes the result of a function has, for those whose result can be much longer than their
// arguments.
var results = map[string]func(a []reflect.Value) float64{
	"repeat":       func(a []reflect.Value) float64 { return number(a[0]) * length(a[1]) },
	"indent":       func(a []reflect.Value) float64 { return indented(a) },
	"nindent":      func(a []reflect.Value) float64 { return indented(a) },
	"until":        func(a []reflect.Value) float64 { return 8 * math.Abs(number(a[0])) },
	"untilStep":    func(a []reflect.Value) float64 { return 8 * steps(a[0], a[1], a[2]) },
	"seq":          seqSize,
	"randAlphaNum": func(a []reflect.Value) float64 { return 16 * number(a[0]) },
	"randAlpha":    func(a []reflect.Value) float64 { return 16 * number(a[0]) },
	"randAscii":    func(a []reflect.Value) float64 { return 16 * number(a[0]) },
	"randNumeric":  func(a []reflect.Value) float64 { return 16 * number(a[0]) },
	"randBytes":    func(a []reflect.Value) float64 { return 2 * number(a[0]) },
	"replace": func(a []reflect.Value) float64 {
		return length(a[2]) + float64(strings.Count(a[2].String(), a[0].String()))*length(a[1])
	},
	"wrapWith": func(a []reflect.Value) float64 {
		return length(a[2]) * (1 + length(a[1])/max(1, number(a[0])))
	},
	"join":                       func(a []reflect.Value) float64 { return length(a[0]) * items(a[1]) },
	"regexReplaceAll":            replaced,
	"mustRegexReplaceAll":        replaced,
	"regexReplaceAllLiteral":     replaced,
	"mustRegexReplaceAllLiteral": replaced,
	"printf":                     formatted,
}

func number(v reflect.Value) float64 {
	for v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	return 0
}

func length(v reflect.Value) float64 { return float64(v.Len()) }

func items(v reflect.Value) float64 {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		return float64(v.Len())
	}
	return 1
}

func steps(from, to, by reflect.Value) float64 {
	if n := math.Abs(number(by)); n > 0 {
		return math.Abs(number(to)-number(from)) / n
	}
	return 0
}

// seqSize is about "seq [FROM [STEP]] TO", whose result is text.
func seqSize(a []reflect.Value) float64 {
	v := a[0]
	switch v.Len() {
	case 1:
		return 20 * math.Abs(number(v.Index(0)))
	case 2:
		return 20 * math.Abs(number(v.Index(1))-number(v.Index(0)))
	case 3:
		return 20 * steps(v.Index(0), v.Index(2), v.Index(1))
	}
	return 0
}

func indented(a []reflect.Value) float64 {
	return length(a[1]) + number(a[0])*float64(1+strings.Count(a[1].String(), "\n"))
}

func replaced(a []reflect.Value) float64 {
	if length(a[2]) == 0 {
		return length(a[1]) // at most at every place of the text
	}
	product := (length(a[1]) + 1) * (length(a[2]) + 1)
	if product <= maxText {
		return product
	}
	re, err := regexp.Compile(a[0].String())
	if err != nil {
		return 0
	}
	return length(a[1])*(1+float64(strings.Count(a[2].String(), "$"))) +
		float64(len(re.FindAllStringIndex(a[1].String(), -1)))*length(a[2])
}

// formatted is about printf: each verb may write the longest argument, in a width of its own or of an argument.
func formatted(a []reflect.Value) float64 {
	format := a[0].String()
	longest, verbs, widths := 0.0, 0.0, 0.0
	for i := range a[1].Len() {
		v := a[1].Index(i).Interface()
		n, err := sized(v, written)
		if err != nil {
			return math.Inf(1)
		}
		longest = max(longest, float64(n))
		if strings.Contains(format, "*") {
			longest = max(longest, number(a[1].Index(i)))
		}
	}
	for i := 0; i < len(format); i++ {
		if format[i] == '%' {
			verbs++
			continue
		}
		end := i
		for end < len(format) && format[end] >= '0' && format[end] <= '9' {
			end++
		}
		if end > i {
			n, err := strconv.ParseFloat(format[i:end], 64)
			if err == nil && verbs > 0 {
				widths += min(n, 1e6)
			}
			i = end - 1
		}
	}
	return float64(len(format)) + verbs*longest + widths
}

// wrap returns a function of the same type that fails when time is up or when too much would be made.
func (e *engine) wrap(name string, fn any) any {
	f := reflect.ValueOf(fn)
	typ := f.Type()
	counts, result := !passing[name], results[name]
	return reflect.MakeFunc(typ, func(args []reflect.Value) []reflect.Value {
		// Go's templates make an error of a panic; the type of the function must be as it is.
		throw(e.check())
		switch {
		case writing[name]:
			for _, a := range args {
				if a.Kind() != reflect.String {
					throw(size(a.Interface(), written))
				}
			}
		case copying[name]:
			for _, a := range args {
				throw(size(a.Interface(), copied))
			}
		case name == "dict": // its keys are written out
			for i := 0; i < args[0].Len(); i += 2 {
				throw(size(args[0].Index(i).Interface(), written))
			}
		}
		if result != nil && !(result(args) <= maxText) {
			throw(tooMuch("the result of "+name+" has more bytes", maxText))
		}
		var out []reflect.Value
		if typ.IsVariadic() {
			out = f.CallSlice(args)
		} else {
			out = f.Call(args)
		}
		if counts {
			throw(e.count(name, out[0]))
		}
		return out
	}).Interface()
}

func throw(err error) {
	if err != nil {
		panic(err)
	}
}

// count counts the result of a function.
func (e *engine) count(name string, v reflect.Value) error {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		if v.Len() > maxText {
			return tooMuch("the result of "+name+" has more bytes", maxText)
		}
		return e.make(v.Len())
	case reflect.Slice:
		if v.Len() > maxItems {
			return tooMuch("the result of "+name+" has more items", maxItems)
		}
		return e.make(16 * v.Len())
	case reflect.Map:
		return e.make(48 * v.Len())
	}
	return nil
}
