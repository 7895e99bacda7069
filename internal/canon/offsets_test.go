package canon

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// The offsets of a document delimit its text in the stream; separators between documents belong to none.
func TestOffsets(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		texts  []string
	}{
		"nothing":                       {"", nil},
		"JSON":                          {" {\"a\":1}\n{\"b\":\n2}\n", []string{`{"a":1}`, "{\"b\":\n2}"}},
		"JSON without anything between": {`{"a":1}{"b":2}`, []string{`{"a":1}`, `{"b":2}`}},
		"YAML":                          {"a: 1\n---\nb: 2\n", []string{"a: 1\n", "b: 2\n"}},
		"separator first":               {"---\na: 1\n---\nb: 2", []string{"a: 1\n", "b: 2"}},
		"separators with comments": {"--- # one\na: 1\n--- # two\n---\n---\nb: 2\n---\n",
			[]string{"a: 1\n", "b: 2\n"}},
		"comments": {"# file\n---\n# one\n\na: 1\n# end\n---\n# nothing\n---\nb: 2\n",
			[]string{"# one\n\na: 1\n# end\n", "b: 2\n"}},
		"CR LF": {"---\r\n# one\r\na: 1\r\nc: 2\r\n---\r\nb: 2\r\n",
			[]string{"# one\r\na: 1\r\nc: 2\r\n", "b: 2\r\n"}},
		"JSON that goes on as YAML": {"{\"a\": 1}\n---\nb: 2\n---\n{c: 3}\n",
			[]string{`{"a": 1}`, "b: 2\n", "{c: 3}\n"}},
		"flow that looks like JSON": {"{a: 1}\n---\nb: 2\n", []string{"{a: 1}\n", "b: 2\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.stream),
				iotest.OneByteReader(strings.NewReader(c.stream))} {
				if texts := texts(t, r, []byte(c.stream)); !slices.Equal(texts, c.texts) {
					t.Errorf("got %q, want %q", texts, c.texts)
				}
			}
		})
	}
}

func TestOffsetsInTheCorpus(t *testing.T) {
	count := 0
	corpus(t, func(_ string, data []byte) { count += len(texts(t, bytes.NewReader(data), data)) })
	if count == 0 {
		t.Error("there is no corpus")
	}
}

// texts returns the text at the offsets of each document of a stream, up to its end or an error. It checks that each
// text alone gives the same document.
func texts(t *testing.T, r io.Reader, stream []byte) (texts []string) {
	s := NewSplitter(r, Limits{})
	for end := int64(0); ; {
		d, err := s.Next()
		if err != nil {
			return texts
		}
		if d.Start < end || d.End < d.Start || d.End > int64(len(stream)) {
			t.Fatalf("a document from %d to %d, behind one that ends at %d", d.Start, d.End, end)
		}
		end = d.End
		text := string(stream[d.Start:d.End])
		texts = append(texts, text)
		data := bytes.Clone(d.Data)
		if !d.JSON {
			text = "---\n" + text
		}
		alone, err := NewSplitter(strings.NewReader(text), Limits{}).Next()
		if err != nil || !bytes.Equal(alone.Data, data) || alone.JSON != d.JSON {
			t.Errorf("%q alone is %q, %v; in the stream it is %q", text, alone.Data, err, data)
		}
	}
}
