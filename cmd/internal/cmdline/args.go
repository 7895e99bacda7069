package cmdline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/internal/nearest"
)

// Line is a command line parsed against a tree of commands.
type Line struct {
	// Path is the list of commands from the program to the named one; empty for the program itself.
	Path []*cli.Command
	// Args is the command line in the one order that the command library reads: the program's name, then each command
	// with its flags as --name=value, then "--" and the positional arguments.
	Args []string
	// Help reports whether help was requested, and All whether with all flags.
	Help, All bool
}

// Leaf returns the named command; nil for the program itself.
func (l Line) Leaf() *cli.Command {
	if len(l.Path) == 0 {
		return nil
	}
	return l.Path[len(l.Path)-1]
}

// Name returns the full name of the named command, such as "bindery list packages".
func (l Line) Name(program string) string {
	if leaf := l.Leaf(); leaf != nil && leaf.UsageText != "" {
		return leaf.UsageText
	}
	names := []string{program}
	for _, c := range l.Path {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

// Parse parses args, which start with the program's name. Flags may be before, between and after commands and
// positional arguments; "--" ends them. The forms are --flag value, --flag=value, -f value, -f=value, -fvalue, and -abc
// for flags without a value. A flag may belong to the named command, to a command above it, or to the program.
//
// On an error the Line holds what was parsed so far, so that usage can be shown. Errors are of class [ClassUsage] and
// have a hint if a known name is similar to the given one.
func Parse(app *cli.App, args []string) (Line, error) {
	p := parser{app: app, program: app.HelpName}
	p.program = cmp.Or(p.program, app.Name)
	if err := p.findPath(args[1:]); err != nil {
		return p.line, err
	}
	err := p.readFlags(args[1:])
	p.assemble(args[0])
	return p.line, err
}

type parser struct {
	app        *cli.App
	program    string
	line       Line
	named      []bool     // for each argument: it is a command's name
	verbatim   []string   // the arguments of a command that parses its own flags
	end        int        // the arguments before this index are parsed here
	flags      [][]string // normalised flags: the program's, then those of each command in the path
	positional []string
}

// commands returns the subcommands of the command found so far.
func (p *parser) commands() []*cli.Command {
	if leaf := p.line.Leaf(); leaf != nil {
		return leaf.Subcommands
	}
	return p.app.Commands
}

// findPath determines which arguments are names of commands. A flag's value is never one, even if the flag belongs to a
// command later in the line.
func (p *parser) findPath(args []string) error {
	p.named, p.end = make([]bool, len(args)), len(args)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return nil
		}
		if strings.HasPrefix(arg, "-") && arg != "-" {
			takes, err := p.takesNext(arg)
			if err != nil {
				return err
			}
			if takes {
				i++
			}
			continue
		}
		if len(p.commands()) == 0 {
			continue
		}
		if arg == "help" {
			p.named[i], p.line.Help = true, true
			continue
		}
		cmd := find(p.commands(), arg)
		if cmd == nil {
			return p.unknownCommand(arg)
		}
		p.named[i] = true
		p.line.Path = append(p.line.Path, cmd)
		if cmd.SkipFlagParsing {
			p.end, p.verbatim = i+1, args[i+1:]
			if len(p.verbatim) > 0 && slices.Contains([]string{"--help", "--" + helpAll}, p.verbatim[0]) {
				p.line.Help, p.line.All = true, true
			}
			return nil
		}
	}
	return nil
}

// takesNext reports whether the flag argument arg takes the next argument as its value.
func (p *parser) takesNext(arg string) (bool, error) {
	words, err := p.split(arg, p.allFlags())
	if err != nil {
		return false, err
	}
	last := words[len(words)-1]
	return last.takesValue && !last.hasValue, nil
}

// allFlags returns the flags that may belong to the line so far: those of the path and of every command below it.
func (p *parser) allFlags() []cli.Flag {
	var all []cli.Flag
	for _, level := range p.levels() {
		all = append(all, level...)
	}
	var walk func([]*cli.Command)
	walk = func(cmds []*cli.Command) {
		for _, c := range cmds {
			all = append(all, c.Flags...)
			walk(c.Subcommands)
		}
	}
	walk(p.commands())
	return all
}

// levels returns the flags of the named command, then those of each command above it, then the program's.
func (p *parser) levels() [][]cli.Flag {
	var levels [][]cli.Flag
	for _, c := range slices.Backward(p.line.Path) {
		levels = append(levels, c.Flags)
	}
	return append(levels, p.app.Flags)
}

// word is one flag of an argument such as -abc or --name=value.
type word struct {
	flag       cli.Flag
	takesValue bool
	hasValue   bool
	value      string
	help, all  bool
}

// helpAll is the flag that asks for help with all flags.
const helpAll = "help-all"

// split parses one argument that starts with "-", and looks names up in flags.
func (p *parser) split(arg string, flags []cli.Flag) ([]word, error) {
	name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if name == "help" || name == helpAll || name == "h" && !hasValue {
		return []word{{help: true, all: name == helpAll}}, nil
	}
	if f := findFlag(flags, name); f != nil && (len(name) > 1 || !strings.HasPrefix(arg, "--")) {
		return []word{{flag: f, takesValue: takesValue(f), hasValue: hasValue, value: value}}, nil
	}
	if strings.HasPrefix(arg, "--") {
		return nil, p.unknownFlag("--"+name, flags)
	}
	var words []word
	for rest := arg[1:]; rest != ""; {
		short := rest[:1]
		rest = rest[1:]
		if short == "h" {
			words = append(words, word{help: true})
			continue
		}
		f := findFlag(flags, short)
		if f == nil {
			return nil, p.unknownShort(short, arg, flags)
		}
		w := word{flag: f, takesValue: takesValue(f)}
		if w.takesValue && rest != "" {
			w.hasValue, w.value, rest = true, strings.TrimPrefix(rest, "="), ""
		} else if strings.HasPrefix(rest, "=") {
			w.hasValue, w.value, rest = true, rest[1:], ""
		}
		words = append(words, w)
	}
	return words, nil
}

// readFlags parses every argument again, now that the command is known, and assigns flags to the commands that define
// them.
func (p *parser) readFlags(args []string) error {
	levels := p.levels()
	p.flags = make([][]string, len(levels))
	var known []cli.Flag
	for _, level := range levels {
		known = append(known, level...)
	}
	for i := 0; i < p.end; i++ {
		arg := args[i]
		switch {
		case arg == "--":
			p.positional = append(p.positional, args[i+1:p.end]...)
			return p.surplus()
		case p.named[i]:
			continue
		case !strings.HasPrefix(arg, "-") || arg == "-":
			p.positional = append(p.positional, arg)
			continue
		}
		words, err := p.split(arg, known)
		if err != nil {
			return err
		}
		for _, w := range words {
			if w.help {
				p.line.Help, p.line.All = true, p.line.All || w.all
				continue
			}
			if w.takesValue && !w.hasValue {
				if i+1 >= p.end {
					return Usagef("flag needs an argument: %s", arg)
				}
				i++
				w.value = args[i]
			}
			p.addFlag(levels, w)
		}
	}
	return p.surplus()
}

// addFlag records a flag at the level that defines it; the named command's level comes first.
func (p *parser) addFlag(levels [][]cli.Flag, w word) {
	at := slices.IndexFunc(levels, func(fs []cli.Flag) bool { return slices.Contains(fs, w.flag) })
	text := "--" + w.flag.Names()[0]
	if w.takesValue || w.hasValue {
		text += "=" + w.value
	}
	at = len(levels) - 1 - at
	p.flags[at] = append(p.flags[at], text)
}

// surplus refuses positional arguments after "--" where only a command's name is allowed.
func (p *parser) surplus() error {
	if len(p.positional) > 0 && len(p.commands()) > 0 && !p.line.Help {
		return p.unknownCommand(p.positional[0])
	}
	return nil
}

func (p *parser) assemble(program string) {
	out := []string{program}
	for i, flags := range p.flags {
		if i > 0 {
			out = append(out, p.line.Path[i-1].Name)
		}
		out = append(out, flags...)
	}
	switch {
	case p.verbatim != nil:
		out = append(out, p.verbatim...)
	case len(p.positional) > 0:
		out = append(append(out, "--"), p.positional...)
	}
	p.line.Args = out
}

// otherNames are the names that other programs have for commands, or for a command with a flag, with what to type here.
var otherNames = map[string]string{
	"cp":            "copy IMAGE DESTINATION",
	"docs":          "man COMMAND",
	"history":       "inspect IMAGE",
	"inspect --raw": "inspect IMAGE -o json",
	"ls":            "tags REPOSITORY",
	"manifest":      "inspect IMAGE",
	"pull":          "copy NAME oci:DIR:TAG",
	"push":          "copy oci:DIR:TAG docker://NAME",
	"render-graph":  "graph CATALOG -o mermaid",
	"rmi":           "untag NAME:TAG",
}

// otherWays are flags that other programs have for a command, with what to do here in their place.
var otherWays = map[string]string{
	"graph --draw-v0-semantics": opmGraph,
	"graph --minimum-edge":      opmGraph,
	"graph --mermaid":           "-o mermaid prints the drawing for mermaid to standard output",
	"login -p":                  "other users of the machine read what is on a command line: pipe the password to --password-stdin",
	"prune -p":                  "the packages that stay are those of --keep, separated by commas",
	"prune --package":           "the packages that stay are those of --keep, separated by commas",
	"prune --packages":          "the packages that stay are those of --keep, separated by commas",
	"sign --key":                "the private key is that of --sign-key; --key of \"verify\" is the public one",
}

const opmGraph = "\"bindery alpha render-graph\" has the flags of opm, and prints its drawing, in mermaid, to standard output"

// otherWay returns what to do in place of a flag; empty if that is not known.
func (p *parser) otherWay(flag string) string {
	if last := len(p.line.Path) - 1; last >= 0 && p.program == "bindery" {
		return otherWays[p.line.Path[last].Name+" "+flag]
	}
	return ""
}

func (p *parser) unknownCommand(name string) error {
	e := Usagef("unknown command %q for %q", name, p.line.Name(p.program))
	e.Object = name
	var names []string
	for _, c := range p.commands() {
		if !c.Hidden {
			names = append(names, c.Names()...)
		}
	}
	elsewhere := p.elsewhere(name)
	near, ok := nearest.Name(name, names)
	switch {
	case len(p.line.Path) == 0 && p.program == "bindery" && otherNames[name] != "":
		e.Hint = "did you mean \"" + otherNames[name] + "\"?"
	case ok:
		e.Hint = "did you mean \"" + near + "\"?"
	case len(elsewhere) > 0:
		e.Hint = "did you mean \"" + strings.Join(elsewhere, "\" or \"") + "\"?"
	case len(p.line.Path) > 0:
		e.Hint = "its commands are " + strings.Join(names, ", ")
	}
	return e
}

// elsewhere returns the full names of commands with this name elsewhere in the tree.
func (p *parser) elsewhere(name string) []string {
	var found []string
	var walk func([]*cli.Command, []*cli.Command)
	walk = func(path, cmds []*cli.Command) {
		for _, c := range cmds {
			l := Line{Path: append(slices.Clone(path), c)}
			if c.Hidden {
				continue
			}
			if c.HasName(name) {
				found = append(found, l.Name(p.program))
			}
			walk(l.Path, c.Subcommands)
		}
	}
	walk(nil, p.app.Commands)
	return found
}

func (p *parser) unknownFlag(name string, flags []cli.Flag) error {
	e := Usagef("unknown flag: %s", name)
	e.Object = name
	var names []string
	for _, f := range flags {
		for _, n := range f.Names() {
			if len(n) > 1 {
				names = append(names, n)
			}
		}
	}
	bare := strings.TrimLeft(name, "-")
	near, ok := nearest.Name(bare, names)
	for _, n := range names {
		// --default-channel for --default, --max-image for --max-image-size.
		if !ok && (strings.HasPrefix(bare, n+"-") || strings.HasPrefix(n, bare+"-")) {
			near, ok = n, true
		}
	}
	command := ""
	if last := len(p.line.Path) - 1; last >= 0 {
		command = p.line.Path[last].Name + " " + name
	}
	switch {
	case p.otherWay(name) != "":
		e.Hint = p.otherWay(name)
	case otherNames[command] != "":
		e.Hint = "did you mean \"" + otherNames[command] + "\"?"
	case ok:
		e.Hint = "did you mean \"--" + near + "\"?"
	}
	return e
}

func (p *parser) unknownShort(short, arg string, flags []cli.Flag) error {
	// For -output or -outptu the hint is the long name, --output.
	if len(arg) > 3 {
		name, _, _ := strings.Cut(arg[1:], "=")
		if e, ok := p.unknownFlag("--"+name, flags).(*Error); ok && e.Hint != "" {
			e.Err = Usagef("unknown flag: -%s", name).Err
			return e
		}
	}
	e := Usagef("unknown shorthand flag: '%s' in %s", short, arg)
	e.Object = arg
	if e.Hint = p.otherWay("-" + short); e.Hint == "" && short == "v" && p.program == "bindery" {
		e.Hint = "\"--log-level debug\" says more"
	}
	return e
}

func find(cmds []*cli.Command, name string) *cli.Command {
	for _, c := range cmds {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

func findFlag(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}
