package clitest

import (
	"fmt"
	"strings"
	"testing"
)

// PackageText returns the catalog of a small package.
func PackageText(name string) string {
	return fmt.Sprintf(`{"schema":"olm.package","name":%[1]q,"defaultChannel":"stable"}
{"schema":"olm.channel","package":%[1]q,"name":"stable","entries":[{"name":"%[1]s.v1.0.0"}]}
{"schema":"olm.bundle","package":%[1]q,"name":"%[1]s.v1.0.0","image":"registry.example.com/%[1]s@sha256:%064[2]d","properties":[{"type":"olm.package","value":{"packageName":%[1]q,"version":"1.0.0"}}]}
`, name, len(name))
}

// LastDigest returns the digest in the last line of an answer.
func LastDigest(t *testing.T, answer string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(answer), "\n")
	_, d, ok := strings.Cut(lines[len(lines)-1], "@")
	if !ok {
		t.Fatalf("no digest in %q", answer)
	}
	return d
}
