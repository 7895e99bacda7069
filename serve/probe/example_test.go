package probe_test

import (
	"context"
	"fmt"
	"io"

	"github.com/operator-bindery/bindery/serve/probe"
)

// A server that cannot be reached has an exit code of its own.
func ExampleRun() {
	args := []string{"-addr=127.0.0.1:1", "-connect-timeout=1s"}
	fmt.Println(probe.Run(context.Background(), args, io.Discard, io.Discard) == probe.ExitConnectionFailure)
	// Output: true
}
