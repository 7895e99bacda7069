package cmdline

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Names returns names of a kind that the catalog has: "PACKAGE", "CHANNEL", "PACKAGE/CHANNEL", "BUNDLE" or
// "PACKAGE[/CHANNEL[/BUNDLE]]". It returns none if there is no catalog, except for [SchemaName] and [ImageName], which
// need none.
type Names func(kind, catalog string) []string

// catalogWords are the words of a usage line that stand for a catalog, and catalogFlags flags that name one.
var (
	catalogWords = []string{"REF", "CATALOG", "DIR|DB", "DIR|DB|IMAGE", "CATALOG|BUNDLE", "SRC"}
	catalogFlags = []string{"database", "from-index", "index"}
	usageWord    = regexp.MustCompile(`[A-Z][A-Z|/]*`)
)

// anyLevel is a kind of names: packages, channels of packages, and bundles of these.
const anyLevel = "PACKAGE[/CHANNEL[/BUNDLE]]"

// SchemaName is the kind of the names of schemas, and ImageName that of images, of which only the beginning is completed:
// the names of transports with what separates them.
const (
	SchemaName = "SCHEMA"
	ImageName  = "IMAGE"
)

// imageWords are the words of a usage line, or of a flag, that can be the name of an image.
var imageWords = append([]string{"IMAGE", "SOURCE", "DESTINATION", "OLD", "NEW"}, catalogWords...)

// kindOf returns what a value of a usage line or a flag is: PACKAGE, CHANNEL, PACKAGE/CHANNEL, BUNDLE, SCHEMA, IMAGE or
// all levels of names in the form of usage lines; or "".
func kindOf(value string) string {
	if strings.HasPrefix(value, anyLevel) {
		return anyLevel
	}
	switch value = usageWord.FindString(value); value {
	case "PACKAGES":
		return "PACKAGE"
	case "CHANNELS":
		return "CHANNEL"
	case "PACKAGE", "CHANNEL", "PACKAGE/CHANNEL", "BUNDLE", SchemaName:
		return value
	}
	if slices.Contains(imageWords, value) {
		return ImageName
	}
	return ""
}

// arguments returns the words of a command's usage line: "[PACKAGE]" and "BUNDLE..." as they are.
func arguments(leaf *cli.Command) []string {
	var words []string
	for word := range strings.FieldsSeq(leaf.ArgsUsage) {
		if strings.HasPrefix(word, "-") {
			break
		}
		words = append(words, word)
	}
	return words
}

// argumentKind returns the kind of the positional argument at an index; the last one of a usage line may repeat.
func argumentKind(leaf *cli.Command, at int) string {
	words := arguments(leaf)
	if len(words) > 0 && at >= len(words) && strings.HasSuffix(strings.Trim(words[len(words)-1], "[]"), "...") {
		at = len(words) - 1
	}
	if at >= len(words) {
		return ""
	}
	return kindOf(words[at])
}

// catalogOf returns the catalog that a line names as an argument or by a flag, and the number of its arguments.
func catalogOf(app *cli.App, words []string) (catalog string, arguments int) {
	p := parser{app: app}
	if p.findPath(words) != nil || p.readFlags(words) != nil {
		return "", 0
	}
	return p.catalog(), len(p.positional)
}

func (p *parser) catalog() string {
	leaf := p.line.Leaf()
	for i, word := range arguments(leaf) {
		if slices.Contains(catalogWords, usageWord.FindString(word)) && i < len(p.positional) {
			return p.positional[i]
		}
	}
	for _, level := range p.flags {
		for _, text := range level {
			name, value, _ := strings.Cut(strings.TrimPrefix(text, "--"), "=")
			if slices.Contains(catalogFlags, name) {
				return value
			}
		}
	}
	return ""
}

// nameCandidates returns the names of a kind that start with the last of a comma-separated list.
func nameCandidates(names Names, kind, catalog, prefix, current string) []Candidate {
	switch {
	case names == nil, kind == "", kind == ImageName && (current == "" || beginsFile(current)),
		catalog == "" && kind != SchemaName && kind != ImageName:
		return nil // most images are written without a transport, and a file wins over an image of the same name
	}
	if at := strings.LastIndex(current, ","); at >= 0 {
		prefix, current = prefix+current[:at+1], current[at+1:]
	}
	levels := 0
	if kind == anyLevel { // the level of the word, and the next one if the word has begun
		if levels = strings.Count(current, "/"); current != "" {
			levels++
		}
	}
	var out []Candidate
	for _, name := range names(kind, catalog) {
		if strings.HasPrefix(name, current) && (kind != anyLevel || strings.Count(name, "/") <= levels) {
			out = append(out, Candidate{Word: prefix + name})
		}
	}
	return out
}

// beginsFile tells whether the name of a file begins with a text.
func beginsFile(text string) bool {
	dir, base := filepath.Split(text)
	entries, err := os.ReadDir(cmp.Or(dir, "."))
	return err == nil && slices.ContainsFunc(entries,
		func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), base) })
}
