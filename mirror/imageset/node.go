package imageset

import (
	"errors"
	"fmt"
	"strconv"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/internal/bounds"
)

// node is an object of a configuration whose types have been checked: a value of another type is gone.
type node struct {
	r      *reader
	fields map[string]any
	at     canon.Place
	path   string
}

func (n node) field(name string) string {
	if n.path == "" {
		return name
	}
	return n.path + "." + name
}

func (n node) text(name string) string {
	s, _ := n.fields[name].(string)
	return s
}

func (n node) flag(name string) bool {
	b, _ := n.fields[name].(bool)
	return b
}

func (n node) object(name string) (node, bool) {
	fields, ok := n.fields[name].(map[string]any)
	return node{n.r, fields, n.at.In(name), n.field(name)}, ok
}

// objects returns the objects of a list, without values of other types. A null item is an empty object.
func (n node) objects(name string) []node {
	items, _ := n.fields[name].([]any)
	out := make([]node, 0, len(items))
	for i, item := range items {
		if _, wrong := item.(misfit); wrong {
			continue
		}
		fields, _ := item.(map[string]any)
		out = append(out, node{n.r, fields, n.at.In(name).In(i), fmt.Sprintf("%s[%d]", n.field(name), i)})
	}
	return out
}

// line returns the line of the object, 0 if it is unknown.
func (n node) line() int {
	line, _ := n.at.Position()
	if line > 0 {
		line += n.r.first
	}
	return line
}

// wrong adds a problem of a field.
func (n node) wrong(name, what, fix string) { n.r.problems.Add(n.problem(name, what, fix)) }

// problem returns a problem of a field, at its value if it has one.
func (n node) problem(name, what, fix string) Problem {
	at := n.at
	if n.fields[name] != nil {
		at = n.at.In(name)
	}
	return n.r.problem(at, n.field(name), what, fix)
}

// misfit reports whether a field has a value of a wrong type.
func (n node) misfit(name string) bool {
	_, is := n.fields[name].(misfit)
	return is
}

// platformForm is a platform as it is written.
type platformForm struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
}

func platforms(list []v1.Platform) []platformForm {
	var out []platformForm
	for _, p := range list {
		out = append(out, platformForm{p.OS, p.Architecture})
	}
	return out
}

func (n node) platforms() []v1.Platform {
	var out []v1.Platform
	for _, p := range n.objects("platforms") {
		got := v1.Platform{OS: p.text("os"), Architecture: p.text("architecture")}
		if (got.OS == "" || got.Architecture == "") && !p.misfit("os") && !p.misfit("architecture") {
			n.r.wrong(p.at, p.path, "platform OS and architecture must not be empty", "such as os: linux, "+
				"architecture: amd64")
		}
		out = append(out, got)
	}
	return out
}

// checkVersions checks the bounds of a package or a channel and reports whether there are any.
func (n node) checkVersions() bool {
	for _, name := range []string{"minVersion", "maxVersion"} {
		if text := n.text(name); text != "" {
			if _, err := bounds.Parse(text); err != nil {
				n.wrong(name, "must respect semantic versioning notation: "+err.Error(), "")
			}
		}
	}
	return n.text("minVersion") != "" || n.text("maxVersion") != ""
}

// checkTarget checks a path at the destination.
func (n node) checkTarget(name string) {
	if value := n.text(name); value != "" {
		if err := checkPath(value); err != nil {
			n.wrong(name, err.Error(), "components of a-z and 0-9, joined by . _ __ or dashes, with / between them")
		}
	}
}

// checkRegistry checks that the image that a field names has a registry.
func (n node) checkRegistry(name string, image Ref) error {
	err := image.CheckRegistry()
	var none *NoRegistryError
	if errors.As(err, &none) {
		n.wrong(name, err.Error(), none.Fix())
	}
	return err
}

// checkTag checks a tag at the destination.
func (n node) checkTag(name string) {
	if value := n.text(name); value != "" && !tagExpr().MatchString(value) {
		n.wrong(name, fault.Quote(value)+" is no tag", "letters, digits, _ . and -, at most 128, the first no . or -")
	}
}

// checkUnique checks the name of a package or a channel.
func (n node) checkUnique(what, name string, lines map[string]int) {
	line, twice := lines[name]
	switch {
	case n.misfit("name"):
	case name == "":
		n.wrong("name", what+" without a name: name must be specified", "")
	case twice:
		n.wrong("name", "duplicate "+what+" entry "+fault.Quote(name)+", as in "+lineName(line), "join the two")
	default:
		lines[name] = n.line()
	}
}

// lineName is how a message calls a line.
func lineName(line int) string {
	if line == 0 {
		return "the file before"
	}
	return "line " + strconv.Itoa(line)
}
