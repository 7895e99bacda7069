package program

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// Typed is how the program is called under the name that it was started under.
func (p *Program) Typed() string {
	switch {
	case p.Opm:
		return OpmName
	case p.Name == KubectlPlugin:
		return "kubectl bindery"
	}
	return "bindery"
}

// The ends of a copy, as the flags begin that are for one of them.
const (
	Source      = "src"
	Destination = "dest"
)

// Words puts advice, which is written in the words of bindery, into those of the name that the program was started
// under: all hints and, under the name oc-mirror, all messages go through it.
func (p *Program) Words(text string) string { return p.WordsFor(text, "") }

// WordsFor is like Words, for advice about one end of a copy: it names the flags for this end where the command has
// them. Text that was put into words stays as it is.
func (p *Program) WordsFor(text, end string) string {
	if p.InWords != nil {
		return p.InWords(text, end)
	}
	if !p.HasFlag("jobs") {
		text = withoutJobs.Replace(text)
	}
	if name := p.Typed(); name != "bindery" {
		text = otherName.ReplaceAllString(text, "${1}"+name+" ")
	}
	if end == "" {
		return text
	}
	return flagOrQuoted.ReplaceAllStringFunc(text, func(flag string) string {
		if of := end + "-" + strings.TrimLeft(flag, "-"); p.HasFlag(of) {
			return "--" + of
		}
		return flag
	})
}

// WithHintInWords puts the hint of an error into the words of the name, and leaves out what the command has no flags for.
func (p *Program) WithHintInWords(err error) error {
	var e *cmdline.Error
	if !errors.As(err, &e) || e.Hint == "" {
		return err
	}
	own := *e
	own.Hint, own.Err = p.helpful(p.Words(e.Hint)), err
	return &own
}

// helpful leaves out the clauses of a hint that name a flag which the command does not have. What is in quotes is another
// command.
func (p *Program) helpful(hint string) string {
	if p.Line.Leaf() == nil {
		return hint
	}
	all := append(p.GlobalFlags(), p.Line.Leaf().Flags...)
	for _, above := range p.Line.Path {
		all = append(all, above.Flags...)
	}
	foreign := func(part string) bool {
		return slices.ContainsFunc(flagOrQuoted.FindAllString(part, -1), func(flag string) bool {
			name := strings.TrimLeft(flag, "-")
			return flag[0] != '"' && !slices.ContainsFunc(all, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
		})
	}
	kept, from, dropped := "", 0, false
	for _, end := range append(clauseEnd.FindAllStringIndex(hint, -1), []int{len(hint), len(hint)}) {
		clause := hint[from:end[0]]
		switch from = end[0]; {
		case foreign(clause):
			dropped = true
		case kept == "" && dropped:
			kept = clauseEnd.ReplaceAllString(clause, "")
		default:
			kept += clause
		}
	}
	return kept
}

// clauseEnd is between two clauses of a hint.
var clauseEnd = regexp.MustCompile(`; |, (?:or|and) `)

// flagOrQuoted is the name of a flag, or a text in quotes.
var flagOrQuoted = regexp.MustCompile(`"[^"]*"|--[a-z][a-z0-9.-]*`)

// withoutJobs leaves out a flag that not all commands with hints about registries have.
var withoutJobs = strings.NewReplacer("log in, wait, or lower --jobs", "log in, or wait", ", or lower --jobs", "")

// otherName is the beginning of a command in a text.
var otherName = regexp.MustCompile(`(^|"|\| |: )bindery `)

// HasFlag reports whether the current command has a flag.
func (p *Program) HasFlag(name string) bool {
	leaf := p.Line.Leaf()
	has := func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }
	return leaf != nil && slices.ContainsFunc(leaf.Flags, has)
}
