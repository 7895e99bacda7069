package migrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// Whatever is changed in a directory that was written, verification finds it.
func TestVerifyFindsChanges(t *testing.T) {
	path := recorded.Part(t).Database(t, "small")
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	facts, err := db.Facts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	const etcd, silicom = "etcd/catalog.json", "silicom-sts-operator/catalog.json"
	for _, c := range []struct{ name, file, from, to, want string }{
		{"default channel", etcd, `"defaultChannel": "singlenamespace-alpha"`, `"defaultChannel": "alpha"`, "default channel"},
		{"channel name", silicom, `"name": "beta"`, `"name": "gamma"`, "channel"},
		{"edge gone", etcd, ",\n            \"replaces\": \"etcdoperator.v0.9.0\"", "", "edge"},
		{"edge to another", silicom, `"replaces": "silicom-sts-operator.v0.0.4"`, `"replaces": "silicom-sts-operator.v0.0.3"`, "edge"},
		{"replaces made a skip", silicom, `"replaces": "silicom-sts-operator.v0.0.5"`, `"replaces": "silicom-sts-operator.v0.0.4", "skips": ["silicom-sts-operator.v0.0.5"]`, "replaces"},
		{"skip range", etcd, `"replaces": "etcdoperator.v0.9.2"`, `"replaces": "etcdoperator.v0.9.2", "skipRange": "<1.0.0"`, "skipRange"},
		{"image", etcd, `"image": "127.0.0.1:5056/community/etcd:v0.9.4",` + "\n    \"properties\"", `"image": "x.example/y:z",` + "\n    \"properties\"", "image"},
		{"version", etcd, `"version": "0.6.1"`, `"version": "0.6.2"`, "version"},
		{"property", etcd, `"kind": "EtcdBackup"`, `"kind": "Other"`, "property"},
		{"range", silicom, `"versionRange": "<=4.9.0"`, `"versionRange": "<=4.8.0"`, "property"},
		{"related image", silicom, "quay.io/silicom/sts-operator:0.0.6", "quay.io/silicom/sts-operator:0.0.7", "related image"},
		{"manifest", etcd, `"data": "eyJhcGlWZXJzaW9uIjoiYXBpZXh0ZW5zaW9ucy5rOHMuaW8vdjEi`, `"data": "eyJhcGlWZXJzaW9uIjoiYXBpZXh0ZW5zaW9ucy5rOHMuaW8vdjIi`, "manifest"},
		{"nothing", etcd, "", "", ""},
	} {
		out := filepath.Join(t.TempDir(), "out")
		if _, err := Run(context.Background(), path, out, Options{}); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(out, c.file)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), c.from) {
			t.Errorf("%s: %q is not in the catalog", c.name, c.from)
			continue
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(data), c.from, c.to, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		result, err := verify(context.Background(), out, facts, nil, Options{})
		var failed *VerificationError
		switch {
		case c.want == "":
			if err != nil || !result.Same {
				t.Errorf("%s: %v", c.name, err)
			}
		case !errors.As(err, &failed) || result.Same:
			t.Errorf("%s: not found: %v", c.name, err)
		default:
			found := false
			for _, d := range failed.Differences {
				found = found || strings.HasPrefix(d.What, c.want)
			}
			if !found || failed.Error() == "" {
				t.Errorf("%s: found only %+v", c.name, failed.Differences)
			}
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := Run(context.Background(), path, out, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(out, "etcd")); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(context.Background(), out, facts, nil, Options{}); err == nil {
		t.Error("a missing package is not found")
	}
}
