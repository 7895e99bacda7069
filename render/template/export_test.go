package template

// TypeOf is the type of templates of a schema.
var TypeOf = typeOf

// Schema is the schema of templates of a type.
func (t Type) Schema() string { return t.schema() }

// Type is the type that Parse found.
func (t *Template) Type() Type { return t.typ }
