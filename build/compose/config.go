package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/shape"
	"github.com/operator-bindery/bindery/render"
)

// Limits of a configuration file.
const (
	maxConfig     = 3 << 19 // with two bytes per value, longer YAML would need too much memory
	maxReferences = 5000
	maxText       = 1000
)

// schemaField names the schema of the file. Editors read it, and nothing here does.
const schemaField = "$schema"

// Config says what a catalog is composed of, and what the image is called. Its form is that of the documentation:
//
//	name: community-operators
//	repo: quay.io/community-operators/catalog
//	tag: latest
//	references:
//	- name: etcd-operator
//	  image: quay.io/etcd-operator/index@sha256:...
type Config struct {
	// Name is that of the catalog; Repo and Tag are the image's, empty if not set.
	Name, Repo, Tag string
	References      []Reference
}

// Reference is an image of the catalog of one package.
type Reference struct {
	// Name is that of the package. Image is any name that [images.Client.Open] accepts.
	Name, Image string
	// Line is its line in the file, counted from 1.
	Line int
}

// Problem is an error in a configuration file.
type Problem = problem.Problem

// Read reads a configuration file in YAML or JSON. Unknown fields are refused, since a misspelled one would be ignored.
// Up to a hundred problems are reported; each is a [Problem] of the class [images.ErrInvalid].
func Read(r io.Reader, file string) (*Config, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	if err != nil {
		return nil, err
	}
	c := &reader{file: file}
	if len(text) > maxConfig {
		c.wrong(nil, "", "longer than %d bytes", maxConfig)
		return nil, c.problems.Err()
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		c.wrong(nil, "", "it is empty")
		return nil, c.problems.Err()
	case err == nil && len(doc.Content) == 0:
		c.wrong(nil, "", "it is empty")
		return nil, c.problems.Err()
	case err != nil:
		c.syntax(err)
		return nil, c.problems.Err()
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		c.wrong(&more, "", "it has more than one document: one file describes one catalog")
	}
	c.document(doc.Content[0])
	return &c.config, c.problems.Err()
}

// reader reads a configuration and collects its problems.
type reader struct {
	file     string
	config   Config
	problems problem.List[Problem]
}

func (c *reader) wrong(n *yaml.Node, field, format string, args ...any) {
	p := Problem{Place: problem.Place{File: c.file}, Field: field, Text: fmt.Sprintf(format, args...), Err: fault.ErrInvalid}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	c.problems.Add(p)
}

// syntax adds an error of the YAML library, which names the line if it knows it.
func (c *reader) syntax(err error) {
	p := Problem{Place: problem.Place{File: c.file}, Text: strings.TrimPrefix(err.Error(), "yaml: "), Err: fault.ErrInvalid}
	if n, _ := fmt.Sscanf(p.Text, "line %d: ", &p.Line); n == 1 {
		_, p.Text, _ = strings.Cut(p.Text, ": ")
	}
	c.problems.Add(p)
}

func (c *reader) document(n *yaml.Node) {
	fields := c.readFields(n, "", "name", "repo", "tag", "references")
	if fields == nil {
		return
	}
	c.config.Name = c.readText(fields["name"], "name")
	c.config.Repo = c.readText(fields["repo"], "repo")
	c.config.Tag = c.readText(fields["tag"], "tag")
	refs := fields["references"]
	switch {
	case refs == nil:
		c.wrong(n, "references", "missing: a list with a name and an image each")
		return
	case refs.Kind != yaml.SequenceNode:
		c.wrong(refs, "references", "%s", shape.Mismatch(kindOf(refs), shape.Array, ""))
		return
	case len(refs.Content) == 0:
		c.wrong(refs, "references", "empty")
	case len(refs.Content) > maxReferences:
		c.wrong(refs, "references", "more than %d", maxReferences)
		return
	}
	lines := map[string]int{}
	for i, r := range refs.Content {
		at := fmt.Sprintf("references[%d]", i)
		fields := c.readFields(r, at, "name", "image")
		if fields == nil {
			continue
		}
		ref := Reference{Name: c.readText(fields["name"], at+".name"), Image: c.readText(fields["image"], at+".image"),
			Line: r.Line}
		if c.required(r, fields, at, "name") {
			if err := checkName(ref.Name); err != nil {
				c.wrong(fields["name"], at+".name", "%v", err)
			} else if line, twice := lines[ref.Name]; twice {
				c.wrong(fields["name"], at+".name", "duplicate of %q in line %d", ref.Name, line)
			} else {
				lines[ref.Name] = fields["name"].Line
			}
		}
		if c.required(r, fields, at, "image") {
			if err := checkImage(ref.Image); err != nil {
				c.wrong(fields["image"], at+".image", "%v", err)
			}
		}
		c.config.References = append(c.config.References, ref)
	}
}

// required reports whether a field has a value, and adds a problem if it has none. An invalid value has one already.
func (c *reader) required(n *yaml.Node, fields map[string]*yaml.Node, at, name string) bool {
	switch f := fields[name]; {
	case f == nil:
		c.wrong(n, at+"."+name, "missing")
	case f.Kind == yaml.ScalarNode && f.Value == "" || f.Tag == "!!null":
		c.wrong(f, at+"."+name, "empty")
	default:
		return f.Kind == yaml.ScalarNode
	}
	return false
}

// readFields returns those of an object; nil for another value.
func (c *reader) readFields(n *yaml.Node, at string, known ...string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		c.wrong(n, at, "%s with the fields %s", shape.Mismatch(kindOf(n), shape.Mapping, ""), strings.Join(known, ", "))
		return nil
	}
	out := map[string]*yaml.Node{}
next:
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if at == "" && key.Value == schemaField {
			c.readText(value, schemaField)
			continue
		}
		for _, k := range known {
			if key.Kind != yaml.ScalarNode || key.Value != k {
				continue
			}
			if out[k] != nil {
				c.wrong(key, at, "duplicate field %q", k)
			}
			out[k] = value
			continue next
		}
		c.wrong(key, at, "unknown field %.100q: %s", key.Value, shape.Suggest(key.Value, known))
	}
	return out
}

// kindOf returns what a value is.
func kindOf(n *yaml.Node) shape.Kind {
	switch n.Kind {
	case yaml.MappingNode:
		return shape.Mapping
	case yaml.SequenceNode:
		return shape.Array
	}
	switch n.ShortTag() {
	case "!!null":
		return shape.Null
	case "!!bool":
		return shape.Boolean
	case "!!int", "!!float":
		return shape.Number
	}
	return shape.String
}

// readText returns the value of a field that must be text. Numbers are accepted as written: a tag may look like one.
func (c *reader) readText(n *yaml.Node, field string) string {
	switch {
	case n == nil:
		return ""
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		c.wrong(n, field, "anchors and aliases are not supported here")
	case n.Kind != yaml.ScalarNode:
		c.wrong(n, field, "%s", shape.Mismatch(kindOf(n), shape.String, ""))
	case n.Tag == "!!null":
	case len(n.Value) > maxText || strings.ContainsFunc(n.Value,
		func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }):
		c.wrong(n, field, "%.100q has spaces or control characters, or more than %d bytes", n.Value, maxText)
	default:
		return n.Value
	}
	return ""
}

// checkName refuses invalid package names.
func checkName(name string) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "/\\,") {
		return fmt.Errorf("%.100q cannot be the name of a package", name)
	}
	return nil
}

// checkImage refuses anything but the full name of an image. A local file needs a transport, such as oci:.
func checkImage(name string) error {
	if render.CheckName(name) != nil {
		return fmt.Errorf(
			"%.200q is not the name of an image: REGISTRY/REPOSITORY:TAG, REGISTRY/REPOSITORY@DIGEST, oci:DIR:TAG",
			redact.Text(name))
	}
	return nil
}

// Replace replaces the images of references by name, and adds missing references, sorted.
func (c *Config) Replace(by map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(by)) {
		errs = append(errs, checkName(name), checkImage(by[name]))
		at := slices.IndexFunc(c.References, func(r Reference) bool { return r.Name == name })
		if at < 0 {
			c.References = append(c.References, Reference{Name: name, Image: by[name]})
			continue
		}
		c.References[at].Image = by[name]
	}
	return errors.Join(errs...)
}
