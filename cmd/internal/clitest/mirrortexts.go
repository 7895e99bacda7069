package clitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// MirrorWorld is the fixture's registry, a target, and a directory with image sets.
type MirrorWorld struct {
	*testing.T
	Dir, Conf, Target string
	Registry          *testregistry.Registry // the target
}

func (w *MirrorWorld) Write(name, text string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.Dir, name), []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}

// Run runs a command line, with TARGET for the target.
func (w *MirrorWorld) Run(line string) Result {
	w.Helper()
	args := strings.Fields(strings.ReplaceAll(line, "TARGET", w.Target))
	if args[0] == "oc-mirror" {
		cmd := Command(w.Dir, args[0], args[1:]...)
		cmd.Env = append(cmd.Env, "CONTAINERS_REGISTRIES_CONF="+w.Conf)
		return Finish(w.T, cmd)
	}
	return RunProgram(w.T, w.Dir, "bindery", append(args, "--registries-conf", w.Conf, "--use-http", "--no-cache")...)
}
