package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/versions"
)

// verdict is whether a bundle meets a need.
type verdict int

const (
	no verdict = iota
	maybe
	yes
)

// need is something that a bundle requires to be there. It is met by one bundle.
type need struct {
	// kind is the type of the property; text says what is wanted, and identifies the need.
	kind, text string
	// pkg is the package that has to meet it, if it names one.
	pkg  string
	test func(*facts) verdict
	// err says why it cannot be evaluated.
	err error
}

// facts are what needs ask of a bundle.
type facts struct {
	pkg     string
	version semver.Version
	known   bool // version is known
	gvks    map[property.GVK]bool
}

func factsOf(b *declcfg.Bundle) *facts {
	f := &facts{pkg: b.Package}
	v, err := versionOf(b)
	f.version, f.known = v, err == nil
	for _, p := range b.Properties {
		var gvk property.GVK
		if p.Type == declcfg.PropertyGVK && decode(p.Value, &gvk) == nil {
			if f.gvks == nil {
				f.gvks = map[property.GVK]bool{}
			}
			f.gvks[gvk] = true
		}
	}
	return f
}

// maxValue bounds the size of a property that is read here, maxNesting the depth of constraints.
const (
	maxValue   = 1 << 20
	maxNesting = 20
)

func decode(value json.RawMessage, into any) error {
	if len(value) > maxValue {
		return fmt.Errorf("%w: a property of %d bytes", fault.ErrLimit, len(value))
	}
	return json.Unmarshal(value, into)
}

// constraint is the value of an olm.constraint property.
type constraint struct {
	FailureMessage string `json:"failureMessage"`
	Package        *struct {
		PackageName  string `json:"packageName"`
		VersionRange string `json:"versionRange"`
	} `json:"package"`
	GVK  *property.GVK   `json:"gvk"`
	CEL  json.RawMessage `json:"cel"`
	All  *compound       `json:"all"`
	Any  *compound       `json:"any"`
	Not  *compound       `json:"not"`
	None *compound       `json:"none"`
}

type compound struct {
	Constraints []constraint `json:"constraints"`
}

// needsOf returns what a bundle requires.
func needsOf(b *declcfg.Bundle) []need {
	var out []need
	for _, p := range b.Properties {
		n := need{kind: p.Type}
		switch p.Type {
		case declcfg.PropertyPackageRequired:
			var v property.PackageRequired
			if n.err = decode(p.Value, &v); n.err == nil {
				n = packageNeed(v.PackageName, v.VersionRange)
			}
		case declcfg.PropertyGVKRequired:
			var v property.GVK
			if n.err = decode(p.Value, &v); n.err == nil {
				n = gvkNeed(v)
			}
		case declcfg.PropertyConstraint:
			var c constraint
			if n.err = decode(p.Value, &c); n.err == nil {
				n = c.need(0)
			}
			if n.text != "" && c.FailureMessage != "" {
				n.text += ": " + fault.Short(c.FailureMessage)
			}
		default:
			continue
		}
		n.kind = p.Type
		if n.text == "" {
			n.text = "unreadable: " + fault.Short(string(bytes.TrimSpace(p.Value)))
		}
		out = append(out, n)
	}
	return out
}

func packageNeed(name, text string) need {
	n := need{pkg: name, text: "package " + fault.Quote(name) + " " + fault.Short(text)}
	in, err := versions.ParseRange(text)
	switch {
	case errors.Is(err, versions.ErrLong):
		n.err = fmt.Errorf("%w: a version range of %d bytes", fault.ErrLimit, len(text))
		return n
	case err != nil:
		n.err = fmt.Errorf("version range %s: %w", fault.Quote(text), err)
		return n
	}
	n.test = func(f *facts) verdict {
		if f.pkg == name && f.known && in.Contains(f.version) {
			return yes
		}
		return no
	}
	return n
}

func gvkNeed(v property.GVK) need {
	return need{text: fault.Short(v.Kind + "." + v.Version + "." + v.Group),
		test: func(f *facts) verdict {
			if f.gvks[v] {
				return yes
			}
			return no
		}}
}

// need returns the need that a constraint is. Expressions of CEL are not evaluated: they may be met.
func (c *constraint) need(depth int) need {
	var set []need
	if depth > maxNesting {
		return need{text: "a constraint", err: fmt.Errorf("%w: constraints nested deeper than %d", fault.ErrLimit,
			maxNesting)}
	}
	if c.Package != nil {
		set = append(set, packageNeed(c.Package.PackageName, c.Package.VersionRange))
	}
	if c.GVK != nil {
		set = append(set, gvkNeed(*c.GVK))
	}
	if len(c.CEL) > 0 {
		set = append(set, need{text: "a CEL expression", test: func(*facts) verdict { return maybe }})
	}
	for _, part := range []struct {
		word  string
		of    *compound
		judge func([]verdict) verdict
	}{{"all of", c.All, slices.Min[[]verdict]}, {"any of", c.Any, slices.Max[[]verdict]},
		{"none of", c.Not, noneOf}, {"none of", c.None, noneOf}} {
		if part.of != nil {
			set = append(set, part.of.need(part.word, part.judge, depth))
		}
	}
	if len(set) != 1 {
		return need{text: "a constraint", err: fmt.Errorf("it has %d kinds of constraints in place of one", len(set))}
	}
	return set[0]
}

// noneOf is the verdict on constraints of which none may be met.
func noneOf(v []verdict) verdict { return yes - slices.Max(v) }

// need joins the needs of a compound constraint.
func (c *compound) need(word string, judge func([]verdict) verdict, depth int) need {
	out := need{text: word}
	var tests []func(*facts) verdict
	for i := range c.Constraints {
		n := c.Constraints[i].need(depth + 1)
		if n.err != nil {
			return n
		}
		out.text += " (" + n.text + ")"
		tests = append(tests, n.test)
	}
	out.text = fault.Short(out.text)
	if len(tests) == 0 {
		out.err = fmt.Errorf("%q without constraints", word)
		return out
	}
	out.test = func(f *facts) verdict {
		got := make([]verdict, len(tests))
		for i, test := range tests {
			got[i] = test(f)
		}
		return judge(got)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
