package web

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// The queries in docs/http.md have the answers that stand there.
func TestQueriesOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := declcfg.Walk(t.Context(), os.DirFS("../../testdata/fbc/mini"), declcfg.LoadOptions{},
		func(m *declcfg.Meta) error { return w.Add(m) }); err != nil {
		t.Fatal(err)
	}
	c, err := w.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	server := siteOf(t, c).URL
	const command = "    $ curl -s localhost:8080/api/v1/graphql -d '"
	n := 0
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		body, ok := strings.CutPrefix(line, command)
		if !ok {
			continue
		}
		n++
		body = strings.TrimSuffix(body, "'")
		if got := posted(t, server+"/api/v1/graphql", body).body; "    "+got != lines[i+1]+"\n" {
			t.Errorf("%s\ngot  %swant %s", body, got, lines[i+1])
		}
	}
	if n < 3 {
		t.Errorf("%d queries", n)
	}
}
