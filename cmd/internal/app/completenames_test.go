package app_test

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// Names are completed out of directories and databases, in all commands with a catalog on the line; a catalog that
// cannot be read has none, and no message.
func TestNamesAreCompleted(t *testing.T) {
	dir := clitest.EditDir(t)
	clitest.WriteFile(t, dir+"/broken/catalog.yaml", "schema: [")
	clitest.WriteFile(t, dir+"/invalid/catalog.yaml", "schema: olm.package\nname: a\ndefaultChannel: none\n")
	for line, want := range map[string]string{
		"list channels CAT ":                          "etcd silicom-sts-operator",
		"list bundles CAT etcd --channel s":           "singlenamespace-alpha",
		"list images CAT ":                            "etcd silicom-sts-operator",
		"catalog rm CAT ":                             "etcd silicom-sts-operator",
		"catalog rm CAT etcd/a":                       "etcd/alpha etcd/alpha/etcdoperator.v0.6.1",
		"catalog rm CAT etcd etcd/alpha/":             "etcd/alpha/etcdoperator.v0.6.1",
		"catalog prune CAT --keep etcd,s":             "etcd,silicom-sts-operator",
		"catalog promote CAT etcdoperator.v0.9.4":     "etcdoperator.v0.9.4 etcdoperator.v0.9.4-clusterwide",
		"catalog demote CAT etcdoperator.v0.6":        "etcdoperator.v0.6.1",
		"catalog promote CAT x --channel b":           "beta",
		"catalog deprecate CAT etcdoperator.v0.6":     "etcdoperator.v0.6.1",
		"catalog deprecate CAT --channel etcd/a":      "etcd/alpha",
		"catalog deprecate CAT --package e":           "etcd",
		"graph CAT -p si":                             "silicom-sts-operator",
		"graph CAT -p etcd -c c":                      "clusterwide-alpha",
		"registry prune -d CAT -p si":                 "silicom-sts-operator",
		"registry rm -d CAT -o e":                     "etcd",
		"list bundles broken ":                        ":files",
		"list bundles nosuch ":                        ":files",
		"list bundles registry.example.com/acme/c:1 ": ":files",
		"list bundles invalid ":                       "a",
		"inspect oc":                                  "oci: oci-archive:",
		"copy a/b:v1 d":                               "docker:// docker-archive: dir:",
		"inspect ":                                    ":files",
		"list packages c":                             ":files",
		"list packages containers":                    "containers-storage:",
	} {
		for _, cat := range []string{"catalog", "index.db"} {
			t.Run(line+cat, func(t *testing.T) {
				words := append([]string{"__complete"}, strings.Split(strings.ReplaceAll(line, "CAT", cat), " ")...)
				got := clitest.RunProgram(t, dir, "bindery", words...)
				var found []string
				for row := range strings.Lines(got.Stdout) {
					word, _, _ := strings.Cut(strings.TrimSpace(row), "\t")
					if word != ":words" && (word != ":files" || len(found) == 0) {
						found = append(found, word)
					}
				}
				if text := strings.Join(found, " "); text != want || got.Stderr != "" || got.Status != 0 {
					t.Errorf("%q, want %q: %+v", text, want, got)
				}
			})
		}
	}
}
