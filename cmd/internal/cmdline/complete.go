package cmdline

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/internal/printable"
)

// Candidate is one completion of the last word.
type Candidate struct{ Word, Usage string }

// Completion is the answer to a shell's request.
type Completion struct {
	Candidates []Candidate
	// Files reports whether a file name is possible.
	Files bool
}

// choices finds the values of a flag in its usage text: "output format (json|yaml)".
var choices = regexp.MustCompile(`\(([a-z0-9-]+(?:\|[a-z0-9-]+)+)\)`)

// Complete returns the completions of the last of words; the words before it are the line so far without the program's
// name. An incomplete or wrong line gives fewer candidates and never an error. Names of packages, channels and bundles
// are those of the catalog on the line; names may be nil.
func Complete(app *cli.App, words []string, names Names) Completion {
	if len(words) == 0 {
		words = []string{""}
	}
	words = joinEquals(words)
	current, before := words[len(words)-1], words[:len(words)-1]
	p := parser{app: app}
	if p.findPath(before) != nil {
		return Completion{}
	}
	if leaf := p.line.Leaf(); leaf != nil && leaf.SkipFlagParsing || slices.Contains(before, "--") {
		return Completion{Files: true}
	}
	if n := len(before); n > 0 && strings.HasPrefix(before[n-1], "-") {
		if ws, err := p.split(before[n-1], p.allFlags()); err == nil {
			if last := ws[len(ws)-1]; last.takesValue && !last.hasValue {
				return p.values(last.flag, before[:n-1], "", current, names)
			}
		}
	}
	if strings.HasPrefix(current, "-") {
		if name, value, ok := strings.Cut(current, "="); ok {
			if ws, err := p.split(name, p.allFlags()); err == nil && ws[0].flag != nil {
				return p.values(ws[0].flag, before, name+"=", value, names)
			}
		}
		return Completion{Candidates: p.flagCandidates(current)}
	}
	var c Completion
	for _, cmd := range p.commands() {
		if !cmd.Hidden && strings.HasPrefix(cmd.Name, current) {
			c.Candidates = append(c.Candidates, Candidate{cmd.Name, cmd.Usage})
		}
	}
	leaf := p.line.Leaf()
	if leaf == nil || len(leaf.Subcommands) > 0 {
		return c
	}
	catalog, at := catalogOf(app, before)
	c.Candidates = nameCandidates(names, argumentKind(leaf, at), catalog, "", current)
	c.Files = len(c.Candidates) == 0
	return c
}

// joinEquals rejoins --flag=value, which some shells pass as three words.
func joinEquals(words []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		if words[i] == "=" && len(out) > 0 && strings.HasPrefix(out[len(out)-1], "--") {
			out[len(out)-1] += "="
			if i+1 < len(words) {
				i++
				out[len(out)-1] += words[i]
			}
			continue
		}
		out = append(out, words[i])
	}
	return out
}

// values completes the value of a flag; before are the words without it.
func (p *parser) values(f cli.Flag, before []string, prefix, current string, names Names) Completion {
	var c Completion
	usage := ""
	if d, ok := f.(cli.DocGenerationFlag); ok {
		usage = d.GetUsage()
	}
	m := choices.FindStringSubmatch(usage)
	if m == nil {
		if p.line.Leaf() != nil {
			label, _ := flagText(f)
			value := label[strings.LastIndex(label, " ")+1:]
			catalog, _ := catalogOf(p.app, before)
			c.Candidates = nameCandidates(names, kindOf(value), catalog, prefix, current)
		}
		c.Files = len(c.Candidates) == 0
		return c
	}
	for v := range strings.SplitSeq(m[1], "|") {
		if strings.HasPrefix(v, current) {
			c.Candidates = append(c.Candidates, Candidate{Word: prefix + v})
		}
	}
	return c
}

func (p *parser) flagCandidates(current string) []Candidate {
	var out []Candidate
	seen := map[string]bool{}
	for _, level := range p.levels() {
		for _, f := range level {
			_, usage := flagText(f)
			name := "--" + f.Names()[0]
			if visible(f) && !seen[name] && strings.HasPrefix(name, current) {
				seen[name] = true
				out = append(out, Candidate{name, usage})
			}
		}
	}
	if strings.HasPrefix("--help", current) {
		out = append(out, Candidate{"--help", "show help"})
	}
	return out
}

// Write writes the answer in the format that the scripts of [Script] read: one candidate per line, with a tab between
// word and usage, and a last line ":files" or ":words".
func (c Completion) Write(w io.Writer) error {
	var b strings.Builder
	for _, cand := range c.Candidates {
		fmt.Fprintf(&b, "%s\t%s\n", cand.Word, printable.Cell(cand.Usage))
	}
	if c.Files {
		b.WriteString(":files\n")
	} else {
		b.WriteString(":words\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Shells returns the shells that [Script] supports.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Script returns the completion script of a shell for a program. The script calls the program's hidden command
// "__complete" with the words of the line.
func Script(shell, program string) (string, error) {
	text, ok := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[shell]
	if !ok {
		return "", Usagef("unknown shell %q, expected one of %s", shell, strings.Join(Shells(), ", "))
	}
	function := regexp.MustCompile(`[^A-Za-z0-9_]`).ReplaceAllString(program, "_")
	return strings.NewReplacer("@PROGRAM@", program, "@FUNCTION@", function).Replace(text), nil
}

const bashScript = `# bash completion for @PROGRAM@; load it with: source <(@PROGRAM@ completion bash)
_@FUNCTION@_complete() {
    local current="${COMP_WORDS[COMP_CWORD]}" line kind=:words
    local -a found=()
    while IFS= read -r line; do
        case "$line" in
            :files|:words) kind="$line" ;;
            *) line="${line%%$'\t'*}"; [[ "$current" == "=" || "${COMP_WORDS[COMP_CWORD-1]}" == "=" ]] && line="${line#*=}"; found+=("$line") ;;
        esac
    done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [[ "$current" == "=" ]] && current=""
    if [[ "$kind" == ":files" && ${#found[@]} -eq 0 ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r line; do found+=("$line"); done < <(compgen -f -- "$current")
    fi
    COMPREPLY=("${found[@]}")
    [[ "${found[0]-}" == *[:/] ]] && compopt -o nospace 2>/dev/null
}
complete -F _@FUNCTION@_complete @PROGRAM@
`

const zshScript = `#compdef @PROGRAM@
# zsh completion for @PROGRAM@; put it into a directory of $fpath as _@PROGRAM@, or load it with:
# source <(@PROGRAM@ completion zsh)
_@FUNCTION@() {
    local line kind=:words word usage
    local -a found open
    while IFS= read -r line; do
        case "$line" in
            :files|:words) kind="$line" ;;
            *) word="${line%%$'\t'*}"; [[ "$word" == *[:/] ]] && open=(-S ''); usage="${line#*$'\t'}"; found+=("${word//:/\\:}:${usage}") ;;
        esac
    done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( ${#found} )); then
        _describe '@PROGRAM@' found $open
    elif [[ "$kind" == ":files" ]]; then
        _files
    fi
}
if [[ "${funcstack[1]}" == "_@FUNCTION@" ]]; then
    _@FUNCTION@ "$@"
else
    compdef _@FUNCTION@ @PROGRAM@
fi
`

const fishScript = `# fish completion for @PROGRAM@; load it with: @PROGRAM@ completion fish | source
function __@FUNCTION@_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    for line in $answer
        switch $line
            case ':words'
            case ':files'
                __fish_complete_path "$current"
            case '*'
                echo $line
        end
    end
end
complete -c @PROGRAM@ -f -a '(__@FUNCTION@_complete)'
`
