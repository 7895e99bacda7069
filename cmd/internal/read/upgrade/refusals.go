package upgrade

import (
	"context"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/bundle/manifests"
	"github.com/operator-bindery/bindery/cmd/internal/bundle/manifests/safety"
)

// verdict is what OLM v1 says of a definition.
type verdict struct {
	changes []safety.Change
	unknown string // why OLM v1's answer is not known
}

// refusalsOf returns what OLM v1 says of the definitions that both sides have, by name.
func refusalsOf(ctx context.Context, from, to []manifests.Object) (map[string]verdict, error) {
	old := map[string]safety.Definition{}
	for _, d := range safety.Definitions(from) {
		old[d.Name] = d
	}
	out := map[string]verdict{}
	judge, err := safety.NewJudge()
	if err != nil {
		return nil, err
	}
	for _, d := range safety.Definitions(to) {
		before, ok := old[d.Name]
		if !ok {
			continue
		}
		changes, err := judge.Definition(ctx, before, d)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		v := verdict{changes: changes}
		if err != nil {
			v.unknown = err.Error()
		}
		out[d.Name] = v
	}
	return out, nil
}

// checked are the attributes that have a check of their own; a change of any other one is refused as such.
var checked = []string{"type", "enum", "default", "required", "maximum", "maxItems", "maxLength", "maxProperties",
	"minimum", "minItems", "minLength", "minProperties", "pattern", "nullable", "oneOf"}

const unhandled = "unhandled" // the check for all other attributes

// markRefused marks the details for which OLM v1 refuses the upgrade.
func (v *versionChange) markRefused(all []safety.Change) {
	for i := range v.Details {
		d := &v.Details[i]
		if d.Field == "" {
			continue // OLM v1 compares only fields of schemas
		}
		check, _, _ := strings.Cut(d.Attribute, ".")
		if check, _, _ = strings.Cut(check, "["); !slices.Contains(checked, check) {
			check = unhandled
		}
		d.Refused = isRefused(all, v.Name, d.Field, check)
	}
}

// isRefused reports whether a check refuses a field of a version. A change in the values of a map is one of the field
// that has the map, too.
func isRefused(all []safety.Change, version, field, check string) bool {
	has := func(field, check string) bool {
		return slices.ContainsFunc(all, func(c safety.Change) bool {
			return c.Version == version && c.Property == propertyOf(field) && c.Check == check
		})
	}
	outer, _, inMap := strings.Cut(field, "{}")
	return has(field, check) || inMap && has(outer, unhandled)
}

// removes reports whether OLM v1 refuses that a field is removed.
func removes(all []safety.Change, version, field string) bool {
	return slices.ContainsFunc(all, func(c safety.Change) bool {
		return c.Check == "existingFieldRemoval" && strings.HasSuffix(c.Message, " : "+version+"."+propertyOf(field))
	})
}

// demands reports whether OLM v1 refuses that a field is required.
func demands(all []safety.Change, version, field string) bool {
	outer, name := "", field
	if i := strings.LastIndexByte(field, '.'); i >= 0 {
		outer, name = field[:i], field[i+1:]
	}
	return isRefused(all, version, outer, "required") && slices.ContainsFunc(all, func(c safety.Change) bool {
		_, list, _ := strings.Cut(strings.TrimSuffix(c.Message, "]"), "[")
		return c.Check == "required" && c.Version == version && slices.Contains(strings.Fields(list), name)
	})
}

// propertyOf returns the path of a field as OLM v1 has it.
func propertyOf(field string) string {
	if field == "" || field == "^" {
		return "^"
	}
	path := strings.NewReplacer("[]", ".items", "{}", ".additionalProperties").Replace(field)
	if strings.HasPrefix(path, ".") {
		return "^" + path
	}
	return "^." + path
}
