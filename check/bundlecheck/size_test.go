package bundlecheck

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A bundle that does not fit into a ConfigMap, so that OLM cannot unpack it, is refused.
func TestSizes(t *testing.T) {
	noise := make([]byte, 800<<10)
	rand.NewChaCha8([32]byte{}).Read(noise)
	manifest := func(n int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: %x\n", noise[:n])
	}
	for _, c := range []struct {
		name, text, want string
	}{
		{"fits", manifest(300 << 10), ""},
		{"hardly fits", manifest(650 << 10), "warning configmap-size manifests: "},
		{"does not fit", manifest(760 << 10),
			"error configmap-size manifests: bundle files exceeded 1048576 bytes limit"},
		{"fits compressed, and is too large an object",
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: " + strings.Repeat("x",
				maxObject) + "\n", `error object-size manifests/big.yaml:1: ConfigMap "a" takes `},
		{"annotations",
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    a: " + strings.Repeat("x",
				maxAnnotations) + "\n",
			`error annotations-size manifests/big.yaml:6: metadata.annotations: the annotations of ConfigMap "a" take 262145 bytes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := etcd(t)
			write(fsys, "manifests/big.yaml", c.text)
			text := lines(check(t, fsys, Options{}).Problems)
			if c.want == "" && strings.Contains(text, "size") || !strings.Contains(text, c.want) {
				t.Errorf("got\n%s\nwant %s", text, c.want)
			}
		})
	}
}

// Definitions with more objects than Kubernetes' validators have memory for are refused without validating them.
func TestManyDefinitionsAreRefused(t *testing.T) {
	fsys := etcd(t)
	head := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"foos.example.com"},"spec":{"versions":[`
	write(fsys, "manifests/a.json", head+strings.Repeat("{},", maxDefinitionNodes/2)+"{}]}}")
	write(fsys, "manifests/b.json", head+strings.Repeat("{},", maxDefinitionNodes/2)+"{}]}}")
	text := lines(check(t, fsys, Options{}).Problems)
	if !strings.Contains(text, "JSON objects, more than 50000: the contents are not checked") || strings.Contains(text,
		"foos.example.com") {
		t.Errorf("got\n%.2000s", text)
	}
}
