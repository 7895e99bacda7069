package catalogql

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/graphql-go/graphql/gqlerrors"
	"github.com/graphql-go/graphql/language/ast"
	"github.com/graphql-go/graphql/language/location"
	"github.com/graphql-go/graphql/language/parser"
	"github.com/graphql-go/graphql/language/source"
)

// maxLine is the length of the longest line that is given to the parser. For a syntax error it takes time that grows
// with the square of the column.
const maxLine = 4 << 10

// parse parses a query. The error is that of the library, with the text of the query.
func parse(query string) (*ast.Document, error) {
	if tooNested(query) != nil {
		return nil, tooNested(query)
	}
	broken := query
	if longestLine(query) > maxLine {
		broken = breakLines(query)
		if longestLine(broken) > maxLine {
			return nil, fmt.Errorf("query has a name, text or comment of more than %d bytes", maxLine)
		}
	}
	src := source.NewSource(&source.Source{Body: []byte(broken)})
	doc, err := parser.Parse(parser.ParseParams{Source: src})
	// The library looks for all ends of lines for each error. Without a text it takes every position for a column.
	src.Body = nil
	syntax := (*gqlerrors.Error)(nil)
	switch {
	case err == nil:
		return doc, checkVariables(doc, query)
	case broken != query && errors.As(err, &syntax) && len(syntax.Positions) > 0:
		return nil, fmt.Errorf("query parse error: %s", unbroken(syntax, query, broken))
	}
	return nil, fmt.Errorf("query parse error: %w", err)
}

// checkVariables returns an error for a variable without a whole type, which the parser lets pass, and on which the library
// panics when it validates or executes the document. Definitions of types have the same hole, but are not looked into.
func checkVariables(doc *ast.Document, query string) error {
	for _, d := range doc.Definitions {
		var variables []*ast.VariableDefinition
		switch d := d.(type) {
		case *ast.OperationDefinition:
			variables = d.VariableDefinitions
		case *ast.FragmentDefinition:
			variables = d.VariableDefinitions
		}
		for _, v := range variables {
			if !isWhole(v.Type) {
				at := linesOf(query).at(v.Loc.Start)
				return fmt.Errorf("query parse error: Syntax Error GraphQL (%d:%d) Variable $%s has no type, or a part of one",
					at.Line, at.Column, v.Variable.Name.Value)
			}
		}
	}
	return nil
}

// isWhole tells whether a type ends in a name.
func isWhole(t ast.Type) bool {
	switch t := t.(type) {
	case *ast.Named:
		return true
	case *ast.List:
		return isWhole(t.Type)
	case *ast.NonNull:
		return isWhole(t.Type)
	}
	return false
}

func longestLine(query string) int {
	longest, begin := 0, 0
	for _, end := range linesOf(query) {
		longest, begin = max(longest, end[0]-begin), end[1]
	}
	return max(longest, len(query)-begin)
}

// breakLines returns a query with ends of lines in place of the spaces and commas between its tokens. It returns a
// query with characters beyond ASCII as it is: the parser counts these differently.
func breakLines(query string) string {
	broken := []byte(query)
	for i := 0; i < len(query); i++ {
		switch c := query[i]; {
		case c >= 0x80:
			return query
		case c == ' ' || c == '\t' || c == ',':
			broken[i] = '\n'
		case c == '#':
			for i+1 < len(query) && query[i+1] != '\n' && query[i+1] != '\r' {
				i++
				if query[i] >= 0x80 {
					return query
				}
			}
		case c == '"':
			n := textLength(query[i:])
			if strings.ContainsFunc(query[i:i+n], func(r rune) bool { return r >= 0x80 }) {
				return query
			}
			i += n - 1
		}
	}
	return string(broken)
}

// textLength returns the length of the string at the beginning of a text.
func textLength(text string) int {
	if rest, ok := strings.CutPrefix(text, `"""`); ok {
		for i := 0; i < len(rest); i++ {
			switch {
			case strings.HasPrefix(rest[i:], `\"""`):
				i += 3
			case strings.HasPrefix(rest[i:], `"""`):
				return 3 + i + 3
			}
		}
		return len(text)
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		case '\n', '\r':
			return i
		}
	}
	return len(text)
}

// unbroken returns the message for a query whose lines were broken, with the place and the lines of the query itself.
func unbroken(e *gqlerrors.Error, query, broken string) string {
	position := e.Positions[0]
	description, _ := strings.CutSuffix(e.Message, "\n\n"+excerpt(broken, linesOf(broken).at(position)))
	_, description, _ = strings.Cut(description, ") ")
	at := linesOf(query).at(position)
	return fmt.Sprintf("Syntax Error GraphQL (%d:%d) %s\n\n%s", at.Line, at.Column, description, excerpt(query, at))
}

var ends = regexp.MustCompile("\r\n|[\n\r]")

// excerpt returns the line of a place between its neighbours, and a mark below it, as the library does.
func excerpt(query string, at location.SourceLocation) string {
	all := ends.Split(query, -1)
	width := len(fmt.Sprint(at.Line + 1))
	var b strings.Builder
	line := func(n int) {
		fmt.Fprintf(&b, "%*d: ", width, n)
		for _, r := range all[n-1] {
			if r >= 0x20 {
				b.WriteRune(r)
			} else {
				fmt.Fprintf(&b, `\u%04X`, r)
			}
		}
		b.WriteByte('\n')
	}
	if at.Line >= 2 {
		line(at.Line - 1)
	}
	line(at.Line)
	b.WriteString(strings.Repeat(" ", 1+width+at.Column))
	b.WriteString("^\n")
	if at.Line < len(all) {
		line(at.Line + 1)
	}
	return b.String()
}
