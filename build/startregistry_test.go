package build_test

import "github.com/operator-bindery/bindery/internal/testing/testregistry"

// startRegistry starts a registry in memory, in place of the real one that the examples would name.
func startRegistry() *testregistry.Registry { return testregistry.Start() }
