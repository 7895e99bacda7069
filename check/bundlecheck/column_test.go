package bundlecheck

import (
	"strings"
	"testing"
)

// A problem has the column of its value, so that "file:line:column" opens it.
func TestColumns(t *testing.T) {
	fsys := etcd(t)
	write(fsys, "manifests/quota.yaml", "apiVersion: v1\nkind:   ResourceQuota\nmetadata:\n  name: a\n")
	for _, p := range check(t, fsys, Options{}).Problems {
		if strings.HasPrefix(p.String(), "manifests/quota.yaml:2:9: kind: ResourceQuota") {
			return
		}
	}
	t.Error("no problem at the kind")
}
