package catalogdir

import (
	"bytes"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// form describes the formatting of a document.
type form struct {
	json   bool
	indent string // of JSON; empty for a single line
	spaces bool   // single-line JSON has spaces after colons and commas
	crlf   bool
}

// maxIndent is the longest indentation that is copied, in bytes.
const maxIndent = 16

// defaultForm is the formatting that declcfg writes.
func defaultForm(isJSON bool) form { return form{json: isJSON, indent: "    "} }

// formOf detects the formatting of a document.
func formOf(text []byte, isJSON, crlf bool) form {
	f := defaultForm(isJSON)
	f.crlf = crlf
	if !isJSON {
		return f
	}
	text = bytes.TrimSpace(text)
	rest := bytes.TrimLeft(text[min(1, len(text)):], " \t")
	if len(rest) == 0 {
		return f
	}
	if !bytes.Contains(text, []byte("\n")) {
		f.indent = ""
		// The text before the first key shows the indentation, the text after its colon the spacing.
		if colon := bytes.Index(text, []byte(`":`)); colon >= 0 && colon+2 < len(text) {
			f.spaces = text[colon+2] == ' '
		}
		return f
	}
	if rest[0] != '\n' && rest[0] != '\r' {
		return f // the document is on one line, or only its first key is
	}
	line := rest[bytes.IndexByte(rest, '\n')+1:]
	indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
	if len(indent) > 0 && len(indent) <= maxIndent {
		f.indent = string(indent)
	}
	return f
}

// encode returns the text of a blob without a separator. YAML ends with a line end, JSON does not.
func (f form) encode(t *declcfg.Texts, b declcfg.Blob) (text []byte, err error) {
	if f.json {
		text, err = t.AppendJSON(nil, b, f.indent)
	} else {
		text, err = t.AppendYAML(nil, b)
	}
	if err != nil {
		return nil, err
	}
	if f.json && f.indent == "" && f.spaces {
		text = spaced(text)
	}
	if f.crlf {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	return text, nil
}

func (f form) lineEnd() string {
	if f.crlf {
		return "\r\n"
	}
	return "\n"
}

// spaced inserts a space after the colons and commas of compact JSON.
func spaced(text []byte) []byte {
	out := make([]byte, 0, len(text)+len(text)/16)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			end := jsonscan.StringEnd(text, i)
			out = append(out, text[i:end]...)
			i = end - 1
		case ':', ',':
			out = append(out, c, ' ')
		default:
			out = append(out, c)
		}
	}
	return out
}

// comments splits the text of a YAML document into the comments and blank lines before its content, the content, and
// the unindented comments and blank lines after it.
func comments(text []byte) (lead, content, trail []byte) {
	at := 0
	for at < len(text) {
		line := nextLine(text[at:])
		if t := bytes.TrimLeft(bytes.TrimRight(line, "\r\n"), " "); len(t) > 0 && t[0] != '#' {
			break
		}
		at += len(line)
	}
	lead, content = text[:at], text[at:]
	end, seen := len(content), false
	for end > 0 {
		start := bytes.LastIndexByte(content[:end-1], '\n') + 1
		line := strings.TrimRight(string(content[start:end]), "\r\n")
		if line != "" && line[0] != '#' {
			break
		}
		seen = seen || line != ""
		end = start
	}
	if !seen {
		return lead, content, nil // trailing blank lines without a comment may belong to the content
	}
	return lead, content[:end], content[end:]
}

// nextLine returns the first line of a text including its line end.
func nextLine(text []byte) []byte {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1]
	}
	return text
}
