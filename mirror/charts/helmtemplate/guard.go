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
	maxMade   = 128 << 20 // bytes of all texts and lists that functions make; known charts make 4 MiB
	maxNested = 200       // lists in lists
	maxDepth  = 2000      // templates in templates
	maxBlocks = 1000      // blocks in blocks of the text of a template
)

// engine renders one chart, in one goroutine.
type engine struct {
	ctx      context.Context
	funcs    template.FuncMap
	known    map[string]any // names that are functions, for the parser
	included map[string]int
	depth    int   // of templates
	made     int   // bytes that functions have made
	output   int   // bytes of manifests
	parsed   load  // what templates are held in memory
	err      error // the innermost error of templates in templates
}

func tooMuch(what string, limit int) error {
	return fmt.Errorf("%w: %s (limit %d)", fault.ErrLimit, what, limit)
}

// Names of functions that templates cannot call: the parser does not know them.
const (
	tickName, enterName, leaveName = "guardTick", "guardEnter", "guardLeave"
	shownName, madeName            = "guardShown", "guardMade"
)

// making are the methods of objects that make texts and lists.
var making = words("Get GetBytes Glob AsConfig AsSecrets Lines YAML")

// comparing are functions of Go that write out what they cannot compare.
var comparing = words("eq ne lt le gt ge")

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
			return v, size(v.Interface(), written)
		},
		madeName: func(v reflect.Value) (reflect.Value, error) {
			if !v.IsValid() {
				return v, nil
			}
			return v, e.count("a method", v)
		},
	}
}

// innermost returns the error that came first: each template around it would write it out again.
func (e *engine) innermost(err error) error {
	if e.err == nil {
		e.err = err
	}
	return e.err
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
		methods(t, b.Pipe)
		each(t, b.List)
		each(t, b.ElseList)
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.TemplateNode:
			methods(t, n.Pipe)
		case *parse.ActionNode:
			methods(t, n.Pipe)
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

// methods adds a call after each call of a method that makes texts or lists, and around what is compared.
func methods(t *parse.Tree, pipe *parse.PipeNode) {
	if pipe == nil {
		return
	}
	var cmds []*parse.CommandNode
	piped := func(arg parse.Node, guard string) parse.Node {
		return &parse.PipeNode{NodeType: parse.NodePipe, Pos: arg.Position(), Cmds: []*parse.CommandNode{
			{NodeType: parse.NodeCommand, Pos: arg.Position(), Args: []parse.Node{arg}}, command(t, guard, arg.Position())}}
	}
	for i, cmd := range pipe.Cmds {
		name, ok := cmd.Args[0].(*parse.IdentifierNode)
		compares := ok && comparing[name.Ident]
		if compares && i > 0 {
			cmds = append(cmds, command(t, shownName, cmd.Pos))
		}
		cmds = append(cmds, cmd)
		for i, arg := range cmd.Args {
			var path []string
			switch arg := arg.(type) {
			case *parse.PipeNode:
				methods(t, arg)
			case *parse.FieldNode:
				path = arg.Ident
			case *parse.VariableNode:
				path = arg.Ident
			case *parse.ChainNode:
				path = arg.Field
				if inner, ok := arg.Node.(*parse.PipeNode); ok {
					methods(t, inner)
				}
			}
			switch {
			case !slices.ContainsFunc(path, func(name string) bool { return making[name] }):
			case i == 0:
				cmds = append(cmds, command(t, madeName, cmd.Pos))
			default:
				cmd.Args[i] = piped(arg, madeName)
			}
			switch arg.(type) {
			case *parse.PipeNode, *parse.FieldNode, *parse.VariableNode, *parse.ChainNode, *parse.DotNode:
				if compares {
					cmd.Args[i] = piped(cmd.Args[i], shownName)
				}
			}
		}
	}
	pipe.Cmds = cmds
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

// A measure says what counts of a value beside its items.
type measure struct {
	text  int // for each byte of a text
	bytes int // for each byte of a file
}

var (
	written = measure{1, 4} // a value that is written out; files are lists of numbers then
	copied  = measure{0, 1} // one that is copied or compared
)

// size fails if a value is too large for what is done with it, and for lists in lists without end.
func size(v any, m measure) error {
	_, err := sized(v, m)
	return err
}

// sized returns about how many bytes a value has when it is written out.
func sized(v any, m measure) (int, error) {
	left := maxText
	if !m.of(v, 0, &left) {
		return 0, tooMuch("a value that is written out has more bytes or levels", maxText)
	}
	return maxText - left, nil
}

func (m measure) of(v any, depth int, left *int) bool {
	if *left -= 8 + 2*depth*m.text; *left < 0 || depth > maxNested {
		return false
	}
	text := func(s string) bool {
		*left -= len(s) * m.text
		if depth > 8 {
			*left -= strings.Count(s, "\n") * 2 * depth * m.text
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
			if !text(key) || !m.of(value, depth+1, left) {
				return false
			}
		}
		return true
	case []any:
		for _, value := range v {
			if !m.of(value, depth+1, left) {
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
			if !m.of(i.Key().Interface(), depth+1, left) || !m.of(i.Value().Interface(), depth+1, left) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if r.Type().Elem().Kind() == reflect.Uint8 {
			*left -= m.bytes * r.Len()
			return *left >= 0
		}
		for i := range r.Len() {
			if !m.of(r.Index(i).Interface(), depth+1, left) {
				return false
			}
		}
	case reflect.Pointer:
		return r.IsNil() || !r.Elem().CanInterface() || m.of(r.Elem().Interface(), depth+1, left)
	case reflect.Struct:
		for i := range r.NumField() {
			if f := r.Field(i); f.CanInterface() && !m.of(f.Interface(), depth+1, left) {
				return false
			}
		}
	}
	return true
}
