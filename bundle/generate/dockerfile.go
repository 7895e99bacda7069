package generate

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// Dockerfile is the text of bundle.Dockerfile. manifests and metadata are the directories relative to the build context,
// slash-separated. Text that is more than one word, or that a builder would expand, is quoted.
func (m Metadata) Dockerfile(base, manifests, metadata string) ([]byte, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	if base == "" || !oneWord(base) {
		return nil, fmt.Errorf("invalid base image: %q", base)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "FROM %s\n\n", base)
	for _, p := range m.pairs() {
		fmt.Fprintf(&b, "LABEL %s=%s\n", p.key, labelValue(p.value))
	}
	if m.DefaultChannel != "" {
		// Only the label of the default channel is followed by an empty line: opm's layout, which others compare with.
		b.WriteByte('\n')
	}
	for _, c := range []struct{ from, to string }{{manifests, "/" + ManifestsDir}, {metadata, "/" + MetadataDir}} {
		from, err := copyArguments(c.from, c.to)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "COPY %s\n", from)
	}
	return []byte(b.String()), nil
}

// oneWord is true for text that stays one word of an instruction.
func oneWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// labelValue quotes a value where a builder would read it otherwise than it is.
func labelValue(s string) string {
	if oneWord(s) && !strings.ContainsAny(s, `"'\$`) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`).Replace(s) + `"`
}

// copyArguments are the arguments of a COPY instruction, in its JSON form where the name asks for it.
func copyArguments(from, to string) (string, error) {
	if strings.ContainsFunc(from, unicode.IsControl) {
		return "", fmt.Errorf("invalid name of a directory: %q", from)
	}
	if oneWord(from) && !strings.ContainsAny(from, `$\"'[*?`) {
		return from + " " + to, nil
	}
	form, err := json.Marshal([]string{strings.NewReplacer(`\`, `\\`, `$`, `\$`, `[`, `[[]`).Replace(from), to})
	return string(form), err
}
