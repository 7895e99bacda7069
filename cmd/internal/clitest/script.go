package clitest

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

var update = flag.Bool("update", false, "write what commands print into the golden files of their scripts")

// RunScripts runs the scripts in testdata/script, each in an empty directory and parallel to the others. There is an
// empty registry with plain HTTP at $REGISTRY, a free port $PORT, and the testdata of the project at $TESTDATA; a family
// may set up more for each of its scripts. Beside the commands of testscript there are
//
//	bindery ...                  a run of the program, under each of its names, that must succeed
//	exits STATUS PROGRAM ...     a run that must end with the exit status
//	refused REGEXP PROGRAM ...   a run that must end with status 1, a message that matches, and nothing on standard output
//	healthy HOST:PORT            waits for a server that was started in the background, by "exec bindery ... &"
//
// An answer in JSON must be valid against its schema.
func RunScripts(t *testing.T, setup ...func(script testing.TB, e *testscript.Env)) {
	testdata, err := filepath.Abs("../../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits, "refused": refused, "healthy": healthy,
	}
	for _, name := range Names {
		commands[name] = func(script *testscript.TestScript, negated bool, args []string) {
			exits(script, negated, append([]string{"0", name}, args...))
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Cmds:          commands,
		Setup: func(e *testscript.Env) error {
			script := e.T().(testing.TB)
			e.Values[test{}] = script
			e.Setenv("PATH", BinDir+string(os.PathListSeparator)+e.Getenv("PATH"))
			registry := testregistry.New(script)
			registry.Separate(true)
			e.Setenv("REGISTRY", registry.Host())
			e.Setenv("PORT", FreePort(script))
			e.Setenv("TESTDATA", testdata)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("BINDERY_NO_PROGRESS", "true")
			e.Setenv("BINDERY_USE_HTTP", "true")
			e.Setenv("GODEBUG", os.Getenv("GODEBUG")) // hack/ci/fips.sh sets it
			for _, more := range setup {
				more(script, e)
			}
			return nil
		},
	})
}

// MirrorSource sets up the registry for which oc-mirror's runs are recorded, as registry.example.com.
func MirrorSource(script testing.TB, e *testscript.Env) {
	e.Setenv("CONTAINERS_REGISTRIES_CONF", mirrortest.Source(script).RegistriesConf(script, mirrortest.Host))
}

// exits runs a program that must end with the exit status of the first argument.
func exits(script *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		script.Fatalf("usage: exits STATUS PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	script.Check(err)
	if r := runScriptLine(script, args[1:]); r.Status != want {
		script.Fatalf("exit status %d, want %d", r.Status, want)
	}
}

// refused runs a program that must do nothing but say why, in a message that matches the first argument.
func refused(script *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		script.Fatalf("usage: refused REGEXP PROGRAM [ARGUMENT...]")
	}
	message, err := regexp.Compile("(?m)" + args[0])
	script.Check(err)
	switch r := runScriptLine(script, args[1:]); {
	case r.Status != 1:
		script.Fatalf("exit status %d, want 1", r.Status)
	case r.Stdout != "":
		script.Fatalf("a refusal prints to standard output")
	case !message.MatchString(r.Stderr):
		script.Fatalf("no match for %q in standard error", args[0])
	}
}

// test is the key of the test of a script among its values.
type test struct{}

// runScriptLine runs a program in the directory and environment of a script, with the script's standard input, and checks
// its answer in JSON.
func runScriptLine(script *testscript.TestScript, args []string) Result {
	t := script.Value(test{}).(testing.TB)
	// What a script has set is seen by a program alone.
	environment := filepath.Join(t.TempDir(), "environment")
	script.Check(script.Exec("sh", "-c", `env -0 >"$1"; cat`, "sh", environment))
	cmd := Command(script.MkAbs("."), args[0], args[1:]...)
	cmd.Env = strings.Split(strings.TrimSuffix(ReadFile(t, environment), "\x00"), "\x00")
	cmd.Stdin = strings.NewReader(script.ReadFile("stdout"))
	r := Finish(t, cmd)
	for _, stream := range []struct {
		to   io.Writer
		text string
	}{{script.Stdout(), r.Stdout}, {script.Stderr(), r.Stderr}} {
		_, err := io.WriteString(stream.to, stream.text)
		script.Check(err)
	}
	return r
}

// healthy asks a server at an address for its health until it serves, for at most a minute.
func healthy(script *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 1 {
		script.Fatalf("usage: healthy HOST:PORT")
	}
	for end := time.Now().Add(time.Minute); ; {
		err := script.Exec("bindery", "probe", "-addr", args[0], "-connect-timeout", "10s")
		if err == nil {
			return
		}
		if time.Now().After(end) {
			script.Fatalf("%s is not healthy: %v", args[0], err)
		}
	}
}
