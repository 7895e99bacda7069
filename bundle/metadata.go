package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/shape"
)

// metadata reads the files of the metadata directory. It reports whether there is one.
func (r *reader) metadata(ctx context.Context) (bool, error) {
	b := r.b
	b.Annotations = maps.Clone(r.options.Labels)
	if b.Annotations == nil {
		b.Annotations = map[string]string{}
	}
	defer r.identity()
	files, dirs, err := r.list(b.MetadataDir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !r.isDir(b.MetadataDir) {
		return false, nil
	}
	if err != nil {
		return false, r.failed(b.MetadataDir, err)
	}
	for _, d := range dirs {
		if !strings.HasPrefix(d, "..") {
			r.warn(Problem{Rule: RuleDirectory, File: path.Join(b.MetadataDir, d),
				Message: "a directory within the metadata is passed over"})
		}
	}
	for _, name := range files {
		if err := r.metadataFile(ctx, path.Join(b.MetadataDir, name)); err != nil {
			return true, err
		}
	}
	return true, nil
}

// metadataFile reads the sections of a metadata file: each is searched for in all files, and the first file that has it
// counts.
func (r *reader) metadataFile(ctx context.Context, file string) error {
	at := len(r.b.strict)
	useful := false
	err := r.eachDocument(ctx, file, func(d canon.Doc, json []byte, _ int64) bool {
		if r.document > 0 {
			r.warn(Problem{Rule: RuleDocuments, File: file, Line: d.Line, Message: "a second document is passed over"})
			return false
		}
		jsonscan.Members(json, func(key, value []byte) bool {
			switch string(key) {
			case "annotations":
				useful = r.annotations(file, value) || useful
			case "dependencies":
				useful = r.dependencies(file, value) || useful
			case "properties":
				useful = r.properties(file, value) || useful
			}
			return true
		})
		return true
	})
	// OLM v1 does not open files with other names.
	if base := path.Base(file); base != AnnotationsName && base != "properties.yaml" {
		r.b.strict = r.b.strict[:at]
	}
	if err == nil && !useful && !slices.ContainsFunc(r.b.Problems, func(p Problem) bool { return p.File == file }) {
		r.warn(Problem{Rule: RuleFile, File: file,
			Message: "neither annotations nor dependencies nor properties: the file is passed over"})
	}
	return err
}

// annotations reads a map of annotations. It reports whether it is that of a bundle.
func (r *reader) annotations(file string, value []byte) bool {
	b := r.b
	found := map[string]string{}
	ok := value[0] == '{'
	jsonscan.Members(value, func(key, value []byte) bool {
		name, _ := jsonscan.Text(slices.Concat([]byte{'"'}, key, []byte{'"'}))
		s, isText := jsonscan.Text(value)
		if !isText && string(value) != "null" {
			r.addProblem(r.problem(RuleAnnotations, annotation(file, name),
				"the value of an annotation "+shape.Mismatch(shape.Of(value), shape.String, string(value))))
			// Of the known annotations opm checks only this.
			ok = ok && !slices.Contains([]string{AnnotationPackage, AnnotationChannels, AnnotationDefaultChannel}, name)
			return true
		}
		found[name] = s
		return true
	})
	// A plain+v0 bundle need not be in a package.
	named := found[AnnotationPackage] != "" || found[AnnotationChannels] != "" || found[AnnotationDefaultChannel] != ""
	if !ok || !named && found[AnnotationMediaType] != string(PlainV0) {
		return false
	}
	if b.AnnotationsFile != "" {
		r.addProblem(Problem{Rule: RuleAnnotationsTwo, File: file,
			Message: fmt.Sprintf("a second file with annotations is passed over: %s comes first", b.AnnotationsFile)})
		return true
	}
	b.AnnotationsFile = file
	maps.Copy(b.Annotations, found)
	return true
}

// identity takes package and channels from the annotations.
func (r *reader) identity() {
	b := r.b
	b.Package = b.Annotations[AnnotationPackage]
	b.DefaultChannel = b.Annotations[AnnotationDefaultChannel]
	if channels := b.Annotations[AnnotationChannels]; channels != "" {
		b.Channels = strings.Split(channels, ",")
	}
	for _, c := range append(slices.Clone(b.Channels), b.DefaultChannel) {
		if why := badName(c); why != "" {
			r.fatal(r.problem(RuleName, annotation(b.AnnotationsFile, AnnotationChannels),
				fmt.Sprintf("invalid name %s of a channel: %s", fault.Quote(c), why)))
		}
	}
}

// dependencies reads a list of dependencies. It reports whether it is one.
func (r *reader) dependencies(file string, value []byte) bool {
	list, ok := r.typed(file, "dependencies", value, r.dependency)
	if !ok {
		return false
	}
	if len(list) > 0 && len(r.b.Dependencies) > 0 {
		r.addProblem(Problem{Rule: RuleDependency, File: file, Message: "a second list of dependencies is passed over"})
		return true
	}
	r.b.declared = append(r.b.declared, list...)
	for _, d := range list {
		r.b.Dependencies = append(r.b.Dependencies, Dependency(d.Property))
	}
	return true
}

// properties reads a list of properties. It reports whether it is one.
func (r *reader) properties(file string, value []byte) bool {
	list, ok := r.typed(file, "properties", value, func(Declaration) bool { return true })
	if !ok {
		return false
	}
	if len(list) > 0 && len(r.b.Properties) > 0 {
		r.addProblem(Problem{Rule: RuleProperty, File: file, Message: "a second list of properties is passed over"})
		return true
	}
	r.b.declared = append(r.b.declared, list...)
	for _, d := range list {
		r.b.Properties = append(r.b.Properties, d.Property)
	}
	return true
}

// typed reads a list of types with values, without those that keep refuses.
func (r *reader) typed(file, field string, list []byte, keep func(Declaration) bool) ([]Declaration, bool) {
	if string(list) == "null" {
		return nil, true
	}
	rule := RuleProperty
	if field == "dependencies" {
		rule = RuleDependency
	}
	here := bundlefs.Place{File: file, Path: []any{field}}
	if list[0] != '[' {
		r.refuseAt(here, rule, shape.Mismatch(shape.Of(list), shape.Array, "")+" of types and values")
		return nil, false
	}
	var out []Declaration
	n := 0
	jsonscan.Elements(list, func(item []byte) bool {
		here := placeBelow(here, n)
		n++
		given := jsonscan.Member(item, "type")
		typ, isText := jsonscan.Text(given)
		value := jsonscan.Member(item, "value")
		switch {
		case item[0] != '{':
			r.addProblem(r.problem(rule, here, shape.Mismatch(shape.Of(item), shape.Mapping, "")+
				" with type and value: it is passed over"))
		case given != nil && string(given) != "null" && !isText:
			r.addProblem(r.problem(rule, placeBelow(here, "type"),
				shape.Mismatch(shape.Of(given), shape.String, string(given))+": it is passed over"))
		case typ == "":
			r.addProblem(r.problem(rule, here, "type must be set: it is passed over"))
		case value == nil:
			r.addProblem(r.problem(rule, here, fmt.Sprintf("value of the type %s must be set: it is passed over",
				fault.Quote(typ))))
		default:
			d := Declaration{Property: declcfg.Property{Type: typ, Value: slices.Clone(value)}, Rule: rule, File: file,
				Path: placeBelow(here, "value").Path}
			if keep(d) {
				out = append(out, d)
			}
		}
		return true
	})
	return out, true
}
