package cluster

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a ClusterExtension cannot ask for, resolve refuses with the server's text, and it answers for the rest.
func TestFieldsOfExtensions(t *testing.T) {
	cases := [][]string{ // package, version, channels
		{"hello", "1.0.0"}, {"hello", "1.0.0 - 1.0.5"}, {"hello", "01.0.0"}, {"hello", "not a range"}, {"hello", "1.x"}, {"hello", "*"},
		{"hello", ">=1.0.0, <1.1.0"}, {"hello", "<1.1.0 || >5"}, {"hello", "1.*.*"}, {"hello", "v1.0.0"}, {"hello", " 1.0.0 "},
		{"hello", "1.0.0-"}, {"hello", "1.0.0+a+b"}, {"hello", "1.0.0\n"}, {"hello", "\u00a01.0.0"}, {"hello", ">=1.0.0,"},
		{"hello", strings.Repeat("1", 64)}, {"hello", strings.Repeat("1", 65)}, {"hello", ">=" + strings.Repeat("é", 63)},
		{"hello", "", "stable"}, {"hello", "", "Fast"}, {"hello", "", "alpha_1"}, {"hello", "", "3.x"}, {"hello", "", "-a"}, {"hello", "", "a."},
		{"hello", "", strings.Repeat("a", 253)}, {"hello", "", strings.Repeat("a", 254)}, {"hello", "", "a..b"}, {"hello", "", "stable", "Fast"},
		{"Hello", ""}, {"hello_world", ""}, {"hello.world", ""}, {strings.Repeat("a", 254), ""},
	}
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^", " ", ",", ", ", " || ", "||", "|", "v", "1", "0", "01", "x", "X",
		"*", "]", ".", "1.0", "1.0.0", "2.3.4", "-", "-rc.1", "+b.2", "-0", "a", "\t", "\n", "é"}
	for range 250 {
		var b strings.Builder
		for range 1 + r.IntN(7) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		if b.Len() > 0 {
			cases = append(cases, []string{"hello", b.String()})
		}
	}
	dir := t.TempDir()
	write(t, dir+"/catalog.yaml", `{schema: olm.package, name: hello, defaultChannel: stable}
---
{schema: olm.channel, package: hello, name: stable, entries: [{name: hello.v1.0.0}]}
---
{schema: olm.bundle, package: hello, name: hello.v1.0.0, image: "registry.example.com/acme/hello-bundle:v1", properties: [{type: olm.package, value: {packageName: hello, version: 1.0.0}}]}
`)
	reason := regexp.MustCompile(`spec\.source\.catalog\.[a-zA-Z]+(\[\d+\])?: (.*)`)
	taken := 0
	for _, c := range cases {
		catalog := map[string]any{"packageName": c[0]}
		args := []string{"resolve", c[0], dir}
		if c[1] != "" {
			catalog["version"] = c[1]
			args = append(args, "--version="+c[1])
		}
		var channels []any
		for _, channel := range c[2:] {
			channels = append(channels, channel)
			args = append(args, "--channel="+channel)
		}
		if channels != nil {
			catalog["channels"] = channels
		}
		_, err := apiserver.create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": map[string]any{"name": "hello"},
			"spec": map[string]any{"namespace": "default", "source": map[string]any{"sourceType": "Catalog", "catalog": catalog}},
		}}, "", true)
		answer := ran(t, nil, args...)
		switch {
		case err == nil:
			taken++
			if reason.MatchString(answer.err) {
				t.Errorf("%q: the server takes it; resolve says %s", c, answer.err)
			}
		case answer.status == 0:
			t.Errorf("%q: resolve answers; the server says %v", c, err)
		default:
			said, found := reason.FindStringSubmatch(err.Error()), reason.FindString(answer.err)
			if said == nil || !strings.Contains(found, strings.SplitN(said[2], ", ", 2)[0]) {
				t.Errorf("%q: resolve says %s; the server says %v", c, answer.err, err)
			}
		}
	}
	if taken < 20 || taken > len(cases)-50 {
		t.Error(fmt.Sprint(taken, " of ", len(cases), " are taken"))
	}
}
