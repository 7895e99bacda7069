package repository_test

import (
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }
