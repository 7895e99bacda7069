package main

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
)

// opmGlobals are global flags of opm that a server ignores.
var opmGlobals = [...]string{"skip-tls-verify", "use-http", "skip-tls"}

func isGlobalFlag(arg string) bool {
	name, ok := strings.CutPrefix(arg, "--")
	name, _, _ = strings.Cut(name, "=")
	return ok && (slices.Contains(opmGlobals[:], name) || name == "debug")
}

// parser parses flags as opm does: before or after positional arguments, "--name value", "--name=value", "-n value" and
// "-nvalue".
type parser struct {
	*flag.FlagSet
	shorthands string // the one-letter flags that take a value
	usage      string
}

func newParser(usage string) *parser {
	p := &parser{FlagSet: flag.NewFlagSet("opm", flag.ContinueOnError), usage: usage}
	p.SetOutput(io.Discard)
	for _, name := range opmGlobals {
		p.Bool(name, false, "")
	}
	return p
}

// stringVar defines a flag with an optional one-letter name.
func (p *parser) stringVar(v *string, name, short, value string) {
	p.StringVar(v, name, value, "")
	if short != "" {
		p.StringVar(v, short, value, "")
		p.shorthands += short
	}
}

func (p *parser) intVar(v *int, name, short string, value int) {
	p.IntVar(v, name, value, "")
	if short != "" {
		p.IntVar(v, short, value, "")
		p.shorthands += short
	}
}

// parse returns the positional arguments.
func (p *parser) parse(args []string) ([]string, error) {
	var rest, positional []string
	for i, a := range args {
		if a == "--" {
			args, rest = args[:i], args[i+1:]
			break
		}
	}
	args = p.expand(args)
	for len(args) > 0 {
		if err := p.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			text := strings.ReplaceAll(err.Error(), "flag provided but not defined: -", "unknown flag: --")
			return nil, usageError{errors.New(text), p.usage}
		}
		args = p.Args()
		if len(args) > 0 {
			positional = append(positional, args[0])
			args = args[1:]
		}
	}
	return append(positional, rest...), nil
}

// expand splits one-letter flags from the values attached to them.
func (p *parser) expand(args []string) []string {
	var out []string
	for _, a := range args {
		if len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.IndexByte(p.shorthands, a[1]) >= 0 {
			out = append(out, a[:2], strings.TrimPrefix(a[2:], "="))
			continue
		}
		out = append(out, a)
	}
	return out
}
