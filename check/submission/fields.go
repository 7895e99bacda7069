package submission

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/versions"
)

// decoded returns the ClusterServiceVersion; nil if it cannot be read.
func (b *submitted) decoded(fsys fs.FS) (out map[string]any) {
	if b.noObject {
		return nil
	}
	d, bad := readDocument(fsys, b.csv)
	if bad != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(d.json))
	dec.UseNumber()
	if dec.Decode(&out) != nil {
		return nil
	}
	return out
}

// value returns a value of the ClusterServiceVersion; nil if there is none, or what is on the way to it is no mapping.
func (c *bundleCheck) value(path ...string) (v any) {
	v = c.csv
	for _, step := range path {
		m, _ := v.(map[string]any)
		v = m[step]
	}
	return v
}

// field is a field that a ClusterServiceVersion needs.
type field struct {
	path     []string
	severity rules.Severity
	valid    func(value any) bool
	fix      string
}

// fields are those of the pipeline for community operators.
func fields() []field {
	annotation := func(name string, valid func(any) bool, fix string) field {
		return field{[]string{"metadata", "annotations", name}, rules.Warning, valid, fix}
	}
	spec := func(name string, valid func(any) bool, fix string) field {
		return field{append([]string{"spec"}, strings.Split(name, ".")...), rules.Error, valid, fix}
	}
	keywords := spec("keywords", list(isText), "write a list of texts")
	keywords.severity = rules.Warning
	return []field{
		annotation("capabilities", oneOf(capabilities), "write one of "+strings.Join(capabilities, ", ")),
		annotation("categories", text(isCategories), "write one or more of "+strings.Join(categories, ", ")),
		annotation("containerImage", text(containerImage().MatchString), "write REGISTRY/REPOSITORY:TAG, or with a digest"),
		annotation("createdAt", text(isTime), "write a time as 2026-01-31T12:00:00Z"),
		annotation("repository", text(repositoryURL().MatchString), "write an address that begins with https://"),
		annotation("support", text(atLeast(3)), "write at least 3 characters"),
		annotation("description", text(atLeast(10)), "write at least 10 characters"),
		spec("displayName", text(firstLine(atLeast(3))), "write at least 3 characters in the first line"),
		spec("description", text(atLeast(20)), "write at least 20 characters"),
		spec("icon", list(isIcon), "write a list with base64data and mediatype: image/png, image/jpeg, image/gif or image/svg+xml"),
		spec("version", text(isSemver), "write a semantic version such as 1.2.3, as text"),
		spec("maintainers", list(texts("name", "email")), "write a list with name and email"),
		spec("provider.name", text(atLeast(3)), "write at least 3 characters"),
		spec("links", list(texts("name", "url")), "write a list with name and url"),
		keywords,
	}
}

var capabilities = []string{"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}

var categories = []string{"AI/Machine Learning", "Application Runtime", "Big Data", "Cloud Provider", "Developer Tools", "Database",
	"Drivers and plugins", "Integration & Delivery", "Logging & Tracing", "Modernization & Migration", "Monitoring",
	"Networking", "OpenShift Optional", "Security", "Storage", "Streaming & Messaging"}

var (
	containerImage = lazyregexp.New(`^(?:[^/]+/)+[^/:]+:.+`)
	repositoryURL  = lazyregexp.New(`^https?://.`)
)

func findFields(_ context.Context, c *bundleCheck, emit rules.Emit) {
	if c.b.noObject {
		c.fault(c.b.csvFault, emit)
		return
	}
	for _, f := range fields() {
		name := strings.Join(f.path, ".")
		value := c.value(f.path...)
		if value != nil && (f.valid(value) || c.isTimestamp(value, f.path)) {
			continue
		}
		message := name + " has an invalid value"
		if value == nil {
			message = name + " is missing"
		}
		at := make([]any, len(f.path))
		for i, step := range f.path {
			at[i] = step
		}
		out := c.at(c.b.csv, message, at...)
		out.Field, out.Severity, out.Fix = name, f.severity, f.fix
		emit(out)
	}
}

// isTimestamp reports whether a value is a timestamp of YAML, which has more forms than a text with a time.
func (c *bundleCheck) isTimestamp(value any, path []string) bool {
	text, _ := value.(string)
	if path[len(path)-1] != "createdAt" || text == "" || !isDigit(text[0]) || !yamlTime().MatchString(text) {
		return false
	}
	file, err := bundlefs.ReadFile(c.fsys, c.b.csv)
	if err != nil {
		return false
	}
	at := canon.NewLocator(file, false).Root()
	for _, step := range path {
		at = at.In(step)
	}
	return at.Tag() == "!!timestamp"
}

// yamlTime is the form of timestamps with a time in YAML 1.1.
var yamlTime = lazyregexp.New(`^\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d`)

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// text makes a condition on values of one on texts.
func text(valid func(string) bool) func(any) bool {
	return func(v any) bool {
		s, ok := v.(string)
		return ok && valid(s)
	}
}

func oneOf(names []string) func(any) bool {
	return text(func(s string) bool { return slices.Contains(names, s) })
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

// list makes a condition on lists with at least one element of one on the elements.
func list(valid func(any) bool) func(any) bool {
	return func(v any) bool {
		all, ok := v.([]any)
		return ok && len(all) > 0 && !slices.ContainsFunc(all, func(v any) bool { return !valid(v) })
	}
}

// texts is the condition that a mapping has texts.
func texts(names ...string) func(any) bool {
	return func(v any) bool {
		m, ok := v.(map[string]any)
		return ok && !slices.ContainsFunc(names, func(name string) bool { return !isText(m[name]) })
	}
}

// atLeast is the condition that a text has so many characters.
func atLeast(n int) func(string) bool {
	return func(s string) bool { return utf8.RuneCountInString(s) >= n }
}

// firstLine makes a condition on texts of one on their first lines.
func firstLine(valid func(string) bool) func(string) bool {
	return func(s string) bool {
		first, _, _ := strings.Cut(s, "\n")
		return valid(first)
	}
}

func isCategories(s string) bool {
	for part := range strings.SplitSeq(s, ",") {
		if !slices.Contains(categories, strings.TrimSpace(part)) {
			return false
		}
	}
	return true
}

func isSemver(s string) bool {
	_, err := versions.Parse(s)
	return err == nil
}

func isIcon(v any) bool {
	m, _ := v.(map[string]any)
	data, ok := m["base64data"].(string)
	kind, _ := m["mediatype"].(string)
	data = strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) {
			return -1
		}
		return c
	}, data)
	return ok && len(data) >= 4 && isBase64(data) &&
		slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/svg+xml"}, kind)
}

// isBase64 reports whether a text is base64 in the standard alphabet. More padding than needed is taken.
func isBase64(s string) bool {
	core := strings.TrimRight(s, "=")
	padding, needed := len(s)-len(core), map[int]int{0: 0, 2: 2, 3: 1}
	_, err := base64.RawStdEncoding.DecodeString(core)
	return err == nil && padding <= 2 && padding >= needed[len(core)%4]
}
