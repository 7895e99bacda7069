package safety

import (
	"regexp"
	"slices"
	"strings"
)

const (
	unhandled = "unhandled changes found"
	complex   = "<complex value>"
)

// address is that of a value, in the texts of the check oneOf.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

// message returns an error of the library as operator-controller words it, in a form that does not change from run to
// run: names and schemas in lists are sorted, and have no addresses.
func message(check, text string) string {
	head, list, ok := strings.Cut(text, "[")
	list, closed := strings.CutSuffix(list, "]")
	switch {
	case ok && closed && check == "required":
		return head + "[" + resorted(list, " ") + "]"
	case ok && closed && check == "oneOf":
		const first = "&JSONSchemaProps{ID:"
		list = resorted(strings.TrimPrefix(address.ReplaceAllString(list, "0x…"), first), " "+first)
		return head + "[" + first + list + "]"
	}
	if check != "unhandled" || !strings.HasPrefix(text, unhandled) {
		return text
	}
	var d differences
	for line := range strings.Lines(text) {
		d.addLine(strings.ReplaceAll(line, "\u00a0", " "))
	}
	if details := d.details(); len(details) > 0 {
		return unhandled + " (" + strings.Join(details, "; ") + ")"
	}
	return unhandled
}

// resorted sorts the parts of a list.
func resorted(list, separator string) string {
	parts := strings.Split(list, separator)
	slices.Sort(parts)
	return strings.Join(parts, separator)
}

// differences reads what the library writes of two schemas: lines with a sign, a field and its value. How it pairs the
// items of lists changes from run to run, so that a list in which some items differ is one value here, where
// operator-controller says some of the fields of some of the items.
type differences struct {
	fields []*difference
	list   int // indentation of the list that the lines are in; 0: none
}

type difference struct {
	name     string
	old, new value
}

// value is a value as it is shown, and as it is written; empty if it is absent.
type value struct{ shown, raw string }

// addLine reads a line.
func (d *differences) addLine(text string) {
	text = strings.TrimRight(text, " \n")
	body := strings.TrimLeft(text, "+- ")
	indentation := len(body) - len(strings.TrimLeft(body, "\t"))
	body = strings.TrimSpace(strings.TrimLeft(body, "\t"))
	if d.list > 0 {
		if indentation == d.list && strings.HasPrefix(body, "}") {
			d.list = 0
		}
		return
	}
	sign := strings.TrimSpace(text)
	if sign == "" {
		return
	}
	name, raw, ok := strings.Cut(strings.TrimSuffix(body, ","), ":")
	name, raw = strings.TrimSpace(name), strings.TrimSpace(raw)
	if !ok || name == "" {
		return
	}
	switch sign[0] {
	case '-':
		d.field(name).old = shown(raw)
	case '+':
		d.field(name).new = shown(raw)
	default:
		if strings.HasSuffix(raw, "{") && isList(raw) {
			d.list = indentation
			f := d.field(name)
			f.old, f.new = value{complex, "-"}, value{complex, "+"}
		}
	}
}

// isList reports whether a value that begins on a line is a list.
func isList(raw string) bool {
	return strings.HasPrefix(raw, "[]") || strings.HasPrefix(raw, "v1.ValidationRules")
}

func (d *differences) field(name string) *difference {
	for _, f := range d.fields {
		if f.name == name {
			return f
		}
	}
	d.fields = append(d.fields, &difference{name: name})
	return d.fields[len(d.fields)-1]
}

// shown returns a value as operator-controller shows it.
func shown(raw string) value {
	text := strings.TrimSpace(strings.TrimSuffix(raw, ","))
	if text == "" {
		return value{"<empty>", raw}
	}
	text = strings.ReplaceAll(text, "v1.", "")
	if strings.Contains(text, "JSONSchemaProps") {
		text = complex
	}
	return value{text, raw}
}

// details returns what changes of each field.
func (d *differences) details() (out []string) {
	for _, f := range d.fields {
		if f.old == f.new {
			continue
		}
		before, after := f.old.shown, f.new.shown
		for _, s := range []*string{&before, &after} {
			if *s == "" {
				*s = "<empty>"
			}
		}
		if f.old.shown == f.new.shown {
			after += " (changed)"
		}
		out = append(out, f.name+" "+before+" -> "+after)
	}
	return out
}
