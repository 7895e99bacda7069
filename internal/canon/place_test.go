package canon_test

import (
	"fmt"
	"testing"

	"github.com/operator-bindery/bindery/internal/canon"
)

func TestPlaces(t *testing.T) {
	const yaml = "a: &x\n  b: [1, two]\nc: *x\nd: {<<: *x}\n'e': 0x10\n"
	for name, c := range map[string]struct {
		doc  string
		json bool
		path []any
		key  string
		want string // LINE:COLUMN WRITTEN
	}{
		"a value":             {yaml, false, []any{"a", "b", 1}, "", "2:10 two"},
		"behind an alias":     {yaml, false, []any{"c", "b", 0}, "", "2:7 1"},
		"a merged value":      {yaml, false, []any{"d", "b", 0}, "", "2:7 1"},
		"a key":               {yaml, false, nil, "e", "5:1 e"},
		"a key behind":        {yaml, false, []any{"c"}, "b", "2:3 b"},
		"as written":          {yaml, false, []any{"e"}, "", "5:6 0x10"},
		"a list is no text":   {yaml, false, []any{"a", "b"}, "", "2:6 "},
		"no such key":         {yaml, false, nil, "f", "0:0 "},
		"no such value":       {yaml, false, []any{"a", 1, "x"}, "", "0:0 "},
		"a key of a list":     {yaml, false, []any{"a", "b"}, "x", "0:0 "},
		"JSON":                {"{\"a\":\n [1, \"z\"]}", true, []any{"a", 1}, "", "2:6 z"},
		"what is no document": {"a: [", false, []any{"a"}, "", "0:0 "},
	} {
		p := canon.NewLocator([]byte(c.doc), c.json).Root()
		for _, step := range c.path {
			p = p.In(step)
		}
		if c.key != "" {
			p = p.Key(c.key)
		}
		line, column := p.Position()
		if got := fmt.Sprintf("%d:%d %s", line, column, p.Written()); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
