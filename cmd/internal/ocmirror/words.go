package ocmirror

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// ocMirrorPhrases are what oc-mirror calls otherwise.
var ocMirrorPhrases = strings.NewReplacer(
	"--use-http", "--tls-verify=false",
	"--ca-file FILE", "--cert-dir DIR",
	"--registries-d DIR", "--registries.d DIR",
	"--timeout or --retries", "--retry-times",
	"--retries", "--retry-times",
	"--jobs", "--parallel-images",
	"the other commands of \"mirror\"", "the other commands of \"oc-mirror\"",
	`"mirror delete"`, `"oc-mirror delete"`,
	`"mirror run"`, `"oc-mirror"`,
	`"list packages"`, `"oc-mirror list operators --catalog CATALOG"`,
	`"list bundles"`, `"oc-mirror list operators --catalog CATALOG --package NAME --channel NAME"`,
	`"list channels"`, `"oc-mirror list operators --catalog CATALOG --package NAME"`,
	"(mirror inventory)", "(bindery mirror inventory)",
)

// binderysCommand is a command in quotes that only bindery has. A single word may be a name from a catalog.
var binderysCommand = lazyregexp.New(`"((?:build|migrate|render|validate|list|graph|diff|check|resolve|inspect|verify|sign|` +
	`attest|attach|copy|tree|sbom|keys|serve|cache|catalog|init|generate|template|bundle|index|registry|mirror|schema) [^"]+|` +
	`migrate|validate)"`)

// namedFlag is a flag with what it is given, or a command in quotes.
var namedFlag = lazyregexp.New(`"[^"]*"|--[a-z][a-z0-9.-]*(=[a-z]+)?( ([A-Z][A-Z=/]+|trim|repository)\b)?`)

// Words returns the function that puts a text into the words of the command of oc-mirror which runs, for one end of a
// copy or for both: oc-mirror has two flags for what is one flag of bindery. What only bindery has is named as a command
// of bindery.
func Words(p *program.Program) func(text, end string) string {
	return func(text, end string) string {
		text = binderysCommand().ReplaceAllString(ocMirrorPhrases.Replace(text), `"bindery $1"`)
		return namedFlag().ReplaceAllStringFunc(text, func(named string) string {
			flag := strings.TrimPrefix(named, "--")
			name, _, _ := strings.Cut(flag, " ")
			name, _, _ = strings.Cut(name, "=")
			switch {
			case named[0] == '"':
				return named
			case end != "" && has(p, end+"-"+name):
				return "--" + end + "-" + flag
			case has(p, name):
				return named
			case has(p, program.Source+"-"+name):
				return "--src-" + flag + " for a source, --dest-" + flag + " for the destination"
			case has(&program.Program{}, name):
				return `"oc-mirror ` + named + `"`
			}
			return `"bindery mirror run ` + named + `"`
		})
	}
}

// has tells whether the command that runs has a flag; without one, whether any command of oc-mirror has it.
func has(p *program.Program, name string) bool {
	if p.Line.Leaf() != nil {
		return p.HasFlag(name)
	}
	return slices.ContainsFunc(Flags(), func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// Flags are the flags of all commands under the name oc-mirror.
func Flags() []cli.Flag {
	var o options
	return program.Flags(o.commonFlags(), o.runFlags(), o.deleteFlags(), o.listFlags(), o.listReleasesFlags())
}
