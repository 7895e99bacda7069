package generate

import (
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/dockerfile"
)

// Dockerfile returns the text of bundle.Dockerfile. manifests and metadata are the directories relative to the build
// context, slash-separated. Values with spaces, or that a builder would expand, are quoted.
func (m Metadata) Dockerfile(base, manifests, metadata string) ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := dockerfile.CheckImage("base image", base); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "FROM %s\n\n", base)
	for _, p := range m.pairs() {
		fmt.Fprintf(&b, "LABEL %s=%s\n", p.key, labelValue(p.value))
	}
	if m.DefaultChannel != "" {
		// opm writes an empty line after the label of the default channel only.
		b.WriteByte('\n')
	}
	for _, c := range []struct{ from, to string }{{manifests, "/" + manifestsDir}, {metadata, "/" + metadataDir}} {
		from, err := dockerfile.Copy(c.from, c.to)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "COPY %s\n", from)
	}
	return []byte(b.String()), nil
}

// labelValue quotes a value that a builder would otherwise read differently.
func labelValue(s string) string {
	if dockerfile.OneWord(s) && !strings.ContainsAny(s, `"'\$`) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`).Replace(s) + `"`
}
