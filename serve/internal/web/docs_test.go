package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The queries in docs/guides/serve.md have the answers that stand there.
func TestQueriesOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guides/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	c := contentOf(t, os.DirFS("../../../testdata/fbc/mini"))
	server := siteOf(t, c).URL
	documentedMetas(t, server, strings.Split(string(text), "\n"))
	const command = "$ curl -s localhost:8080/api/v1/graphql -d '"
	n := 0
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		body, ok := strings.CutPrefix(line, command)
		if !ok {
			continue
		}
		n++
		body = strings.TrimSuffix(body, "'")
		if got := posted(t, server+"/api/v1/graphql", body).body; got != lines[i+1]+"\n" {
			t.Errorf("%s\ngot  %swant %s", body, got, lines[i+1])
		}
	}
	if n < 3 {
		t.Errorf("%d queries", n)
	}
}

// documentedMetas compares the example of metas, which prints the name and the last entry of each channel.
func documentedMetas(t *testing.T, server string, lines []string) {
	t.Helper()
	command := regexp.MustCompile(
		`^\$ curl -s 'localhost:8080(/api/v1/metas\?[^']*)' \| jq -c '\[\.name, \.entries\[-1\]\.name\]'$`)
	n := 0
	for i, line := range lines {
		m := command.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n++
		answer, err := http.Get(server + m[1])
		if err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(answer.Body)
		k := 0
		for ; ; k++ {
			var channel struct {
				Name    string
				Entries []struct{ Name string }
			}
			if err := dec.Decode(&channel); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("[%q,%q]", channel.Name, channel.Entries[len(channel.Entries)-1].Name)
			if lines[i+1+k] != got {
				t.Errorf("%s\ngot  %s\nwant %s", line, got, lines[i+1+k])
			}
		}
		if err := answer.Body.Close(); err != nil || k == 0 {
			t.Errorf("%s: %d lines, %v", line, k, err)
		}
	}
	if n != 1 {
		t.Errorf("%d examples of metas", n)
	}
}
