package change_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/edit/edittest"
)

// jobVariable is an environment variable with the arguments of a job, which the test program runs instead of the tests.
// A job can be killed and its memory measured.
const jobVariable = "BINDERY_TEST_CHANGE_JOB"

func TestMain(m *testing.M) {
	args := strings.Split(os.Getenv(jobVariable), "\n")
	if len(args) < 3 {
		os.Exit(m.Run())
	}
	if err := doJob(args[0], args[1], args[2:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// job returns a process that edits the catalog at a path: "add PACKAGE VERSION", "touch PACKAGE", "rm PACKAGE...".
func job(path string, verb ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobVariable+"="+strings.Join(append([]string{verb[0], path}, verb[1:]...), "\n"))
	return cmd
}

func doJob(verb, path string, args []string) error {
	var e change.Edit
	switch verb {
	case "add":
		// A new channel can be added to any package.
		e = adding(edittest.Additions(&testing.T{}, args[0]+" "+args[1]+" @job-"+args[1]+" =job-"+args[1]),
			edit.AddOptions{Mode: edit.SemVer})
	case "touch":
		// The last bundle of a package gets a property, so that the package is rewritten.
		e = pure(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
			out := *c
			out.Bundles = slices.Clone(c.Bundles)
			for i := len(out.Bundles) - 1; i >= 0; i-- {
				if b := &out.Bundles[i]; b.Package == args[0] {
					b.Properties = append(slices.Clone(b.Properties),
						declcfg.Property{Type: "touched", Value: []byte("{}")})
					return &out, &edit.Account{}, nil
				}
			}
			return nil, nil, errors.New("no bundle of that package")
		})
	case "rm":
		e = removalOf(args...)
	default:
		return fmt.Errorf("unknown job %q", verb)
	}
	_, err := e.InPlace(context.Background(), path, change.Options{Create: true})
	if status, err := os.ReadFile("/proc/self/status"); err == nil { // on Linux
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		peak, _, _ = strings.Cut(peak, "\n")
		fmt.Fprintln(os.Stderr, "VmHWM:", peak)
	}
	return err
}
