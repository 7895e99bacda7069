package catalogql

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/graphql-go/graphql"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Blobs gives a service the blobs of a catalog. It must be safe for concurrent use.
type Blobs interface {
	// Count returns the number of blobs of a schema.
	Count(schema string) int
	// Size returns where the i-th blob of a schema begins and how many bytes it has, as catalogd counts them: with the
	// newline.
	Size(schema string, i int) (offset, length int64)
	// Read returns the i-th blob of a schema as canonical JSON, which belongs to the caller.
	Read(schema string, i int) ([]byte, error)
}

// Service answers queries about one catalog. It is safe for concurrent use.
type Service struct {
	schema  graphql.Schema
	blobs   Blobs
	objects map[string]int // blobs by schema
	names   int            // bytes of the names in the type with most, or of all types
}

// Service makes the type system. It fails for a catalog that catalogd refuses to store: one whose schemas have equal or
// invalid names in GraphQL.
func (d *Discovery) Service(blobs Blobs) (*Service, error) {
	if d.err != nil {
		return nil, d.err
	}
	names := slices.Sorted(maps.Keys(d.schemas))
	if err := collision(names); err != nil {
		return nil, err
	}
	s := &Service{blobs: blobs, objects: map[string]int{}}
	query := graphql.Fields{"summary": d.summary(names)}
	for _, name := range names {
		s.objects[name] = d.schemas[name].objects
		query[rootName(name)] = s.root(name, d.schemas[name])
	}
	var err error
	s.schema, err = graphql.NewSchema(graphql.SchemaConfig{
		Query: graphql.NewObject(graphql.ObjectConfig{Name: "Query", Fields: query}),
	})
	if err != nil {
		return nil, fmt.Errorf("failed to create GraphQL schema: %s", fault.Short(err.Error()))
	}
	for _, f := range s.schema.QueryType().Fields() {
		slices.SortFunc(f.Args, func(a, b *graphql.Argument) int { return cmp.Compare(a.PrivateName, b.PrivateName) })
	}
	types := 0
	for name, t := range s.schema.TypeMap() {
		types += len(name)
		fields := 0
		if object, ok := t.(*graphql.Object); ok {
			for name := range object.Fields() {
				fields += len(name)
			}
		}
		s.names = max(s.names, fields)
	}
	s.names = max(s.names, types)
	return s, nil
}

// collision returns catalogd's error for schemas that have one name in GraphQL.
func collision(names []string) error {
	types, fields := map[string]string{}, map[string]string{}
	for _, name := range names {
		if other, ok := types[typeName(name)]; ok {
			return fmt.Errorf("type name collision: schemas %q and %q both sanitize to GraphQL type %q", other, name,
				typeName(name))
		}
		types[typeName(name)] = name
	}
	for _, name := range names {
		if other, ok := fields[rootName(name)]; ok {
			return fmt.Errorf("query field collision: schemas %q and %q both map to field %q", other, name,
				rootName(name))
		}
		fields[rootName(name)] = name
	}
	return nil
}

// page is the part of a schema's blobs that a query asks for.
type page struct {
	schema   string
	from, to int
}

// most is the maximum number of blobs that a field of the query returns, and the number without an argument.
const most = 100

// root returns the query's field for a schema.
func (s *Service) root(name string, info *schema) *graphql.Field {
	return &graphql.Field{
		Type: graphql.NewList(objectType(typeName(name), info.fields)),
		Args: graphql.FieldConfigArgument{
			"limit": &graphql.ArgumentConfig{Type: graphql.Int, DefaultValue: most,
				Description: "Maximum number of items to return"},
			"offset": &graphql.ArgumentConfig{Type: graphql.Int, DefaultValue: 0,
				Description: "Number of items to skip"},
		},
		Resolve: func(p graphql.ResolveParams) (any, error) {
			limit, _ := p.Args["limit"].(int)
			offset, _ := p.Args["offset"].(int)
			if limit <= 0 || limit > most {
				limit = most
			}
			all := s.blobs.Count(name)
			from := min(max(offset, 0), all)
			part := page{name, from, from + min(limit, all-from)}
			for i := part.from; i < part.to; i++ {
				if at, length := s.blobs.Size(name, i); length > maxBlob {
					return nil,
						fmt.Errorf("error loading objects for schema %s: invalid section length %d at offset %d",
							name, length, at)
				}
			}
			return part, nil
		},
	}
}

// objectType returns the type of objects with some fields.
func objectType(name string, fields map[string]*field) *graphql.Object {
	all := graphql.Fields{}
	for fieldName, f := range fields {
		if len(f.nested) > 0 {
			all[fieldName] = &graphql.Field{
				Type:    graphql.NewList(objectType(name+typeName(fieldName), f.nested)),
				Resolve: func(p graphql.ResolveParams) (any, error) { return memberOf(p.Source, fieldName), nil },
			}
			continue
		}
		all[fieldName] = &graphql.Field{
			Type:    f.output(),
			Resolve: func(p graphql.ResolveParams) (any, error) { return leaf(memberOf(p.Source, fieldName)), nil },
		}
	}
	return graphql.NewObject(graphql.ObjectConfig{Name: name, Fields: all})
}

// output returns the type of a field without objects.
func (f *field) output() graphql.Output {
	kind := [...]graphql.Output{asString: graphql.String, asBoolean: graphql.Boolean, asInt: graphql.Int,
		asFloat: graphql.Float}[f.kind]
	if f.list {
		return graphql.NewList(kind)
	}
	return kind
}

// summary returns the query's field about the schemas.
func (d *Discovery) summary(names []string) *graphql.Field {
	schemas := []any{}
	for _, name := range names {
		schemas = append(schemas, map[string]any{"name": name, "totalObjects": d.schemas[name].objects,
			"totalFields": len(d.schemas[name].fields)})
	}
	value := map[string]any{"totalSchemas": len(names), "schemas": schemas}
	return &graphql.Field{
		Type: graphql.NewObject(graphql.ObjectConfig{Name: "CatalogSummary", Fields: graphql.Fields{
			"totalSchemas": &graphql.Field{Type: graphql.Int},
			"schemas": &graphql.Field{Type: graphql.NewList(graphql.NewObject(graphql.ObjectConfig{
				Name: "SchemaSummary", Fields: graphql.Fields{
					"name":         &graphql.Field{Type: graphql.String},
					"totalObjects": &graphql.Field{Type: graphql.Int},
					"totalFields":  &graphql.Field{Type: graphql.Int},
				}}))},
		}}),
		Resolve: func(graphql.ResolveParams) (any, error) { return value, nil },
	}
}
