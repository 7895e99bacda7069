package web

import (
	"bytes"
	"errors"
	"strings"
)

// literal is markup. Only constants are converted implicitly: turning a value into markup takes an explicit conversion,
// and this package has none. So text from a catalog cannot become markup.
type literal string

// maxPage is the maximum size of a page in bytes.
const maxPage = 8 << 20

// errPageSize is returned for a page that would be larger.
var errPageSize = errors.New("the page is too large")

// markup is a page being written.
type markup struct {
	bytes.Buffer
	full bool
}

// emit writes markup with "{}" replaced by values: as text, or as the whole of an attribute in double quotes.
// Both are escaped in the same way. After a page has reached its maximum size, nothing more is written.
func (h *markup) emit(markup literal, values ...string) {
	rest := string(markup)
	for _, v := range values {
		before, after, ok := strings.Cut(rest, "{}")
		if !ok {
			panic("more values than places in " + string(markup))
		}
		h.write(before)
		h.write(escaper.Replace(v))
		rest = after
	}
	if strings.Contains(rest, "{}") {
		panic("more places than values in " + string(markup))
	}
	h.write(rest)
}

func (h *markup) write(s string) {
	if h.full = h.full || h.Len()+len(s) > maxPage; !h.full {
		h.WriteString(s)
	}
}

// drawing is SVG from package graph, which escapes texts in the same way.
type drawing struct{ svg bytes.Buffer }

// maxDrawing is the maximum size of a drawing in bytes.
const maxDrawing = 4 << 20

func (d *drawing) Write(b []byte) (int, error) {
	if d.svg.Len()+len(b) > maxDrawing {
		return 0, errPageSize
	}
	return d.svg.Write(b)
}

// draw adds a finished drawing to the page.
func (h *markup) draw(d *drawing) { h.write(d.svg.String()) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\x00", "\uFFFD",
	"\r", "&#13;")
