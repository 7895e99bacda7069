package clitest

import (
	"path/filepath"
	"strings"
	"testing"
)

// VerdictBundle is a small bundle without a problem.
var VerdictBundle = map[string]string{
	"manifests/csv.yaml": `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: foo.v1.0.0
  annotations: {alm-examples: "[]"}
spec:
  version: 1.0.0
  displayName: Foo
  minKubeVersion: 1.20.0
  install: {strategy: deployment, spec: {deployments: []}}
  installModes:
  - {type: AllNamespaces, supported: true}
`,
	"metadata/annotations.yaml": `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: foo
  operators.operatorframework.io.bundle.channels.v1: stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
`,
}

// WriteVerdictBundle writes the bundle to DIR/b, with other files or, if old is not empty, with a text replaced in one.
func WriteVerdictBundle(t *testing.T, dir, file, old, text string) {
	t.Helper()
	files := map[string]string{file: text}
	for name, content := range VerdictBundle {
		if name == file && old != "" {
			if !strings.Contains(content, old) {
				t.Fatalf("%s has no %q", name, old)
			}
			content = strings.Replace(content, old, text, 1)
		} else if name == file {
			continue
		}
		files[name] = content
	}
	for name, content := range files {
		WriteFile(t, filepath.Join(dir, "b", filepath.FromSlash(name)), content)
	}
}
