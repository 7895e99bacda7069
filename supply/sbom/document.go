package sbom

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/opencontainers/go-digest"
)

// document writes one JSON object: entries of its arrays are one line each, and nothing is kept.
type document struct {
	w       *bufio.Writer
	line    bytes.Buffer
	enc     *json.Encoder
	members int
	entries int
	err     error
}

func newDocument(w io.Writer) *document {
	d := &document{w: bufio.NewWriterSize(w, 64<<10)}
	d.enc = json.NewEncoder(&d.line)
	d.enc.SetEscapeHTML(false)
	d.put("{")
	return d
}

func (d *document) put(text string) {
	if d.err == nil {
		_, d.err = d.w.WriteString(text)
	}
}

// encode returns a value on one line.
func (d *document) encode(v any) []byte {
	d.line.Reset()
	if err := d.enc.Encode(v); err != nil && d.err == nil {
		d.err = err
	}
	return bytes.TrimSuffix(d.line.Bytes(), []byte("\n"))
}

func (d *document) separate() {
	if d.members++; d.members > 1 {
		d.put(",")
	}
	d.put("\n")
}

func (d *document) member(name string, value any) {
	d.separate()
	d.put(`"` + name + `":` + string(d.encode(value)))
}

// begin begins an array; entry adds to it and end ends it.
func (d *document) begin(name string) {
	d.separate()
	d.put(`"` + name + `":[`)
	d.entries = 0
}

func (d *document) entry(v any) {
	if d.entries++; d.entries > 1 {
		d.put(",")
	}
	d.put("\n" + string(d.encode(v)))
}

func (d *document) end() { d.put("\n]") }

func (d *document) close() error {
	d.put("\n}\n")
	if d.err != nil {
		return d.err
	}
	return d.w.Flush()
}

// sha256 is the digest of the component in hexadecimal; empty if it has none of this algorithm.
func (c *component) sha256() string {
	if c.digest == "" || c.digest.Algorithm() != digest.SHA256 {
		return ""
	}
	return c.digest.Encoded()
}
