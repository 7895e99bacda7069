package manual

import (
	"reflect"
	"testing"
	"testing/fstest"
)

func TestRead(t *testing.T) {
	text := "# A title: `with code`\n\nText with [a link](x.md#y), `[none](z)`\nand <img src=\"i.png\">.\n\n" +
		"    indented\n\n      deeper\n\n## Twice\n```sh\nls\n```\n## Twice\n- a\n\n  ```json\n  {}\n  ```\n| `a | b` |\n"
	p, err := Read(fstest.MapFS{"p.md": {Data: []byte(text)}}, "p.md")
	if err != nil {
		t.Fatal(err)
	}
	want := &Page{Path: "p.md", Title: "A title: `with code`", Lines: 20,
		Anchor: map[string]int{"a-title-with-code": 1, "twice": 10}, Twice: []string{"twice"},
		Links:  []Link{{3, "x.md#y"}, {4, "i.png"}},
		Blocks: []Block{{6, "", "indented\n\n  deeper\n"}, {12, "sh", "ls\n"}, {18, "json", "{}\n"}},
		Spans:  []Span{{1, "with code", false}, {3, "[none](z)", false}, {20, "a | b", true}}}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("\ngot  %+v\nwant %+v", p, want)
	}
}
