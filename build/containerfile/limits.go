//go:build !nobuildah

package containerfile

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/openshift/imagebuilder/dockerfile/command"
	"github.com/openshift/imagebuilder/dockerfile/parser"

	"github.com/operator-bindery/bindery/images"
)

// What a Containerfile may ask for. The library adds a word to itself character by character, a continued line and a heredoc line
// by line, and copies the environment for every instruction: all of this takes the square of what it is given.
const (
	maxLines  = 10_000
	maxStages = 1_000
	// maxEffort is how many bytes the library may move for variables; a gigabyte takes about half a second.
	maxEffort = 8 << 30
	// effortOfVariable is what one variable of the environment costs an instruction, in such bytes, and effortOfSetting what it
	// costs one that sets variables.
	effortOfVariable = 8 << 10
	effortOfSetting  = 32 << 10
	// maxHeredoc is how long a heredoc can become, in bytes.
	maxHeredoc = 16 << 20
	// maxNodes is how many files and directories all stages may have for one platform.
	maxNodes = 500_000
)

// checkText refuses what could take the parser long.
func checkText(text []byte) error {
	if len(text) > MaxText {
		return fmt.Errorf("%w: longer than %d bytes", errLimit, MaxText)
	}
	if bytes.Count(text, []byte("\n")) > maxLines {
		return fmt.Errorf("%w: more than %d lines", errLimit, maxLines)
	}
	return nil
}

// effort counts what the values of variables cost.
type effort int64

func (e *effort) add(n int64) error {
	if *e += effort(min(n, maxEffort+1)); *e > maxEffort {
		return withMend("use fewer and shorter variables", "%w: variables and their values are too large", errLimit)
	}
	return nil
}

// word counts one word with its variables, of whose values length returns the longest, and returns how long it can become.
func (e *effort) word(word string, variables int, length func(string) int64) (int64, error) {
	n, cost := expanded(word, variables, length)
	return n, e.add(cost + square(n))
}

// expanded is how long a word can become, and what its variables cost.
func expanded(word string, variables int, length func(string) int64) (n, cost int64) {
	n = int64(len(word))
	for rest := word; cost <= maxEffort; {
		var found bool
		if _, rest, found = strings.Cut(rest, "$"); !found {
			break
		}
		name := strings.TrimPrefix(rest, "{")
		braced := len(name) < len(rest)
		end := strings.IndexFunc(name, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		})
		if end < 0 {
			end = len(name)
		}
		value := min(length(name[:end]), maxEffort)
		n = min(n+value, maxEffort)
		cost += 16 * int64(variables)
		if !braced || end == len(name) {
			continue
		}
		switch name[end] {
		case '#', '%': // every prefix or suffix is compared with a pattern
			cost += square(value + int64(len(word)))
		case '/': // and every part, each of which can become the other text
			cost += min(square(value), maxEffort) * min(value+int64(len(word)), 1<<20)
			n = min(n+min(value, 1<<20)*min(n, 1<<20), maxEffort)
		}
	}
	return n, cost
}

// square of a length, which is no more than is allowed.
func square(n int64) int64 {
	if n > 1<<20 {
		return maxEffort + 1
	}
	return n * n
}

// expands reports whether the library looks for variables in an instruction.
func expands(name string) bool {
	switch strings.ToLower(name) {
	case command.Run, command.Cmd, command.Entrypoint, command.Healthcheck, command.Shell, command.Maintainer, command.Onbuild:
		return false
	}
	return true
}

// instruction counts one instruction with an environment.
func (e *effort) instruction(n *parser.Node, env []string) error {
	each := int64(effortOfVariable)
	if name := strings.ToLower(n.Value); name == command.Env || name == command.Arg {
		each = effortOfSetting
	}
	if err := e.add(each * int64(len(env))); err != nil || !expands(n.Value) {
		return err
	}
	lengths := map[string]int64{}
	for _, set := range env {
		name, value, _ := strings.Cut(set, "=")
		lengths[name] = max(lengths[name], int64(len(value)))
	}
	length := func(name string) int64 { return lengths[name] }
	words := append([]string(nil), n.Flags...)
	for w := n.Next; w != nil; w = w.Next {
		words = append(words, w.Value)
	}
	for _, w := range words {
		if _, err := e.word(w, len(env), length); err != nil {
			return err
		}
	}
	// The content of heredocs is put together in one go.
	for _, h := range n.Heredocs {
		if long, cost := expanded(h.Content, len(env), length); cost > maxEffort || long > maxHeredoc {
			return withMend("use fewer and shorter variables", "%w: the heredoc %.40q can become too long", errLimit, h.Name)
		}
	}
	return nil
}

// arguments counts what the library does with ARG before anything is evaluated.
func (f *File) arguments(root *parser.Node, args, builtin map[string]string) error {
	var e effort
	lengths := map[string]int64{}
	for _, m := range []map[string]string{args, builtin} {
		for name, value := range m {
			lengths[name] = max(lengths[name], int64(len(value)))
		}
	}
	length := func(name string) int64 { return lengths[name] }
	stages := 0
	for _, n := range root.Children {
		var err error
		switch strings.ToLower(n.Value) {
		case command.From:
			if stages++; stages > maxStages {
				err = fmt.Errorf("%w: more than %d stages", errLimit, maxStages)
				break
			}
			if err = e.add(effortOfVariable * int64(len(lengths))); err == nil && n.Next != nil {
				_, err = e.word(n.Next.Value, len(lengths), length)
			}
		case command.Arg:
			for w := n.Next; w != nil && err == nil; w = w.Next {
				name, value, _ := strings.Cut(w.Value, "=")
				var long int64
				if long, err = e.word(value, len(lengths), length); err == nil {
					err = e.add(effortOfVariable * int64(len(lengths)))
				}
				lengths[name] = max(lengths[name], long)
			}
		}
		if err != nil {
			return Problems{f.asProblem(n.StartLine, n.Value, err)}
		}
	}
	return nil
}

// errLimit is something that is larger than it may be.
var errLimit = images.ErrLimit
