//go:build !nobuildah

package evaluator

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openshift/imagebuilder"
	"github.com/openshift/imagebuilder/dockerfile/command"
	"github.com/openshift/imagebuilder/dockerfile/parser"
)

// MaxText is the maximum length of a Containerfile in bytes.
const MaxText = 256 << 10

// File is a parsed Containerfile.
type File struct {
	// Name is the name in messages.
	Name string
	text []byte
	// Warnings are the parser's warnings.
	Warnings []string
}

// Parse parses a Containerfile. All unknown instructions are reported together; an error is [Problems].
func Parse(name string, text []byte) (*File, error) {
	f := &File{Name: name, text: text}
	if err := checkText(text); err != nil {
		return nil, f.refuse(0, "", err)
	}
	switch {
	case !utf8.Valid(text) || bytes.ContainsRune(text, 0):
		return nil, f.refuse(0, "", errors.New("not UTF-8 text"))
	}
	root, err := f.parse()
	if err != nil {
		return nil, f.refuse(f.lineOf(err), "", err)
	}
	if err := f.check(root); err != nil {
		return nil, err
	}
	return f, nil
}

// parse returns a new syntax tree: evaluating changes it.
func (f *File) parse() (*parser.Node, error) {
	r, err := parser.Parse(bytes.NewReader(f.text))
	if err != nil {
		return nil, err
	}
	f.Warnings = nil
	for _, w := range r.Warnings {
		f.Warnings = append(f.Warnings, strings.TrimPrefix(w, "[WARNING]: "))
	}
	if len(r.AST.Children) == 0 {
		return nil, errors.New("it has no instructions")
	}
	return r.AST, nil
}

// lineOf returns the number of the line at which the parser fails, which its error does not contain. It parses ever
// longer beginnings of the file.
func (f *File) lineOf(err error) int {
	ends := []int{}
	for i, c := range f.text {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	ends = append(ends, len(f.text))
	until := time.Now().Add(time.Second) // a time limit: a missing line number is acceptable
	n := sort.Search(len(ends), func(i int) bool {
		if time.Now().After(until) {
			return false
		}
		_, e := parser.Parse(bytes.NewReader(f.text[:ends[i]]))
		return e != nil && e.Error() == err.Error()
	})
	if n == len(ends) || time.Now().After(until) {
		return 0
	}
	return n + 1
}

// instructions are the known ones.
var instructions = []string{
	command.Add, command.Arg, command.Cmd, command.Copy, command.Entrypoint, command.Env, command.Expose, command.From,
	command.Healthcheck,
	command.Label, command.Maintainer, command.Onbuild, command.Run, command.Shell, command.StopSignal, command.User,
	command.Volume, command.Workdir,
}

// check finds the problems that do not depend on arguments.
func (f *File) check(root *parser.Node) error {
	var ps Problems
	from := false
	for _, n := range root.Children {
		name := strings.ToLower(n.Value)
		switch {
		case !slices.Contains(instructions, name):
			ps.Add(f.asProblem(n.StartLine, "",
				newMendError("instructions are "+strings.ToUpper(strings.Join(instructions, ", ")),
					"unknown instruction %.40q", n.Value)))
		case (name == command.From || name == command.Arg) && n.Next == nil:
			// The library would report these without a line number.
			from = from || name == command.From
			ps.Add(f.asProblem(n.StartLine, n.Value, errors.New("it needs an argument")))
		case name == command.From:
			from = true
		case !from && name != command.Arg:
			ps.Add(f.asProblem(n.StartLine, n.Value, newMendError("put FROM before it", "no stage has begun")))
		}
	}
	if !from {
		ps.Add(f.asProblem(0, "", newMendError("begin with FROM scratch, or with an image", "it has no FROM")))
	}
	return ps.Err()
}

// stages splits the file into stages with the given arguments.
func (f *File) stages(args, builtin map[string]string) (imagebuilder.Stages, map[*parser.Node]int, error) {
	root, err := f.parse()
	if err != nil {
		return nil, nil, err
	}
	if err := f.arguments(root, args, builtin); err != nil {
		return nil, nil, err
	}
	froms := []int{}
	for _, n := range root.Children {
		if n.Value == command.From {
			froms = append(froms, n.StartLine)
		}
	}
	b := imagebuilder.NewBuilder(args)
	maps.Copy(b.BuiltinArgDefaults, builtin)
	all, err := imagebuilder.NewStages(root, b)
	if err != nil {
		return nil, nil, f.refuse(0, "", err)
	}
	lines := map[*parser.Node]int{}
	for i, s := range all {
		if i < len(froms) {
			lines[s.Node] = froms[i]
		}
	}
	return all, lines, nil
}
