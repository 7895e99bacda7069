package schemagen

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// source is what is read of the source of a package.
type source struct {
	comments  map[string]string   // by "Type" and "Type.Field"
	constants map[string][]string // the values of texts, by their type
}

// source reads a package of the module, with its tests: types may be declared there. A package of another module has
// nothing.
func (g *Generator) source(path string) *source {
	if s := g.packages[path]; s != nil {
		return s
	}
	if g.packages == nil {
		g.packages = map[string]*source{}
	}
	s := &source{comments: map[string]string{}, constants: map[string][]string{}}
	g.packages[path] = s
	below, ok := strings.CutPrefix(path, g.Module+"/")
	if !ok {
		return s
	}
	dir := filepath.Join(g.Dir, filepath.FromSlash(strings.TrimSuffix(below, "_test"))) // also of tests from outside
	files, err := os.ReadDir(dir)
	if err != nil {
		return s
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".go" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, d := range parsed.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				s.declaration(d)
			}
		}
	}
	return s
}

func (s *source) declaration(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc.Text()
			if doc == "" && len(d.Specs) == 1 {
				doc = d.Doc.Text()
			}
			s.comments[spec.Name.Name] = doc
			s.fields(spec.Type, spec.Name.Name)
		case *ast.ValueSpec:
			s.constant(spec)
		}
	}
}

// fields reads the comments of the fields of a struct, also in lists and maps of structs without a name.
func (s *source) fields(e ast.Expr, path string) {
	switch e := e.(type) {
	case *ast.StarExpr:
		s.fields(e.X, path)
	case *ast.ArrayType:
		s.fields(e.Elt, path)
	case *ast.MapType:
		s.fields(e.Value, path)
	case *ast.StructType:
		names := map[string]bool{}
		for _, f := range e.Fields.List {
			for _, name := range f.Names {
				names[name.Name] = true
			}
		}
		above := ""
		for _, f := range e.Fields.List {
			if doc := f.Doc.Text() + f.Comment.Text(); doc != "" {
				above = doc
			}
			for _, name := range f.Names {
				s.comments[path+"."+name.Name] = about(above, name.Name, f.Doc != nil || f.Comment != nil, names)
				s.fields(f.Type, path+"."+name.Name)
			}
		}
	}
}

// about returns the sentences of a comment that are about a field: those that follow its name. A comment of the field
// itself that does not begin with a name is about it as a whole.
func about(comment, field string, own bool, fields map[string]bool) string {
	sentences := strings.SplitAfter(strings.Join(strings.Fields(comment), " "), ". ")
	var found []string
	begun := own
	if first, _, _ := strings.Cut(sentences[0], " "); fields[first] {
		begun = false
	}
	for _, sentence := range sentences {
		first, _, _ := strings.Cut(sentence, " ")
		if fields[first] {
			begun = first == field || own && strings.Contains(sentence, " "+field+" ")
		}
		if begun {
			found = append(found, sentence)
		}
	}
	if len(found) == 0 && own {
		found = sentences
	}
	return strings.Join(found, "")
}

// constant reads a constant of a named type whose value is written as text.
func (s *source) constant(spec *ast.ValueSpec) {
	of, ok := spec.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, v := range spec.Values {
		if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				s.constants[of.Name] = append(s.constants[of.Name], text)
			}
		}
	}
}

// comment returns the comment of a type or a field in one line, without what is only for readers of Go.
func (g *Generator) comment(pkg, name string) string {
	text := g.source(pkg).comments[name]
	text, _, _ = strings.Cut(text, "\n\n")
	text = goLink.ReplaceAllString(text, "$1")
	return strings.TrimSpace(strings.Join(strings.Fields(text), " "))
}

var goLink = regexp.MustCompile(`\[\*?([A-Za-z.]+)\]`)

// fieldComment returns the comment of a field, which begins with the name of the member.
func (g *Generator) fieldComment(at place, field, member string) string {
	text := g.comment(at.pkg, at.path)
	if rest, ok := strings.CutPrefix(text, field+" "); ok {
		text = member + " " + rest
	}
	return text
}

// typeComment returns the comment of a type without its name: "What a run has done."
func (g *Generator) typeComment(t reflect.Type) string {
	text := g.comment(t.PkgPath(), t.Name())
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(text, t.Name()+verb); ok && rest != "" {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return text
}
