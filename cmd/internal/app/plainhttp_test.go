package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Plain HTTP and certificates are two things, each with a flag of its own: --use-http accepts no certificate, and
// --tls-verify=false no registry without TLS. The flags of opm and oc-mirror mean both, as they do there.
func TestPlainHTTPAndCertificates(t *testing.T) {
	plain, secure := testregistry.New(t), testregistry.NewTLS(t)
	image := clitest.OpmFor("amd64")
	image.Labels = map[string]string{clitest.TestConfigsLabel: "/configs"}
	image.Layers = []map[string]string{{"configs/catalog.json": clitest.PackageText("etcd")}}
	for _, r := range []*testregistry.Registry{plain, secure} {
		r.AddImage(t, "acme/catalog", "v1", image)
	}
	ca := secure.CAFile(t)
	dir := t.TempDir()
	for _, test := range []struct {
		program, line, flags string
		plain, secure        bool // whether such a registry is read
	}{
		{"bindery", "render", "", false, false},
		{"bindery", "render", "--ca-file " + ca, false, true},
		{"bindery", "render", "--use-http", true, false},
		{"bindery", "render", "--use-http --tls-verify", true, false},
		{"bindery", "render", "--use-http --ca-file " + ca, true, true},
		{"bindery", "render", "--tls-verify=false", false, true},
		{"bindery", "render", "--skip-tls-verify", false, true},
		{"bindery", "render", "--use-http --tls-verify=false", true, true},
		{"kubectl-bindery", "render", "--use-http", true, false},
		{"bindery", "copy", "--use-http", true, false},
		{"bindery", "copy", "--tls-verify=false", false, true},
		{"opm", "render", "", false, false},
		{"opm", "render", "--use-http", true, true},
		{"opm", "render", "--skip-tls-verify", false, true},
		{"oc-mirror", "list operators --catalog", "", false, false},
		{"oc-mirror", "list operators --catalog", "--src-tls-verify=false", true, true},
	} {
		for r, want := range map[*testregistry.Registry]bool{plain: test.plain, secure: test.secure} {
			r.Forget()
			args := append(strings.Fields(test.line), r.Host()+"/acme/catalog:v1")
			if test.line == "copy" {
				args = append(args, fmt.Sprintf("oci:%v-%v", len(test.flags), r == plain))
			}
			cmd := clitest.Command(dir, test.program, append(args, strings.Fields(test.flags)...)...)
			cmd.Env = append(cmd.Env, "BINDERY_NO_CACHE=true", "BINDERY_RETRIES=0")
			got := clitest.Finish(t, cmd)
			if (got.Status == 0) != want || !want && len(r.Requests()) > 0 {
				t.Errorf("%s %s %s, plain %v: %d requests, %+v", test.program, test.line, test.flags, r == plain,
					len(r.Requests()), got)
			}
		}
	}
}
