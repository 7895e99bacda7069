package catalogql

import "strings"

// fieldName returns the field for a JSON key: letters and digits in camelCase. A word in capitals at the start becomes
// lower case; a name that would not begin with a letter begins with "field_".
func fieldName(key string) string {
	if key == "" {
		return "value"
	}
	words := strings.FieldsFunc(key, func(r rune) bool { return !isAlphanumeric(r) })
	var name strings.Builder
	for i, word := range words {
		switch {
		case i > 0:
			name.WriteString(capitalized(word))
		case strings.ToUpper(word) == word:
			name.WriteString(strings.ToLower(word))
		default:
			name.WriteString(strings.ToLower(word[:1]) + word[1:])
		}
	}
	if out := name.String(); out != "" && !isDigit(out[0]) {
		return out
	}
	return "field_" + name.String()
}

// typeName returns the name of the type for a schema or a field: its words with capitals, without leading digits.
func typeName(name string) string {
	var out strings.Builder
	name = strings.TrimLeft(name, "0123456789")
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return !isAlphanumeric(r) }) {
		out.WriteString(capitalized(word))
	}
	if out.Len() == 0 {
		return "Unknown"
	}
	return out.String()
}

// rootName returns the query's field for the blobs of a schema: its letters and digits in lower case, and "s".
func rootName(schema string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(schema,
		func(r rune) bool { return !isAlphanumeric(r) }), "")) + "s"
}

func capitalized(word string) string { return strings.ToUpper(word[:1]) + strings.ToLower(word[1:]) }

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
