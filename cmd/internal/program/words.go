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

// Words puts advice, which is written in the words of bindery, into those of the name that the program was started
// under: all hints and, under the name oc-mirror, all messages go through it.
func (p *Program) Words(text string) string {
	if p.InWords != nil {
		return p.InWords(text)
	}
	if !p.HasFlag("jobs") {
		text = withoutJobs.Replace(text)
	}
	if name := p.Typed(); name != "bindery" {
		text = otherName.ReplaceAllString(text, "${1}"+name+" ")
	}
	return text
}

// WithHintInWords puts the hint of an error into the words of the name.
func (p *Program) WithHintInWords(err error) error {
	var e *cmdline.Error
	if !errors.As(err, &e) || e.Hint == "" {
		return err
	}
	own := *e
	own.Hint, own.Err = p.Words(e.Hint), err
	return &own
}

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
