package releases_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/releases"
)

// graphs are texts of graphs by ARCH/CHANNEL; * is for all. What is not there is an unknown channel.
type graphs map[string]string

func (g graphs) Graph(_ context.Context, of releases.Query) (*releases.Graph, error) {
	text, ok := g[of.Architecture+"/"+of.Channel]
	if !ok {
		text = g["*"]
	}
	if text == "" {
		text = "{}"
	}
	return releases.ParseGraph([]byte(text))
}

// basic are graphs that were recorded.
func basic(t testing.TB) graphs {
	t.Helper()
	g := graphs{}
	for name, text := range recordedGraphs(t)["basic"] {
		g[name] = string(text)
	}
	return g
}

// graph makes the text of a graph in which each version has an edge to the next one, but for versions after a bar.
func graph(versions ...string) string {
	type node struct {
		Version  string            `json:"version"`
		Payload  string            `json:"payload"`
		Metadata map[string]string `json:"metadata"`
	}
	form := struct {
		Nodes []node  `json:"nodes"`
		Edges [][]int `json:"edges"`
	}{}
	joined := false
	for _, v := range versions {
		if v == "|" {
			joined = false
			continue
		}
		if n := len(form.Nodes); joined {
			form.Edges = append(form.Edges, []int{n - 1, n})
		}
		joined = true
		form.Nodes = append(form.Nodes, node{v, "registry.example.com/r@" + v,
			map[string]string{"io.openshift.upgrades.graph.release.channels": "stable-4.10,stable-4.9, fast-4.10,\x1b[0m"}})
	}
	text, err := json.Marshal(form)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// describe returns releases one per line, with the reasons.
func describe(c *releases.Choice) string {
	var b strings.Builder
	for _, r := range c.Releases {
		fmt.Fprintf(&b, "%s %s %s %s: %s\n", r.Version, r.Architecture, r.Type, r.Channel, r.Why)
	}
	return b.String()
}

// A release says where it is from and why it is chosen, and releases have an order.
func TestWhy(t *testing.T) {
	g := basic(t)
	for _, c := range []struct {
		request releases.Request
		want    string
	}{
		{releases.Request{Channels: []releases.Channel{{Name: "stable-4.16"}}, Architectures: []string{"arm64", "amd64"}},
			"4.16.2 arm64 ocp stable-4.16: head of stable-4.16\n4.16.3 amd64 ocp stable-4.16: head of stable-4.16\n"},
		{releases.Request{Channels: []releases.Channel{{Name: "stable-4.16", MinVersion: "4.16.2"}}},
			"4.16.2 amd64 ocp stable-4.16: within 4.16.2..4.16.3 of stable-4.16\n" +
				"4.16.3 amd64 ocp stable-4.16: within 4.16.2..4.16.3 of stable-4.16\n"},
		{releases.Request{Channels: []releases.Channel{{Name: "stable-4.16", MinVersion: "4.15.4", MaxVersion: "4.16.2",
			ShortestPath: true}}},
			"4.15.4 amd64 ocp stable-4.16: on the shortest path from 4.15.4 to 4.16.2 in stable-4.16\n" +
				"4.16.2 amd64 ocp stable-4.16: on the shortest path from 4.15.4 to 4.16.2 in stable-4.16\n"},
		{releases.Request{Channels: []releases.Channel{{Name: "stable-4.16"}, {Name: "stable-4.15"}}},
			"4.15.4 amd64 ocp stable-4.15: head of stable-4.15\n" +
				"4.16.2 amd64 ocp stable-4.16: on the way from stable-4.15 to stable-4.16\n" +
				"4.16.3 amd64 ocp stable-4.16: head of stable-4.16\n"},
		{releases.Request{Channels: []releases.Channel{{Name: "stable-4.16"}, {Name: "stable-4.15"}},
			NoCrossChannel: true},
			"4.15.4 amd64 ocp stable-4.15: head of stable-4.15\n4.16.3 amd64 ocp stable-4.16: head of stable-4.16\n"},
		{releases.Request{}, ""},
	} {
		choice, err := c.request.Choose(t.Context(), g)
		if err != nil {
			t.Errorf("%+v: %v", c.request, err)
		}
		if got := describe(choice); got != c.want {
			t.Errorf("got\n%swant\n%s", got, c.want)
		}
	}
}

// Every failure says what it is about and what to do; what was chosen all the same is returned.
func TestFailures(t *testing.T) {
	g := basic(t)
	g["amd64/gap-4.10"] = graph("4.10.0", "|", "4.10.1", "4.10.2")
	g["amd64/gap-4.11"] = graph("4.11.0", "|", "4.11.1")
	g["amd64/next-5.0"], g["amd64/next"] = graph("5.0.0"), graph("5.0.0")
	g["amd64/stable-4.10"] = graph("4.9.8", "4.10.0")
	for _, c := range []struct {
		name     string
		request  releases.Request
		want     string // the error
		warnings string
		chosen   int
	}{
		{"a request in error", releases.Request{Architectures: []string{"x86_64"}, Channels: []releases.Channel{
			{Name: "../x"}, {Name: "", Type: "oc"}, {Name: "a", MinVersion: "4.16", MaxVersion: "v4.16.0"}, {Name: "a"}}},
			`the architecture "x86_64" is unknown (known are amd64, arm64, multi, ppc64le, s390x)
channel "../x": "../x" is no name of a channel, such as stable-4.16
"" is no name of a channel, such as stable-4.16
the type "oc" is unknown (write ocp or okd)
channel "a": minVersion: "4.16" is no version of the form X.Y.Z or X.Y.Z-PRERELEASE
channel "a": maxVersion: "v4.16.0" is no version of the form X.Y.Z or X.Y.Z-PRERELEASE
channel "a": the channel is requested twice (join the two, or remove one)`, "", 0},
		{"an unknown channel", releases.Request{Channels: []releases.Channel{{Name: "stable-4.10"}, {Name: "stabel-4.9"}}},
			`channel "stabel-4.9", amd64: the channel is unknown, or has no versions for this architecture ` +
				`(did you mean "stable-4.9"?)`, "", 1},
		{"an unknown channel alone", releases.Request{Channels: []releases.Channel{{Name: "stable-9.9"}}},
			`channel "stable-9.9", amd64: the channel is unknown, or has no versions for this architecture ` +
				`(check its name; list the channels of its version X.Y to see what there is)`, "", 0},
		{"an unknown version", releases.Request{Channels: []releases.Channel{{Name: "stable-4.16", ShortestPath: true,
			MinVersion: "4.15.9"}}},
			`channel "stable-4.16", amd64: there is no version 4.15.9 (next to it: 4.15.4 and 4.16.0)`, "", 0},
		{"nothing between bounds", releases.Request{Channels: []releases.Channel{{Name: "stable-4.16",
			MinVersion: "4.17.0"}}}, `channel "stable-4.16", amd64: the lowest version 4.17.0 is higher than the highest ` +
			`4.16.3, so that none is between them`, "", 0},
		{"nothing between bounds, beside something", releases.Request{NoCrossChannel: true, Channels: []releases.Channel{
			{Name: "stable-4.16", MinVersion: "4.15.9", MaxVersion: "4.15.10"}, {Name: "stable-4.15"}}}, "",
			`channel "stable-4.16", amd64: there is no version from 4.15.9 to 4.15.10 (the first is 4.15.2, the last 4.16.3)`,
			1},
		{"no path", releases.Request{Channels: []releases.Channel{{Name: "gap-4.10", ShortestPath: true, Full: true}}}, "",
			`channel "gap-4.10", amd64: there is no path of updates from 4.10.0 to 4.10.2; versions between are not chosen`,
			2},
		{"no path, strict", releases.Request{Strict: true, Channels: []releases.Channel{{Name: "gap-4.10",
			ShortestPath: true, Full: true}}},
			`channel "gap-4.10", amd64: there is no path of updates from 4.10.0 to 4.10.2`, "", 0},
		{"no path across, strict", releases.Request{Strict: true, Channels: []releases.Channel{{Name: "gap-4.10"},
			{Name: "gap-4.11"}}}, `channel "gap-4.10" to channel "gap-4.11", amd64: channel "gap-4.11": it does not have ` +
			`4.10.2, so that there is no path of updates from this version`, "", 2},
		{"another major version", releases.Request{Channels: []releases.Channel{{Name: "stable-4.16"}, {Name: "next-5.0"}}},
			`channel "stable-4.16" to channel "next-5.0", amd64: there is no way between them from the lowest version of ` +
				`all to the highest: it leads to higher minor versions of the same major version (check minVersion and ` +
				`maxVersion, or turn off paths across channels)`, "", 2},
		{"a name without a version", releases.Request{Channels: []releases.Channel{{Name: "stable-4.16"}, {Name: "next"}}},
			`channel "stable-4.16" to channel "next", amd64: the name "next" does not end in -X.Y, so that no path leads ` +
				`to other channels (turn off paths across channels)`, "", 2},
		{"a filter", releases.Request{VersionFilter: regexp.MustCompile("^x"), Channels: []releases.Channel{
			{Name: "stable-4.16"}}}, `channel "stable-4.16", amd64: no version matches VERSION_FILTER`,
			`VERSION_FILTER is not supported: only versions that match "^x" can be the first or the last of a channel`, 0},
		{"other heads", releases.Request{Architectures: []string{"amd64", "arm64"}, Channels: []releases.Channel{
			{Name: "stable-4.16"}}}, "",
			`channel "stable-4.16": the last version is 4.16.3 for amd64, and 4.16.2 for arm64`, 2},
	} {
		choice, err := c.request.Choose(t.Context(), g)
		got := ""
		if err != nil {
			got = err.Error()
			var e *releases.Error
			if !errors.As(err, &e) || fault.ClassOf(err) != fault.Input {
				t.Errorf("%s: %T of class %d", c.name, err, fault.ClassOf(err))
			}
		}
		if got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
		if got := strings.Join(choice.Warnings, "\n"); got != c.warnings {
			t.Errorf("%s: warnings\n%s\nwant\n%s", c.name, got, c.warnings)
		}
		if len(choice.Releases) != c.chosen {
			t.Errorf("%s:\n%s", c.name, describe(choice))
		}
	}
}

// counted counts what is asked.
type counted struct {
	graphs
	asked int
}

func (c *counted) Graph(ctx context.Context, of releases.Query) (*releases.Graph, error) {
	c.asked++
	return c.graphs.Graph(ctx, of)
}

// A server that ignores the channel does not make a choice endless.
func TestStaticServer(t *testing.T) {
	for name, asked := range map[string]int{"a-4.101": 101, "a-4.102": 2, "a-4.4000000000": 2, "a-4.0": 2,
		"a-5.1": 2, "a-4": 2, "a": 2, "a-": 2, "a-4.99999999999999999999": 2, "b-4.1": 2} {
		g := &counted{graphs: graphs{"*": graph("4.1.0", "4.1.1")}}
		choice, err := releases.Request{Channels: []releases.Channel{{Name: "a-4.1", MaxVersion: "4.1.0"},
			{Name: name}}}.Choose(t.Context(), g)
		if len(choice.Releases) != 2 || g.asked != asked || (err == nil) != (name == "a-4.101" || name == "b-4.1") {
			t.Errorf("%s: asked %d, %v\n%s", name, g.asked, err, describe(choice))
		}
	}
}

// A canceled choice says so, and nothing else.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	_, err := releases.Request{Channels: []releases.Channel{{Name: "stable-4.16"}}}.Choose(ctx, basic(t))
	if err != stop {
		t.Error(err)
	}
}

func TestListing(t *testing.T) {
	g := graphs{"amd64/stable-4.10": graph("4.10.2", "4.10.10", "4.10.2", "4.9.8")}
	versions, err := releases.Versions(t.Context(), g, "stable-4.10", "amd64")
	if want := []string{"4.9.8", "4.10.2", "4.10.10"}; err != nil || !slices.Equal(versions, want) {
		t.Errorf("%q, %v", versions, err)
	}
	channels, err := releases.ChannelsOf(t.Context(), g, "4.10", "amd64")
	if want := []string{"fast-4.10", "stable-4.10", "stable-4.9"}; err != nil || !slices.Equal(channels, want) {
		t.Errorf("%q, %v", channels, err)
	}
	for _, try := range []func() ([]string, error){
		func() ([]string, error) { return releases.Versions(t.Context(), g, "stable-9.9", "amd64") },
		func() ([]string, error) { return releases.Versions(t.Context(), g, "stable-4.10", "x86") },
		func() ([]string, error) { return releases.Versions(t.Context(), g, "a/b", "amd64") },
		func() ([]string, error) { return releases.ChannelsOf(t.Context(), g, "9.9", "amd64") },
		func() ([]string, error) { return releases.ChannelsOf(t.Context(), g, "4", "amd64") },
	} {
		if found, err := try(); found != nil || fault.ClassOf(err) != fault.Input {
			t.Errorf("%q, %v", found, err)
		}
	}
	tags := []string{"4.9.8-x86_64", "4.10.0-rc.1-aarch64", "4.10.2-multi", "4.2.0", "sha256-4.11.0.sig", "latest", "4.12",
		"99999999999999999999.1.1"}
	if got, want := releases.Minors(tags), []string{"4.2", "4.9", "4.10"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
