package ocmirror_test

import (
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

func TestScripts(t *testing.T) { clitest.RunScripts(t, clitest.MirrorSource, clitest.ReleaseServers) }
