package clitest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func WritePackage(t *testing.T, dir, name string, size int) {
	t.Helper()
	WriteFile(t, filepath.Join(dir, "catalog", name, "catalog.yaml"),
		fmt.Sprintf("schema: olm.package\nname: %[1]s\ndefaultChannel: stable\n---\n"+
			"schema: olm.channel\npackage: %[1]s\nname: stable\nentries: [{name: %[1]s.v1.0.0}]\n---\n"+
			"schema: olm.bundle\npackage: %[1]s\nname: %[1]s.v1.0.0\nimage: example.com/%[1]s:v1\n"+
			"properties: [{type: olm.package, value: {packageName: %[1]s, version: 1.0.0}}]\n",
			name)+strings.Repeat("# padding\n", size*20))
}
