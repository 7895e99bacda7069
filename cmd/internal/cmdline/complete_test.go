package cmdline

import (
	"strings"
	"testing"
)

func TestComplete(t *testing.T) {
	for name, c := range map[string]struct{ words, want string }{
		"commands":                  {"", "render list probe"},
		"commands that start so":    {"re", "render"},
		"sub-commands":              {"list|", "packages channels"},
		"arguments are files":       {"render|", ":files"},
		"flags":                     {"list|channels|--", "--log --quiet --help"},
		"flags of the command too":  {"list|packages|--o", "--output"},
		"values of a flag":          {"render|--output|", "json yaml"},
		"values of a short flag":    {"render|-o|y", "yaml"},
		"values after equals sign":  {"render|--output=j", "--output=json"},
		"split at the equals sign":  {"render|--output|=|j", "--output=json"},
		"split, nothing behind yet": {"render|--output|=", "--output=json --output=yaml"},
		"values of a program flag":  {"render|--log|h", "high"},
		"a flag of free text":       {"render|--label|", ":files"},
		"after two dashes":          {"render|--|-", ":files"},
		"own flags of a command":    {"probe|-a", ":files"},
		"a wrong line":              {"nosuch|", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Complete(testApp(), strings.Split(c.words, "|"), nil)
			var words []string
			for _, cand := range got.Candidates {
				words = append(words, cand.Word)
			}
			if got.Files {
				words = append(words, ":files")
			}
			if s := strings.Join(words, " "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

func TestScriptOfUnknownShell(t *testing.T) {
	if _, err := Script("tcsh", "prog"); err == nil || Classify(err) != ClassUsage {
		t.Errorf("got %v", err)
	}
}
