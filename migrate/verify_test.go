package migrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// Verification finds every kind of change in a written directory.
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
		{"default channel", etcd, `"defaultChannel": "singlenamespace-alpha"`, `"defaultChannel": "alpha"`,
			"default channel"},
		{"channel name", silicom, `"name": "beta"`, `"name": "gamma"`, "channel"},
		{"edge gone", etcd, ",\n            \"replaces\": \"etcdoperator.v0.9.0\"", "", "edge"},
		{"edge to another", silicom, `"replaces": "silicom-sts-operator.v0.0.4"`,
			`"replaces": "silicom-sts-operator.v0.0.3"`, "edge"},
		{"replaces made a skip", silicom, `"replaces": "silicom-sts-operator.v0.0.5"`,
			`"replaces": "silicom-sts-operator.v0.0.4", "skips": ["silicom-sts-operator.v0.0.5"]`, "replaces"},
		{"skip range", etcd, `"replaces": "etcdoperator.v0.9.2"`,
			`"replaces": "etcdoperator.v0.9.2", "skipRange": "<1.0.0"`, "skipRange"},
		{"image", etcd, `"image": "127.0.0.1:5056/community/etcd:v0.9.4",` + "\n    \"properties\"",
			`"image": "x.example/y:z",` + "\n    \"properties\"", "image"},
		{"version", etcd, `"version": "0.6.1"`, `"version": "0.6.2"`, "version"},
		{"property", etcd, `"kind": "EtcdBackup"`, `"kind": "Other"`, "property"},
		{"range", silicom, `"versionRange": "<=4.9.0"`, `"versionRange": "<=4.8.0"`, "property"},
		{"related image", silicom, "quay.io/silicom/sts-operator:0.0.6", "quay.io/silicom/sts-operator:0.0.7",
			"related image"},
		{"manifest", etcd, `"data": "eyJhcGlWZXJzaW9uIjoiYXBpZXh0ZW5zaW9ucy5rOHMuaW8vdjEi`,
			`"data": "eyJhcGlWZXJzaW9uIjoiYXBpZXh0ZW5zaW9ucy5rOHMuaW8vdjIi`, "manifest"},
		{"nothing", etcd, "", "", ""},
	} {
		out := filepath.Join(t.TempDir(), "out")
		if _, err := (Options{}).Run(context.Background(), path, out); err != nil {
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
		var failed *verificationError
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
	if _, err := (Options{}).Run(context.Background(), path, out); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(out, "etcd")); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(context.Background(), out, facts, nil, Options{}); err == nil {
		t.Error("a missing package is not found")
	}
}

// A missing item is explained only by a finding about that item.
func TestVerifyIsNotTalkedOutOfALoss(t *testing.T) {
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
	const property = `            "value": {
                "group": "etcd.database.coreos.com",
                "kind": "EtcdBackup",
                "version": "v1beta2"
            }`
	for _, c := range []struct {
		name    string
		lose    func(dir string) error
		finding sqlite.Finding
		same    bool
	}{
		{"package, row of nothing", loseEtcd, sqlite.Finding{Kind: sqlite.Dropped, Reason: "a row has no name"}, false},
		{"package, another package", loseEtcd,
			sqlite.Finding{Kind: sqlite.Dropped, Package: "silicom-sts-operator", Reason: "no channels"}, false},
		{"package, repaired", loseEtcd, sqlite.Finding{Kind: sqlite.Repaired, Package: "etcd", Reason: "repaired"},
			false},
		{"package, its own", loseEtcd, sqlite.Finding{Kind: sqlite.Dropped, Package: "etcd", Reason: "no channels"},
			true},
		{"package, quarantined", loseEtcd, sqlite.Finding{Kind: sqlite.Quarantined, Package: "etcd", Reason: "broken"},
			true},
		{"property, lost icon", loseProperty(property),
			sqlite.Finding{Kind: sqlite.Dropped, Package: "etcd", Bundle: "etcdoperator.v0.9.4", Field: "icon",
				Reason: "no base64"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			if _, err := (Options{}).Run(context.Background(), path, out); err != nil {
				t.Fatal(err)
			}
			if err := c.lose(out); err != nil {
				t.Fatal(err)
			}
			result, err := verify(context.Background(), out, facts, []sqlite.Finding{c.finding}, Options{})
			if result == nil || result.Same != c.same || (err == nil) != c.same || len(result.Differences) == 0 {
				t.Errorf("got %+v, %v", result, err)
			}
		})
	}
}

func loseEtcd(dir string) error { return os.RemoveAll(filepath.Join(dir, "etcd")) }

// loseProperty replaces a property by another one.
func loseProperty(text string) func(string) error {
	return func(dir string) error {
		file := filepath.Join(dir, "etcd", "catalog.json")
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		at := strings.LastIndex(string(data), text)
		if at < 0 {
			return os.ErrNotExist
		}
		lost := string(data[:at]) + strings.Replace(text, "EtcdBackup", "EtcdCluster", 1) + string(data[at+len(text):])
		return os.WriteFile(file, []byte(lost), 0o644)
	}
}
