package bundle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/versions"
)

// Declaration is a property, or an entry of dependencies.yaml, that a bundle declares in metadata or in the annotation
// olm.properties.
type Declaration struct {
	declcfg.Property
	// Rule is [RuleProperty] or [RuleDependency].
	Rule string
	// File has the value at Path, a path of keys (string) and indices (int), or text with it. Line is 0, or the first
	// line of the document.
	File string
	Line int
	Path []any
}

// Declared returns what the bundle declares: the entries of the metadata in the order of the files, then those of the
// annotation.
func (b *Bundle) Declared() []Declaration { return b.declared }

func (d Declaration) place(below ...any) bundlefs.Place {
	return bundlefs.Place{File: d.File, Line: d.Line, Path: slices.Concat(d.Path, below)}
}

// checkDeclared checks what the bundle declares by the parser of catalogs, and against the bundle itself.
func (r *reader) checkDeclared() {
	once := map[string]bundlefs.Place{}
	for _, d := range r.b.declared {
		if err := d.Check(); err != nil {
			path, text := bundlefs.TypeProblem(d.Value, err)
			// Rendering decodes these two.
			needed := d.Type == declcfg.PropertyGVK || d.Type == declcfg.PropertyPackage
			r.refuse(d, path, needed, fmt.Sprintf("the type %s: %s", fault.Quote(d.Type), text))
			continue
		}
		if d.Rule != RuleProperty {
			continue
		}
		r.checkOwn(d)
		r.checkRequirement(d)
		d.Property.VersionNumbers(func(path []any, number string) {
			r.warn(r.problem(RuleVersionNumber, d.place(path...), numberMessage(number)))
		})
		if first, ok := once[d.Type]; ok {
			line, _ := r.lines.Find(first)
			r.warn(r.problem(rulePropertyTwice, d.place(), fmt.Sprintf(
				"a second property %s: the first one is in %s:%d, and OLM takes none of two; remove one",
				fault.Quote(d.Type), first.File, line)))
		} else if d.Property.Single() {
			once[d.Type] = d.place()
		}
	}
}

// checkOwn refuses a property olm.package that contradicts the bundle: it would replace package and version in a
// catalog.
func (r *reader) checkOwn(d Declaration) {
	if d.Type != declcfg.PropertyPackage || r.b.CSV == nil {
		return
	}
	is := property.Package{PackageName: r.b.Package, Version: r.b.CSV.Version, Release: r.b.CSV.Release}
	says := is
	if json.Unmarshal(d.Value, &says) != nil {
		return // has been refused
	}
	if _, err := declcfg.ParseRelease(says.Release); err != nil && says.Release != is.Release {
		r.refuse(d, []any{"release"}, false, err.Error())
		return
	}
	var path []any
	switch {
	case says.PackageName != is.PackageName:
		path = []any{"packageName"}
	case says.Version != is.Version && is.Version != "":
		path = []any{"version"}
	case says.Release != is.Release && is.Release != "":
		path = []any{"release"}
	default:
		return
	}
	r.refuse(d, path, false, fmt.Sprintf("the property names version %s of the package %s, and the bundle is version "+
		"%s of %s: remove it, it follows from the annotations and the ClusterServiceVersion",
		fault.Quote(versionText(says)), fault.Quote(says.PackageName), fault.Quote(versionText(is)),
		fault.Quote(is.PackageName)))
}

// checkRequirement reports names and ranges that OLM finds nothing by. A catalog with them is valid.
func (r *reader) checkRequirement(d Declaration) {
	switch d.Type {
	case declcfg.PropertyGVK, declcfg.PropertyGVKRequired:
		r.reportMissing(d, "group", "API Group is empty")
		r.reportMissing(d, "version", "API Version is empty")
		r.reportMissing(d, "kind", "API Kind is empty")
	case declcfg.PropertyPackageRequired:
		r.reportMissing(d, "packageName", "Package name is empty")
		r.needsRange(d, "versionRange")
	}
}

// reportMissing reports a field of a value that is not set.
func (r *reader) reportMissing(d Declaration, field, message string) {
	if jsonscan.TextAt(d.Value, field) == "" {
		r.addProblem(r.problem(d.Rule, d.place(), fmt.Sprintf("%s: set %s to text", message, field)))
	}
}

// needsRange reports a field that should be a range of versions and is not.
func (r *reader) needsRange(d Declaration, field string) {
	if why := RangeProblem(jsonscan.TextAt(d.Value, field)); why != "" {
		r.addProblem(r.problem(d.Rule, d.place(field), why))
	}
}

// RangeProblem says what is wrong with a range of versions; it is empty for a valid one.
func RangeProblem(text string) string {
	if text == "" {
		return "Package version is empty"
	}
	if _, err := versions.ParseRange(text); err != nil {
		return fmt.Sprintf("Invalid semver format version: %v", err)
	}
	return ""
}

func versionText(p property.Package) string {
	return strings.TrimSuffix(p.Version+" "+p.Release, " ")
}

// refuse reports what no catalog can hold. Unless rendering needs it, it can be rendered all the same.
func (r *reader) refuse(d Declaration, path []any, needed bool, message string) {
	if needed {
		r.fatal(r.problem(d.Rule, d.place(path...), message))
		return
	}
	r.refuseAt(d.place(path...), d.Rule, message)
}

// refuseAt reports what no catalog can hold and rendering does not need.
func (r *reader) refuseAt(at bundlefs.Place, rule, message string) {
	if r.options.AnyProperties {
		r.addProblem(r.problem(rule, at, message))
		return
	}
	r.fatal(r.problem(rule, at, message))
}

func annotation(file, key string) bundlefs.Place {
	return bundlefs.Place{File: file, Path: []any{"annotations", key}}
}

// placeBelow returns the place of a value in the value at a place.
func placeBelow(at bundlefs.Place, path ...any) bundlefs.Place {
	at.Path = slices.Concat(at.Path, path)
	return at
}

func (r *reader) problem(rule string, at bundlefs.Place, message string) Problem {
	p := Problem{Rule: rule, File: at.File, Field: canon.PathName(at.Path), Message: message}
	p.Line, p.Column = r.lines.Find(at)
	return p
}

// numberMessage says what becomes of a number that is meant to be a version.
func numberMessage(number string) string {
	written := string(appendOpm(nil, []byte(number)))
	if written != number {
		return fmt.Sprintf("the version %s is a number, which becomes %s: put it in quotes", number, written)
	}
	return fmt.Sprintf("the version %s is a number: put it in quotes", number)
}
