// Package dockerfile writes parts of Dockerfiles that mean the same to every builder, whatever characters a name has.
// Reading Dockerfiles is package containerfile's.
package dockerfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// OneWord reports whether s stays one word of an instruction: it has no white space and no control characters.
func OneWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// CheckImage returns an error unless name can stand behind FROM and is no flag there. kind names it in the error, such as
// "base image".
func CheckImage(kind, name string) error {
	if name == "" || !OneWord(name) || strings.HasPrefix(name, "-") {
		return fmt.Errorf("invalid %s: %q", kind, name)
	}
	return nil
}

// Copy returns the arguments of an ADD or COPY instruction that copies from, a slash-separated path relative to the build
// context, to the path to in the image. A name that a builder would take for a flag, a here-document or a repository
// starts with "./". A name of several words, or with a character that a builder expands, is in the JSON form. Names with
// control characters are an error.
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

// expanded quotes what a builder expands in a source: first variables, quotes and backslashes, then patterns.
var expanded = strings.NewReplacer(`\`, `\\\\`, `$`, `\$`, `"`, `\"`, `'`, `\'`, `[`, `[[]`, `*`, `[*]`, `?`, `[?]`)
