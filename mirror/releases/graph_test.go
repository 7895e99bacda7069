package releases_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/releases"
)

// What is no graph is refused with the place and the reason.
func TestMalformedGraphs(t *testing.T) {
	for text, want := range map[string]string{
		``:                          "no graph: unexpected EOF",
		`<html>`:                    "no graph: invalid character '<' looking for beginning of value",
		`[]`:                        "no graph: no JSON object",
		`null`:                      "no graph: no JSON object",
		`{"nodes":{}}`:              "no graph: nodes is no list",
		`{"nodes":[{}]}`:            `no graph: nodes[0]: "" is no version of the form X.Y.Z or X.Y.Z-PRERELEASE`,
		`{"nodes":[null]}`:          `no graph: nodes[0]: "" is no version of the form X.Y.Z or X.Y.Z-PRERELEASE`,
		`{"nodes":[{"version":4}]}`: "no graph: nodes[0]: json: cannot unmarshal number into Go struct field .Version of type string",
		`{"nodes":[]} {}`:           "no graph: there is more after the JSON object",
		`{"nodes":[],`:              "no graph: unexpected EOF",
		`{"edges":[[0,"1"]]}`:       "no graph: edges[0]: json: cannot unmarshal string into Go value of type int",
		`{"nodes":[{"version":"4.1.0","metadata":{"a":1}}]}`: "no graph: nodes[0]: json: cannot unmarshal number into Go " +
			"struct field .Metadata of type string",
	} {
		_, err := releases.ParseGraph([]byte(text))
		if err == nil || err.Error() != want || !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: got\n%v\nwant\n%s", text, err, want)
		}
	}
	for _, text := range []string{`{}`, `{"nodes":null,"EDGES":null}`, "{\"NODES\":[{\"Version\":\"4.1.0\"}]}\n",
		`{"edges":[[0],[0,9],null],"conditionalEdges":{"a":[{}]}}`} {
		if _, err := releases.ParseGraph([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Sizes and numbers are bounded before they are in memory.
func TestLimits(t *testing.T) {
	long := strings.Repeat("0", 70<<10)
	for name, text := range map[string]string{
		"nodes":   `{"nodes":[` + strings.Repeat(`{"version":"4.1.0"},`, 50_001) + `{"version":"4.1.0"}]}`,
		"edges":   `{"edges":[` + strings.Repeat(`[],`, 1_000_001) + `[]]}`,
		"node":    `{"nodes":[{"version":"4.1.0","metadata":{"a":"` + long + `"}}]}`,
		"payload": `{"nodes":[{"version":"4.1.0","payload":"` + long[:2000] + `"}]}`,
		"edge":    `{"edges":[[0` + strings.Repeat(",0", 1000) + `]]}`,
		"text":    `{"a":"` + strings.Repeat("0", releases.MaxGraph) + `"}`,
	} {
		if _, err := releases.ParseGraph([]byte(text)); !errors.Is(err, fault.ErrLimit) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	_, err := releases.ParseGraph([]byte(`{"nodes":[{"version":"4.1.0-` + strings.Repeat("a", 300) + `"}]}`))
	if !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("version: %v", err)
	}
}

// Graphs that contradict themselves or each other are refused, with both images or versions.
func TestContradictions(t *testing.T) {
	node := func(version, image string) string {
		return fmt.Sprintf(`{"version":%q,"payload":%q}`, version, image)
	}
	nodes := func(list ...string) string { return `{"nodes":[` + strings.Join(list, ",") + `],"edges":[]}` }
	full := []releases.Channel{{Name: "a-4.1", Full: true}, {Name: "b-4.1", Full: true}}
	for name, c := range map[string]struct {
		channels []releases.Channel
		graphs   graphs
		wants    string
	}{
		"one version, two images": {full[:1], graphs{"*": nodes(node("4.1.0", "r/a"), node("4.1.0", "r/b"))},
			`the version 4.1.0 has two images, "r/a" and "r/b"`},
		"one image, two versions": {full[:1], graphs{"*": nodes(node("4.1.0", "r/a"), node("4.1.1", "r/a"))},
			`the image "r/a" is two versions, 4.1.0 and 4.1.1`},
		"only the head is chosen": {[]releases.Channel{{Name: "a-4.1"}},
			graphs{"*": nodes(node("4.1.0", "r/a"), node("4.1.1", "r/a"))}, "two versions, 4.1.0 and 4.1.1"},
		"two channels": {full, graphs{"amd64/a-4.1": nodes(node("4.1.0", "r/a")), "amd64/b-4.1": nodes(node("4.1.0", "r/b"))},
			"two images"},
		"the same twice": {full[:1], graphs{"*": nodes(node("4.1.0", "r/a"), node("4.1.0", "r/a"))}, ""},
		"another version is": {[]releases.Channel{{Name: "a-4.1"}},
			graphs{"*": nodes(node("4.1.0", "r/a"), node("4.1.0", "r/b"), node("4.1.1", "r/c"))}, ""},
	} {
		choice, err := releases.Request{Channels: c.channels, NoCrossChannel: true}.Choose(t.Context(), c.graphs)
		if c.wants == "" && (err != nil || len(choice.Releases) != 1) ||
			c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)) {
			t.Errorf("%s: %+v, %v", name, choice, err)
		}
		compat, err := releases.Request{Channels: c.channels, NoCrossChannel: true, Compat: true}.Choose(t.Context(), c.graphs)
		if err != nil || !strings.Contains(strings.Join(compat.Warnings, ""), c.wants) {
			t.Errorf("%s: %+v, %v", name, compat, err)
		}
	}
}

// A graph as large as the limits allow is searched in reasonable time and without recursion.
func TestLongPath(t *testing.T) {
	var versions []string
	for i := range 20_000 {
		versions = append(versions, fmt.Sprintf("4.1.%d", i))
	}
	choice, err := releases.Request{Channels: []releases.Channel{{Name: "a", Full: true, ShortestPath: true}}}.
		Choose(t.Context(), graphs{"*": graph(versions...)})
	if err != nil || len(choice.Releases) != len(versions) {
		t.Error(len(choice.Releases), err)
	}
}

// Whatever a server answers to every query, a choice ends, and has versions within bounds or an error.
func FuzzChoose(f *testing.F) {
	for _, set := range recordedGraphs(f) {
		for _, text := range set {
			f.Add([]byte(text), "4.1.0", "4.2.0", byte(3))
		}
	}
	f.Add([]byte(`{"nodes":[{"version":"4.1.0"}],"edges":[[0,0],[0,-1]]}`), "", "", byte(7))
	f.Fuzz(func(t *testing.T, text []byte, lowest, highest string, flags byte) {
		request := releases.Request{
			Channels: []releases.Channel{
				{Name: "a-4.1", MinVersion: lowest, ShortestPath: flags&1 != 0, Full: flags&2 != 0},
				{Name: "b-4.3", MaxVersion: highest, ShortestPath: flags&4 != 0, Full: flags&8 != 0},
				{Name: "c", Type: releases.OKD, MinVersion: lowest, MaxVersion: highest},
			},
			Architectures: []string{"amd64", "multi"}, Compat: flags&16 != 0, Strict: flags&32 != 0,
		}
		choice, err := request.Choose(t.Context(), graphs{"*": string(text)})
		images := map[string]bool{}
		for _, r := range choice.Releases {
			if r.Image == "" || r.Version == "" || r.Why == "" || images[r.Image] {
				t.Errorf("%+v", r)
			}
			images[r.Image] = true
		}
		if err == nil && len(choice.Releases) == 0 {
			t.Error("neither releases nor an error")
		}
		if err != nil && fault.ClassOf(err) == 0 {
			t.Errorf("an error without a class: %v", err)
		}
	})
}
