package declcfg_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// A stream with one blob per line holds the same catalog as the other formats.
func TestNDJSON(t *testing.T) {
	text := `{"schema":"olm.package","name":"a","defaultChannel":"x","description":"two\nlines & <angles>"}
{"schema":"olm.channel","package":"a","name":"x","entries":[{"name":"a.v1"}]}
{"schema":"custom","package":"a","n":1.0,"z":{"b":1,"a":[1e400]}}
`
	c, err := declcfg.Read(context.Background(), strings.NewReader(text), "in", declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var lines, indented bytes.Buffer
	if err := c.Write(&lines, declcfg.FormatNDJSON); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(lines.String(), "\n"), "\n")
	if len(got) != 3 {
		t.Fatalf("%d lines for 3 blobs:\n%s", len(got), lines.String())
	}
	for _, l := range got {
		if !json.Valid([]byte(l)) {
			t.Errorf("not JSON: %s", l)
		}
	}
	again, err := declcfg.Read(context.Background(), &lines, "lines", declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := c.Write(&indented, declcfg.FormatJSON); err != nil {
		t.Fatal(err)
	}
	if err := again.Write(&want, declcfg.FormatJSON); err != nil {
		t.Fatal(err)
	}
	if want.String() != indented.String() {
		t.Errorf("read back:\n%s\nwritten:\n%s", want.String(), indented.String())
	}
	if _, err := declcfg.ParseFormat("ndjson"); err == nil {
		t.Error("files of a catalog cannot be lines")
	}
}
