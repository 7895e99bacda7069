package resolve_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/olmv1/resolve"
)

// recordedFile returns an unpacked file of testdata. The catalog has what resolution looks at: it is without manifests,
// related images, icons and descriptions.
func recordedFile(t testing.TB, name string) []byte {
	t.Helper()
	packed, err := os.Open("testdata/" + name + ".zst")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close() //nolint:errcheck // opened for reading only
	z, err := zstd.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func recordedCatalog(t testing.TB) map[string]*declcfg.Catalog {
	t.Helper()
	c, err := declcfg.Read(t.Context(), bytes.NewReader(recordedFile(t, "catalog-v4.19.jsonl")), "catalog.jsonl",
		declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.ByPackage()
}

// TestRecorded compares with what OLM v1's resolver answered for each bundle and each channel of a real catalog.
func TestRecorded(t *testing.T) {
	parts := recordedCatalog(t)
	resolvers := map[string]*resolve.Resolver{}
	rows, bundles := bufio.NewScanner(bytes.NewReader(recordedFile(t, "resolve-v4.19.tsv"))), 0
	rows.Scan() // the names of the columns
	for rows.Scan() {
		row := strings.Split(rows.Text(), "\t")
		pkg, name := row[0], row[1]
		r := resolvers[pkg]
		if r == nil {
			var err error
			r, err = resolve.NewResolver(t.Context(), []resolve.Catalog{{Name: "v4.19", Blobs: parts[pkg].Blobs()}},
				pkg, resolve.Gates{})
			if err != nil {
				t.Fatal(err)
			}
			resolvers[pkg] = r
		}
		check := func(what, want string, q resolve.Request) {
			t.Helper()
			a, err := r.Resolve(q)
			got := ""
			switch {
			case err != nil:
				got = "error: " + err.Error()
			default:
				got = a.Bundle
			}
			if got != want {
				t.Errorf("%s of %s %s: got %s, want %s", what, pkg, name, got, want)
			}
		}
		if name == "*" {
			q := resolve.Request{Package: pkg}
			if channel, ok := strings.CutPrefix(row[4], "channel="); ok {
				q.Channels = []string{channel}
			}
			check("all", row[5], q)
			continue
		}
		bundles++
		b := bundleOf(t, parts[pkg], name)
		version, release, err := resolve.Gates{}.Version(b)
		if err != nil || version != row[2] || release != row[3] {
			t.Errorf("%s: version %s, release %s, %v, want %s, %s", name, version, release, err, row[2], row[3])
		}
		validation := "ok"
		if property, found := resolve.Dependency(b); found {
			validation = (&resolve.DependencyError{Bundle: name, Property: property}).Reason()
		}
		if validation != row[4] {
			t.Errorf("%s: validation %s, want %s", name, validation, row[4])
		}
		installed, ok := r.Installed(name)
		if !ok {
			t.Fatalf("%s is not there", name)
		}
		check("pinned", row[5], resolve.Request{Version: version})
		check("upgrade", row[6], resolve.Request{Installed: installed})
		check("self-certified", row[7], resolve.Request{Installed: installed, SelfCertified: true})
	}
	if bundles != 757 {
		t.Errorf("%d bundles were compared", bundles)
	}
}

func bundleOf(t *testing.T, c *declcfg.Catalog, name string) *declcfg.Bundle {
	t.Helper()
	for i := range c.Bundles {
		if c.Bundles[i].Name == name {
			return &c.Bundles[i]
		}
	}
	t.Fatalf("there is no bundle %s", name)
	return nil
}
