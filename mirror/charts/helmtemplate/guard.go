package helmtemplate

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/operator-bindery/bindery/internal/fault"
)

// What templates may use. Go's templates cannot be interrupted from outside, and memory is not bounded by them. So:
//
//   - Every template, every turn of a range and every action calls a function that looks at the context and, for
//     templates, counts their depth: the trees are changed after parsing ([instrument]).
//   - Every function of templates is wrapped ([engine.wrap]): texts and lists that it makes count for all that a chart may
//     make, and arguments that are written out are measured before: a map can contain itself.
//   - What is printed is measured before, and written to buffers with a limit.
const (
	maxOutput = 64 << 20  // bytes of the manifests of a chart
	maxText   = 16 << 20  // bytes of one text
	maxItems  = 1_000_000 // items of one list
	maxMade   = 512 << 20 // bytes of all texts and lists that functions make
	maxNested = 200       // lists in lists
	maxDepth  = 4000      // templates in templates
	maxBlocks = 1000      // blocks in blocks of the text of a template
)

// engine renders one chart, in one goroutine.
type engine struct {
	ctx      context.Context
	funcs    template.FuncMap
	known    map[string]any // names that are functions, for the parser
	included map[string]int
	depth    int // of templates
	made     int // bytes that functions have made
	output   int // bytes of manifests
}

func tooMuch(what string, limit int) error {
	return fmt.Errorf("%w: %s (limit %d)", fault.ErrLimit, what, limit)
}

// Names of functions that templates cannot call: the parser does not know them.
const tickName, enterName, leaveName, shownName = "guardTick", "guardEnter", "guardLeave", "guardShown"

// guards are the functions that [instrument] adds calls of.
func (e *engine) guards() template.FuncMap {
	return template.FuncMap{
		tickName: func() (string, error) { return "", e.check() },
		enterName: func() (string, error) {
			if e.depth++; e.depth > maxDepth {
				return "", tooMuch("templates in templates", maxDepth)
			}
			return "", e.check()
		},
		leaveName: func() string { e.depth--; return "" },
		// The value remains what it is: one that can be addressed is printed by its methods.
		shownName: func(v reflect.Value) (reflect.Value, error) {
			if !v.IsValid() || v.Kind() == reflect.String || !v.CanInterface() {
				return v, nil
			}
			_, err := size(v.Interface(), maxText)
			return v, err
		},
	}
}

func (e *engine) check() error {
	if e.ctx.Err() != nil {
		return context.Cause(e.ctx)
	}
	return nil
}

// make counts n bytes that a function has made.
func (e *engine) make(n int) error {
	if e.made += n; e.made > maxMade {
		return tooMuch("its templates make more bytes", maxMade)
	}
	return nil
}

// bounded is the output of one template.
type bounded struct {
	strings.Builder
	e *engine
}

func (b *bounded) Write(p []byte) (int, error) {
	most := maxText
	if b.Len()+len(p) > most {
		return 0, tooMuch("the output of a template has more bytes", most)
	}
	if err := b.e.make(len(p)); err != nil {
		return 0, err
	}
	return b.Builder.Write(p)
}

// WriteString is here so that the builder's is not used.
func (b *bounded) WriteString(s string) (int, error) { return b.Write([]byte(s)) }

// instrument adds calls of the guards to a parsed template.
func instrument(t *parse.Tree) {
	if t.Root == nil || parse.IsEmptyTree(t.Root) {
		return // an empty definition does not replace another one, so it must remain empty
	}
	each(t, t.Root)
	t.Root.Nodes = slices.Concat([]parse.Node{call(t, enterName, t.Root.Pos)}, t.Root.Nodes,
		[]parse.Node{call(t, leaveName, t.Root.Pos)})
}

func each(t *parse.Tree, list *parse.ListNode) {
	if list == nil {
		return
	}
	branch := func(b *parse.BranchNode) {
		each(t, b.List)
		each(t, b.ElseList)
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, command(t, shownName, n.Pos))
			}
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		case *parse.RangeNode:
			branch(&n.BranchNode)
			n.List.Nodes = slices.Insert(n.List.Nodes, 0, call(t, tickName, n.Pos))
		}
	}
}

func command(t *parse.Tree, name string, pos parse.Pos) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos,
		Args: []parse.Node{parse.NewIdentifier(name).SetPos(pos).SetTree(t)}}
}

func call(t *parse.Tree, name string, pos parse.Pos) parse.Node {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos,
		Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Cmds: []*parse.CommandNode{command(t, name, pos)}}}
}

// checkNesting bounds the blocks in blocks of a text: the parser and the executor call themselves for each.
func checkNesting(text string) error {
	depth, outer := 0, []int(nil)
	for {
		_, rest, found := strings.Cut(text, "{{")
		if !found {
			return nil
		}
		text = rest
		word := strings.TrimLeft(strings.TrimPrefix(text, "-"), " \t\r\n")
		if i := strings.IndexFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }); i >= 0 {
			word = word[:i]
		}
		switch word {
		case "if", "with", "range", "block", "define":
			outer = append(outer, depth)
			depth++
		case "else":
			depth++
		case "end":
			if n := len(outer); n > 0 {
				depth, outer = outer[n-1], outer[:n-1]
			}
		}
		if depth > maxBlocks {
			return tooMuch("blocks in blocks", maxBlocks)
		}
	}
}

// size returns about how many bytes a value has when it is written out. A value of more bytes than most, or of lists in
// lists without end, is an error.
func size(v any, most int) (int, error) {
	left := most
	if !measure(v, 0, &left) {
		return 0, tooMuch("a value that is written out has more bytes or levels", most)
	}
	return most - left, nil
}

func measure(v any, depth int, left *int) bool {
	if *left -= 8 + 2*depth; *left < 0 || depth > maxNested {
		return false
	}
	text := func(s string) bool {
		*left -= len(s)
		if depth > 8 {
			*left -= strings.Count(s, "\n") * 2 * depth
		}
		return *left >= 0
	}
	switch v := v.(type) {
	case nil, bool, int, int64, float64:
		return true
	case string:
		return text(v)
	case map[string]any:
		for key, value := range v {
			if !text(key) || !measure(value, depth+1, left) {
				return false
			}
		}
		return true
	case []any:
		for _, value := range v {
			if !measure(value, depth+1, left) {
				return false
			}
		}
		return true
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.String:
		return text(r.String())
	case reflect.Map:
		for i := r.MapRange(); i.Next(); {
			if !measure(i.Key().Interface(), depth+1, left) || !measure(i.Value().Interface(), depth+1, left) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if r.Type().Elem().Kind() == reflect.Uint8 { // printed as numbers
			*left -= 4 * r.Len()
			return *left >= 0
		}
		for i := range r.Len() {
			if !measure(r.Index(i).Interface(), depth+1, left) {
				return false
			}
		}
	case reflect.Pointer:
		return r.IsNil() || !r.Elem().CanInterface() || measure(r.Elem().Interface(), depth+1, left)
	case reflect.Struct:
		for i := range r.NumField() {
			if f := r.Field(i); f.CanInterface() && !measure(f.Interface(), depth+1, left) {
				return false
			}
		}
	}
	return true
}
