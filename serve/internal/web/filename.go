package web

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// maxPart is the maximum length in bytes of a part of a file's path, before its extension.
const maxPart = 100

// fileName returns the slash-separated path of a page in a static site, such as "bundle/etcd/etcd.v0.9.4.html". Values
// of package and name stand for themselves: a page has them in this order, or always the same one of them. Two pages
// never have the same path, even where the case of letters is ignored, and no file has the name of a directory.
func fileName(page string, pairs []string) string {
	extension := ".html"
	if at := strings.LastIndexByte(page, '.'); at > 0 {
		page, extension = page[:at], page[at:]
	}
	parts := []string{page}
	for i := 0; i < len(pairs); i += 2 {
		part := safePart(pairs[i+1])
		if pairs[i] != "package" && pairs[i] != "name" {
			part = pairs[i] + "+" + part
		}
		parts = append(parts, part)
	}
	for i := range parts[:len(parts)-1] {
		if before, found := strings.CutSuffix(parts[i], extension); found {
			parts[i] = before + "~2e" + extension[1:]
		}
	}
	return strings.Join(parts, "/") + extension
}

// deviceNames are those that Windows has in each directory, with any extension.
var deviceNames = lazyregexp.New(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// safePart returns a name as a part of a path: lower-case letters, digits, dots, hyphens and underscores, and any other
// byte as a tilde and two digits. The end of a long one is a digest.
func safePart(name string) string {
	var b strings.Builder
	device := deviceNames().MatchString(name)
	for i := range len(name) {
		c := name[i]
		kept := 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' ||
			c == '.' && i > 0 && i < len(name)-1
		if kept && !(device && i == 0) {
			b.WriteByte(c)
		} else {
			b.WriteString("~" + hex.EncodeToString([]byte{c}))
		}
		if b.Len() > maxPart {
			sum := sha256.Sum256([]byte(name))
			return b.String()[:maxPart-34] + "~~" + hex.EncodeToString(sum[:16])
		}
	}
	return b.String()
}

// withValues returns the pairs that have a value, as [link] does.
func withValues(pairs []string) []string {
	var out []string
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			out = append(out, pair...)
		}
	}
	return out
}
