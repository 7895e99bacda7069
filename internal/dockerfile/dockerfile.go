// Package dockerfile formats parts of Dockerfiles so that every builder reads them alike, whatever characters a name
// has. Package containerfile reads Dockerfiles.
package dockerfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// OneWord reports whether s is a single word of an instruction, without white space and control characters.
func OneWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// CheckImage returns an error if name cannot follow FROM or would be read as a flag. kind names it in the error, such
// as "base image".
func CheckImage(kind, name string) error {
	if name == "" || !OneWord(name) || strings.HasPrefix(name, "-") {
		return fmt.Errorf("invalid %s: %q", kind, name)
	}
	return nil
}

// Copy returns the arguments of an ADD or COPY instruction that copies from, a slash-separated path relative to the
// build context, to the path to in the image. A name that a builder would read as a flag, a here-document or a
// repository starts with "./". A name with spaces, or with a character that builders expand, is in the JSON form. Names
// with control characters are an error.
func Copy(from, to string) (string, error) {
	if strings.ContainsFunc(from, unicode.IsControl) {
		return "", fmt.Errorf("invalid name of a directory: %q", from)
	}
	if strings.HasPrefix(from, "-") || strings.Contains(from, "<<") || strings.ContainsAny(from, "@:") {
		from = "./" + from
	}
	if OneWord(from) && !strings.ContainsAny(from, `$\"'[*?`) {
		return from + " " + to, nil
	}
	form, err := json.Marshal([]string{expanded.Replace(from), to})
	return string(form), err
}

// expanded escapes what a builder expands in a source: first variables, quotes and backslashes, then patterns.
var expanded = strings.NewReplacer(`\`, `\\\\`, `$`, `\$`, `"`, `\"`, `'`, `\'`, `[`, `[[]`, `*`, `[*]`, `?`, `[?]`)
