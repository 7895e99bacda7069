package secret

import (
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// The variables of the environment that have secrets, without being named by a flag.
const (
	PassphraseVariable = "BINDERY_SIGN_PASSPHRASE"        // of encrypted keys
	TokenVariable      = "SIGSTORE_ID_TOKEN"              // the identity token: cosign's variable, which GitLab sets too
	GitHubVariable     = "ACTIONS_ID_TOKEN_REQUEST_TOKEN" // what a job of GitHub asks with for its token
)

// InVariable is how the usage of a flag says that the flag takes a secret from a variable.
const InVariable = "env://VARIABLE"

const (
	scheme    = "env://"
	ownPrefix = "BINDERY_" // of the variables in place of flags
)

// Environment has the secrets that were in the environment of the program. Its zero value is empty.
type Environment struct{ values map[string]string }

// TakeEnvironment removes the secrets from the environment, so that no process that a library starts inherits them, such
// as a credential helper: the variables of this package, those that flags in args name whose usage has [InVariable], and
// those that a variable of the program names in place of a flag. It is called once, before anything else runs.
func TakeEnvironment(args []string, flags []cli.Flag) Environment {
	e := Environment{map[string]string{}}
	for _, name := range []string{PassphraseVariable, TokenVariable, GitHubVariable} {
		e.take(name)
	}
	for _, pair := range os.Environ() {
		// A flag may have its value from a variable, also one that this command lacks.
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, ownPrefix) {
			e.takeNamed(value)
		}
	}
	for _, f := range flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if !ok || !strings.Contains(doc.GetUsage(), InVariable) {
			continue
		}
		for i, arg := range args {
			name, value, inline := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if !strings.HasPrefix(arg, "-") || !slices.Contains(f.Names(), name) {
				continue
			}
			if !inline && i+1 < len(args) {
				value = args[i+1]
			}
			e.takeNamed(value)
		}
	}
	return e
}

// takeNamed takes the variables of a flag's value, which may be a list.
func (e Environment) takeNamed(list string) {
	for value := range strings.SplitSeq(list, ",") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(value), scheme); ok {
			e.take(name)
		}
	}
}

func (e Environment) take(name string) {
	if text, set := os.LookupEnv(name); set {
		e.values[name] = text
		_ = os.Unsetenv(name) // it fails for names alone that no variable has
	}
}

// Lookup returns the value of a variable that was taken from the environment, and whether it was set.
func (e Environment) Lookup(name string) (string, bool) {
	text, set := e.values[name]
	return text, set
}

// Variable returns the variable that the value of a flag names: V of env://V.
func Variable(value string) (string, bool) { return strings.CutPrefix(value, scheme) }
