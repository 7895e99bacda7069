//go:build !nobuildah

package evaluator

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/openshift/imagebuilder/dockerfile/command"
	"github.com/openshift/imagebuilder/dockerfile/parser"

	"github.com/operator-bindery/bindery/images"
)

// Limits against files with quadratic cost. The library appends to a word character by character, to continued lines
// and heredocs line by line, and copies the environment for every instruction.
const (
	maxLines  = 10_000
	maxStages = 1_000
	// maxEffort is how many bytes the library may copy for variables; a gigabyte takes about half a second.
	maxEffort = 8 << 30
	// effortOfVariable is the cost of one environment variable for an instruction, in copied bytes; effortOfSetting
	// that for an instruction which sets variables.
	effortOfVariable = 8 << 10
	effortOfSetting  = 32 << 10
	// maxHeredoc is the maximum length of an expanded heredoc in bytes.
	maxHeredoc = 16 << 20
	// maxNodes is the maximum number of files and directories in all stages for one platform.
	maxNodes = 500_000
)

// checkText refuses a file that the parser would need long for.
func checkText(text []byte) error {
	if len(text) > MaxText {
		return fmt.Errorf("%w: longer than %d bytes", errLimit, MaxText)
	}
	if bytes.Count(text, []byte("\n")) > maxLines {
		return fmt.Errorf("%w: more than %d lines", errLimit, maxLines)
	}
	return nil
}

// effort is the estimated cost of expanding variables.
type effort int64

func (e *effort) add(n int64) error {
	if *e += effort(min(n, maxEffort+1)); *e > maxEffort {
		return newMendError("use fewer and shorter variables", "%w: variables and their values are too large", errLimit)
	}
	return nil
}

// addWord adds the cost of expanding one word and returns the maximum length of the result. length returns the length
// of the longest value that a variable can have.
func (e *effort) addWord(word string, variables int, length func(string) int64) (int64, error) {
	n, cost := expanded(word, variables, length)
	return n, e.add(cost + square(n))
}

// expanded returns the maximum length of the expanded word and the cost of its variables.
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

// square returns the square of a length, or more than the limit for long lengths.
func square(n int64) int64 {
	if n > 1<<20 {
		return maxEffort + 1
	}
	return n * n
}

// expands reports whether the library expands variables in an instruction.
func expands(name string) bool {
	switch strings.ToLower(name) {
	case command.Run, command.Cmd, command.Entrypoint, command.Healthcheck, command.Shell, command.Maintainer,
		command.Onbuild:
		return false
	}
	return true
}

// instruction adds the cost of one instruction with an environment.
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
		if _, err := e.addWord(w, len(env), length); err != nil {
			return err
		}
	}
	// The library concatenates the lines of a heredoc once.
	for _, h := range n.Heredocs {
		if long, cost := expanded(h.Content, len(env), length); cost > maxEffort || long > maxHeredoc {
			return newMendError("use fewer and shorter variables", "%w: the heredoc %.40q can become too long", errLimit,
				h.Name)
		}
	}
	return nil
}

// arguments adds the cost of the ARG instructions, which the library processes before anything is evaluated.
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
				_, err = e.addWord(n.Next.Value, len(lengths), length)
			}
		case command.Arg:
			for w := n.Next; w != nil && err == nil; w = w.Next {
				name, value, _ := strings.Cut(w.Value, "=")
				var long int64
				if long, err = e.addWord(value, len(lengths), length); err == nil {
					err = e.add(effortOfVariable * int64(len(lengths)))
				}
				lengths[name] = max(lengths[name], long)
			}
		}
		if err != nil {
			return f.refuse(n.StartLine, n.Value, err)
		}
	}
	return nil
}

// errLimit is the class of exceeded limits.
var errLimit = images.ErrLimit
