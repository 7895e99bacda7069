package web

import (
	"bytes"
	"errors"
	"strings"
)

// literal is markup. Only constants become one by themselves: to make one of a value, a conversion has to be written,
// and there is none in this package. So what comes from a catalog cannot be markup.
type literal string

// maxPage is the largest page in bytes.
const maxPage = 8 << 20

// errPageSize is a page that would be larger.
var errPageSize = errors.New("the page is too large")

// markup is a page in the making.
type markup struct {
	bytes.Buffer
	full bool
}

// put writes markup with values in the places of "{}": as text, or as the whole of an attribute in double quotes. Both
// are escaped in the same way. Once a page is full, nothing more is written.
func (h *markup) put(markup literal, values ...string) {
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

// drawing is SVG of package graph, which escapes what it draws in the same way.
type drawing struct{ svg bytes.Buffer }

// maxDrawing is the largest picture in bytes.
const maxDrawing = 4 << 20

func (d *drawing) Write(b []byte) (int, error) {
	if d.svg.Len()+len(b) > maxDrawing {
		return 0, errPageSize
	}
	return d.svg.Write(b)
}

// draw puts a finished picture on the page.
func (h *markup) draw(d *drawing) { h.write(d.svg.String()) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\x00", "\uFFFD", "\r", "&#13;")
