package main

import (
	"errors"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// typed is how the program is called under the name that it was started under.
func (p *program) typed() string {
	switch {
	case p.opm:
		return opmName
	case p.name == kubectlPlugin:
		return "kubectl bindery"
	}
	return "bindery"
}

// words puts advice, which is written in the words of bindery, into those of the name that the program was started
// under: all hints and, under the name oc-mirror, all messages go through it.
func (p *program) words(text string) string {
	if p.inWords != nil {
		return p.inWords(text)
	}
	if !p.hasFlag("jobs") {
		text = withoutJobs.Replace(text)
	}
	if name := p.typed(); name != "bindery" {
		text = otherName.ReplaceAllString(text, "${1}"+name+" ")
	}
	return text
}

// withHintInWords puts the hint of an error into the words of the name.
func (p *program) withHintInWords(err error) error {
	var e *cmdline.Error
	if !errors.As(err, &e) || e.Hint == "" {
		return err
	}
	own := *e
	own.Hint, own.Err = p.words(e.Hint), err
	return &own
}

// withoutJobs leaves out a flag that not all commands with hints about registries have.
var withoutJobs = strings.NewReplacer("log in, wait, or lower --jobs", "log in, or wait", ", or lower --jobs", "")

// otherName is the beginning of a command in a text.
var otherName = regexp.MustCompile(`(^|"|\| |: )bindery `)

// sides are the two flags of oc-mirror for what is one flag of bindery.
func sides(flag string) string {
	return "--src-" + flag + " for a source, --dest-" + flag + " for the destination"
}

// ocMirrorPhrases are what oc-mirror calls otherwise.
var ocMirrorPhrases = strings.NewReplacer(
	"--use-http", sides("tls-verify=false"),
	"--tls-verify=false", sides("tls-verify=false"),
	"--ca-file FILE", sides("cert-dir DIR"),
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
var binderysCommand = regexp.MustCompile(`"((?:build|migrate|render|validate|list|graph|diff|check|resolve|inspect|verify|sign|` +
	`attest|attach|copy|tree|sbom|keys|serve|cache|catalog|init|generate|template|bundle|index|registry|mirror|schema) [^"]+|` +
	`migrate|validate)"`)

// namedFlag is a flag with what it is given, or a command in quotes.
var namedFlag = regexp.MustCompile(`"[^"]*"|--[a-z][a-z0-9.-]*(=[a-z]+)?( ([A-Z][A-Z=/]+|trim|repository)\b)?`)

// ocMirrorWords puts a text into the words of oc-mirror. What only bindery has is named as a command of bindery.
func ocMirrorWords(text string) string {
	text = binderysCommand.ReplaceAllString(ocMirrorPhrases.Replace(text), `"bindery $1"`)
	return namedFlag.ReplaceAllStringFunc(text, func(named string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(named, "--"), "=")
		name, _, _ = strings.Cut(name, " ")
		if named[0] == '"' || ocMirrorHasFlag(name) {
			return named
		}
		return `"bindery mirror run ` + named + `"`
	})
}

// ocMirrorHasFlag tells whether a command has a flag under the name oc-mirror.
func ocMirrorHasFlag(name string) bool {
	all := flags(ocMirrorCommonFlags(), ocMirrorRunFlags(), ocMirrorDeleteFlags(), ocMirrorListFlags())
	return slices.ContainsFunc(all, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// newLogger is [cmdline.NewLogger], with messages in the words of the name.
func (p *program) newLogger(w io.Writer, format string, level slog.Level) *slog.Logger {
	return cmdline.NewLogger(inWords{p, w}, format, level)
}

// inWords is a writer of messages in the words of the name.
type inWords struct {
	p *program
	w io.Writer
}

func (o inWords) Write(line []byte) (int, error) {
	if _, err := io.WriteString(o.w, o.p.words(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}
