package resolve_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/olmv1"
	"github.com/operator-bindery/bindery/olmv1/resolve"
)

// clusterAnswer is a ClusterExtension on a cluster with one real catalog, and what operator-controller resolved.
type clusterAnswer struct {
	Catalog, Package string
	Channels         []string
	Version          string
	Installed        string
	SelfCertified    bool `json:"self_certified"`
	Answer           struct{ Bundle, Unchanged, Version, Error string }
}

// TestCluster compares with what operator-controller resolved on a cluster. Every request is one that the API server
// took.
func TestCluster(t *testing.T) {
	catalogs := map[string]map[string]*declcfg.Catalog{}
	resolvers := map[[2]string]*resolve.Resolver{}
	for file, number := range map[string]int{"cluster-fresh.jsonl": 667, "cluster-installed.jsonl": 620} {
		lines := bytes.Split(bytes.TrimSpace(recordedFile(t, file)), []byte("\n"))
		if len(lines) != number {
			t.Errorf("%s has %d answers", file, len(lines))
		}
		for _, line := range lines {
			var c clusterAnswer
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			if catalogs[c.Catalog] == nil {
				whole, err := declcfg.Read(t.Context(), bytes.NewReader(recordedFile(t, "cluster-"+c.Catalog+".jsonl")),
					"catalog.jsonl", declcfg.LoadOptions{})
				if err != nil {
					t.Fatal(err)
				}
				catalogs[c.Catalog] = whole.ByPackage()
			}
			key := [2]string{c.Catalog, c.Package}
			if resolvers[key] == nil {
				r, err := resolve.NewResolver(t.Context(), []resolve.Catalog{{Name: c.Catalog,
					Blobs: catalogs[c.Catalog][c.Package].Blobs()}}, c.Package, resolve.Gates{})
				if err != nil {
					t.Fatal(err)
				}
				resolvers[key] = r
			}
			r := resolvers[key]
			q := resolve.Request{Package: c.Package, Channels: c.Channels, Version: c.Version, SelfCertified: c.SelfCertified}
			if err := q.Validate(); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if c.Installed != "" {
				var ok bool
				if q.Installed, ok = r.Installed(c.Installed); !ok {
					t.Fatalf("%s: it is not there", line)
				}
			}
			got := c.Answer
			got.Bundle, got.Unchanged, got.Version, got.Error = "", "", "", ""
			switch a, err := r.Resolve(q); {
			case err != nil:
				got.Error = err.Error()
			case a.Unchanged:
				got.Unchanged, got.Version = a.Bundle, a.Version
			default:
				got.Bundle, got.Version = a.Bundle, a.Version
			}
			if got != c.Answer {
				t.Errorf("%s: got %+v", line, got)
			}
		}
	}
}

// Real channels that no ClusterExtension can ask for.
func TestRealChannels(t *testing.T) {
	refused := map[string][]string{}
	for _, name := range []string{"v4.13", "v4.16", "v4.20", "v4.22"} {
		c, err := declcfg.Read(t.Context(), bytes.NewReader(recordedFile(t, "cluster-"+name+".jsonl")), "catalog.jsonl",
			declcfg.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Channels {
			if channel := c.Channels[i].Name; olmv1.Channels([]string{channel}) != nil {
				refused[name] = append(refused[name], c.Channels[i].Package+"/"+channel)
			}
		}
		slices.Sort(refused[name])
	}
	if len(refused["v4.20"]) == 0 || len(refused["v4.22"]) == 0 || len(refused) != 2 {
		t.Errorf("got %q", refused)
	}
}
