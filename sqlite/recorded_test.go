package sqlite_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// write reads a database and returns the catalog in it as JSON or YAML.
func write(t *testing.T, path string, f declcfg.Format, o sqlite.Options) (string, []sqlite.Finding, error) {
	t.Helper()
	o.TempDir = t.TempDir()
	db, err := sqlite.Open(context.Background(), path, o)
	if err != nil {
		return "", nil, err
	}
	defer db.Close()
	var out bytes.Buffer
	if err := declcfg.Write(&out, f, db.Blobs(context.Background())); err != nil {
		return "", db.Findings(), err
	}
	return out.String(), db.Findings(), nil
}

// differ returns the first line in which two texts differ, with some lines around it.
func differ(got, want string) string {
	if got == want {
		return ""
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	around := func(lines []string) string {
		var b strings.Builder
		for _, l := range lines[max(0, i-6):min(len(lines), i+6)] {
			if len(l) > 120 {
				l = l[:120] + "..."
			}
			b.WriteString("    " + l + "\n")
		}
		return b.String()
	}
	return "got\n" + around(g) + "want\n" + around(w)
}

func TestRecordedRender(t *testing.T) {
	all := recorded.All(t)
	for _, name := range all.Databases(t) {
		for _, compat := range []sqlite.Compat{sqlite.CompatNone, sqlite.CompatOPM} {
			t.Run(name+"/"+string(compat), func(t *testing.T) {
				t.Parallel()
				golden := "golden/" + name + "/render.json"
				got, findings, err := write(t, all.Database(t, name), declcfg.FormatJSON, sqlite.Options{Compat: compat})
				if err != nil {
					t.Fatal(err)
				}
				want := ""
				if all.Has(golden) {
					want = string(all.File(t, golden))
				}
				if d := differ(got, want); d != "" {
					t.Errorf("%s\nfindings: %+v", d, findings)
				}
			})
		}
	}
}

func TestLevels(t *testing.T) {
	all := recorded.All(t)
	for _, name := range all.Databases(t) {
		golden := "golden/" + name + "/render-csvmeta.json"
		if !all.Has(golden) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := sqlite.Open(context.Background(), all.Database(t, name), sqlite.Options{Compat: sqlite.CompatOPM, CSVOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var out bytes.Buffer
			enc := declcfg.NewEncoder(&out, declcfg.FormatJSON)
			for b, err := range db.Blobs(context.Background()) {
				if err != nil {
					t.Fatal(err)
				}
				if b, ok := b.(*declcfg.Bundle); ok {
					if err := edit.LevelCSVMetadata.Apply(b); err != nil {
						t.Fatal(err)
					}
				}
				if err := enc.Encode(b); err != nil {
					t.Fatal(err)
				}
			}
			if d := differ(out.String(), string(all.File(t, golden))); d != "" {
				t.Error(d)
			}
		})
	}
}
