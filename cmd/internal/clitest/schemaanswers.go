package clitest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// AnswerSchemas are the schemas of the answers in JSON of each command: the answer is valid against one of them. Those
// of other projects are written in capitals.
var AnswerSchemas = map[string][]string{
	"attach": {"attach"}, "attest": {"sign"}, "sign": {"sign"}, "copy": {"copy"}, "tree": {"tree"},
	"check":   {"check", "check-rules", "check-rule"},
	"diff":    {"diff", "diff-manifests"},
	"inspect": {"inspect"}, "verify": {"inspect", "verify-keys", "verify-policy"},
	"resolve": {"resolve", "resolve-v0"}, "validate": {"validate"}, "version": {"version"}, "schema": {"schemas"}, "tags": {"tags"},
	"cache info": {"cache-info"}, "cache prune": {"cache-prune"}, "bundle validate": {"bundle-validate"},
	"list packages": {"list-packages", "list-lifecycles"}, "list channels": {"list-channels"}, "list bundles": {"list-bundles"},
	"list images": {"list-images", "list-images-by"}, "registry mirror": {"image-mapping"},
	"mirror plan": {"mirror-plan"}, "mirror run": {"mirror-account"}, "mirror publish": {"mirror-account"},
	"mirror resources": {"mirror-account"}, "mirror verify": {"mirror-verify"},
	"mirror inventory": {"mirror-stock", "mirror-inventory"},
	"mirror delete":    {"delete-list", "mirror-deleted"},
	"bundle extract":   {"KUBERNETES"}, "bundle manifests": {"KUBERNETES"}, "bundle unpack-job": {"KUBERNETES"},
	"render": {"CATALOG"}, "init": {"CATALOG"}, "migrate": {"CATALOG"}, "template render": {"CATALOG"},
	"template convert": {"CATALOG"},
}

// answerIsValid validates the answer of a command that a test has run, in JSON or YAML.
func answerIsValid(t testing.TB, args []string, stdout string) {
	t.Helper()
	if filepath.Base(args[0]) != "bindery" || strings.TrimSpace(stdout) == "" || !asksFor(args, "json") && !asksFor(args, "yaml") {
		return
	}
	list := AnswerSchemas[CommandIn(args[1:])]
	if list == nil || list[0] == strings.ToUpper(list[0]) {
		return
	}
	if asksFor(args, "yaml") {
		text, err := yaml.YAMLToJSON([]byte(stdout))
		if err != nil {
			t.Errorf("%s: the answer is not YAML: %v", strings.Join(args, " "), err)
			return
		}
		stdout = string(text)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(stdout))
	if err != nil {
		return // a test of what is written to another place
	}
	var errs []string
	for _, name := range list {
		err := Compiled(t, name).Validate(v)
		if err == nil {
			return
		}
		errs = append(errs, err.Error())
	}
	t.Errorf("%s: the answer is not valid: %s", strings.Join(args, " "), strings.Join(errs, "\n"))
}

func asksFor(args []string, format string) bool {
	i := slices.IndexFunc(args, func(a string) bool { return a == "-o" || a == "--output" })
	return i >= 0 && i+1 < len(args) && args[i+1] == format || slices.Contains(args, "--output="+format) ||
		slices.Contains(args, "-o="+format) || slices.Contains(args, "-o"+format)
}

// CommandIn returns the command of a line.
func CommandIn(args []string) string {
	var path []string
	commands := app.New(&option.Session{Program: &program.Program{Name: "bindery"}}).Commands
	for _, a := range args {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.Name == a })
		if i >= 0 {
			path, commands = append(path, a), commands[i].Subcommands
		}
	}
	return strings.Join(path, " ")
}
