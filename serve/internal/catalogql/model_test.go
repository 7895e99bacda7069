package catalogql

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/graphql-go/graphql"
)

// A model of catalogd's GraphQL that is independent of this package: blobs are decoded, the library executes queries.

type anyMap = map[string]any

var (
	noName    = regexp.MustCompile(`[^a-zA-Z0-9]+`)
	leadDigit = regexp.MustCompile(`^[0-9]+`)
)

func modelField(key string) string {
	if key == "" {
		return "value"
	}
	parts := slices.DeleteFunc(noName.Split(key, -1), func(s string) bool { return s == "" })
	for i, p := range parts {
		switch {
		case i > 0:
			parts[i] = strings.ToUpper(p[:1]) + strings.ToLower(p[1:])
		case p == strings.ToUpper(p):
			parts[i] = strings.ToLower(p)
		default:
			parts[i] = strings.ToLower(p[:1]) + p[1:]
		}
	}
	name := strings.Join(parts, "")
	if !regexp.MustCompile(`^[a-zA-Z]`).MatchString(name) {
		return "field_" + name
	}
	return name
}

func modelType(name string) string {
	out := ""
	for p := range strings.SplitSeq(leadDigit.ReplaceAllString(noName.ReplaceAllString(name, "_"), ""), "_") {
		if p != "" {
			out += strings.ToUpper(p[:1]) + strings.ToLower(p[1:])
		}
	}
	if out == "" {
		return "Unknown"
	}
	return out
}

func modelRoot(schema string) string {
	return strings.ToLower(noName.ReplaceAllString(schema, "")) + "s"
}

// modelScalar is the type of a value in JSON.
func modelScalar(v any) graphql.Output {
	switch v := v.(type) {
	case bool:
		return graphql.Boolean
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return graphql.Int
		}
		return graphql.Float
	}
	return graphql.String
}

func modelKind(v any) string {
	switch v.(type) {
	case bool:
		return "bool"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "list"
	}
	return "object"
}

type modelInfo struct {
	as     graphql.Output
	nested map[string]graphql.Output
}

func modelNested(object anyMap, into map[string]graphql.Output) {
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for k := range object {
			if !yield(k) {
				return
			}
		}
	}) {
		if into[modelField(key)] != nil {
			continue
		}
		list, isList := object[key].([]any)
		switch {
		case isList && len(list) > 0:
			into[modelField(key)] = graphql.NewList(modelScalar(list[0]))
		case isList:
			into[modelField(key)] = graphql.NewList(graphql.String)
		default:
			into[modelField(key)] = modelScalar(object[key])
		}
	}
}

func modelAnalyze(v any) modelInfo {
	list, ok := v.([]any)
	if !ok {
		return modelInfo{as: modelScalar(v)}
	}
	info := modelInfo{}
	kinds := map[string]bool{}
	var first any
	for _, e := range list[:min(len(list), 10)] {
		if e == nil {
			continue
		}
		if first == nil {
			first = e
		}
		kinds[modelKind(e)] = true
		if object, ok := e.(anyMap); ok {
			if info.nested == nil {
				info.nested = map[string]graphql.Output{}
			}
			modelNested(object, info.nested)
		}
	}
	info.as = graphql.NewList(modelScalar(first))
	if len(kinds) > 1 && info.nested == nil {
		info.as = graphql.NewList(graphql.String)
	}
	return info
}

func modelText(v any) any {
	switch v.(type) {
	case anyMap, []any:
		text, _ := json.Marshal(v)
		return string(text)
	}
	return v
}

// modelMember resolves a field, by its very key first: catalogd takes any of several keys with one name.
func modelMember(source any, name string) any {
	object, ok := source.(anyMap)
	if !ok {
		return nil
	}
	if v, ok := object[name]; ok {
		return v
	}
	best, found := "", false
	for key := range object {
		if modelField(key) == name && (!found || key < best) {
			best, found = key, true
		}
	}
	if !found {
		return nil
	}
	return object[best]
}

// modelSchema returns the type system of a catalog, with resolvers.
func modelSchema(blobs []anyMap) (graphql.Schema, error) {
	objects := map[string][]any{}
	infos := map[string]map[string]*modelInfo{}
	for _, b := range blobs {
		schema := b["schema"].(string)
		objects[schema] = append(objects[schema], b)
		if infos[schema] == nil {
			infos[schema] = map[string]*modelInfo{}
		}
		for _, key := range slices.Sorted(func(yield func(string) bool) {
			for k := range b {
				if !yield(k) {
					return
				}
			}
		}) {
			found := modelAnalyze(b[key])
			known := infos[schema][modelField(key)]
			switch {
			case known == nil:
				infos[schema][modelField(key)] = &found
			case known.nested == nil:
				known.nested = found.nested
			default:
				for name, as := range found.nested {
					if known.nested[name] == nil {
						known.nested[name] = as
					}
				}
			}
		}
	}
	query, summary := graphql.Fields{}, []any{}
	for _, schema := range slices.Sorted(func(yield func(string) bool) {
		for k := range infos {
			if !yield(k) {
				return
			}
		}
	}) {
		summary = append(summary, anyMap{"name": schema, "totalObjects": len(objects[schema]),
			"totalFields": len(infos[schema])})
		fields := graphql.Fields{}
		for name, info := range infos[schema] {
			if len(info.nested) == 0 {
				fields[name] = &graphql.Field{Type: info.as, Resolve: func(p graphql.ResolveParams) (any, error) {
					return modelText(modelMember(p.Source, name)), nil
				}}
				continue
			}
			inner := graphql.Fields{}
			for below, as := range info.nested {
				inner[below] = &graphql.Field{Type: as, Resolve: func(p graphql.ResolveParams) (any, error) {
					return modelText(modelMember(p.Source, below)), nil
				}}
			}
			fields[name] = &graphql.Field{Type: graphql.NewList(graphql.NewObject(graphql.ObjectConfig{
				Name: modelType(schema) + modelType(name), Fields: inner,
			})), Resolve: func(p graphql.ResolveParams) (any, error) { return modelMember(p.Source, name), nil }}
		}
		query[modelRoot(schema)] = &graphql.Field{
			Type: graphql.NewList(graphql.NewObject(graphql.ObjectConfig{Name: modelType(schema), Fields: fields})),
			Args: graphql.FieldConfigArgument{
				"limit": &graphql.ArgumentConfig{Type: graphql.Int, DefaultValue: 100,
					Description: "Maximum number of items to return"},
				"offset": &graphql.ArgumentConfig{Type: graphql.Int, DefaultValue: 0,
					Description: "Number of items to skip"},
			},
			Resolve: func(p graphql.ResolveParams) (any, error) {
				limit, _ := p.Args["limit"].(int)
				offset, _ := p.Args["offset"].(int)
				if limit <= 0 || limit > 100 {
					limit = 100
				}
				all := objects[schema]
				all = all[min(max(offset, 0), len(all)):]
				return all[:min(limit, len(all))], nil
			},
		}
	}
	total := len(infos)
	query["summary"] = &graphql.Field{
		Type: graphql.NewObject(graphql.ObjectConfig{Name: "CatalogSummary", Fields: graphql.Fields{
			"totalSchemas": &graphql.Field{Type: graphql.Int},
			"schemas": &graphql.Field{Type: graphql.NewList(graphql.NewObject(graphql.ObjectConfig{
				Name: "SchemaSummary",
				Fields: graphql.Fields{"name": &graphql.Field{Type: graphql.String},
					"totalObjects": &graphql.Field{Type: graphql.Int},
					"totalFields":  &graphql.Field{Type: graphql.Int}}}))},
		}}),
		Resolve: func(graphql.ResolveParams) (any, error) {
			return anyMap{"totalSchemas": total, "schemas": summary}, nil
		},
	}
	return graphql.NewSchema(
		graphql.SchemaConfig{Query: graphql.NewObject(graphql.ObjectConfig{Name: "Query", Fields: query})})
}
