package catalogdir

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
)

// span is the expected position of a document in a written file.
type span struct {
	start, end int64
	json       bool
}

// rewriter writes a new version of a file: it copies unchanged documents with everything between them, and writes
// changed ones.
type rewriter struct {
	ctx    context.Context
	edit   *fileEdit
	from   *documentReader // nil for a new file
	out    *bufio.Writer
	parser *parser
	texts  *declcfg.Texts
	crlf   bool

	at    int64 // bytes written
	last  byte  // the last of them
	spans []span
}

// rewrite writes the file of an edit to w and returns the positions of its documents. from is the old file; like is the
// formatting of a new one. All files of an edit have the same texts.
func rewrite(ctx context.Context, w io.Writer, e *fileEdit, from *documentReader, like form,
	texts *declcfg.Texts) ([]span, error) {
	r := &rewriter{ctx: ctx, edit: e, from: from, out: bufio.NewWriterSize(w, 64<<10), parser: newParser(), texts: texts}
	var err error
	switch {
	case e.order != nil:
		err = r.canonical(like)
	case e.file == nil:
		err = r.fresh(like)
	default:
		err = r.rewriteAll()
	}
	if err != nil {
		return nil, err
	}
	return r.spans, r.out.Flush()
}

func (r *rewriter) write(text []byte) error {
	if len(text) > 0 {
		r.last = text[len(text)-1]
	}
	r.at += int64(len(text))
	_, err := r.out.Write(text)
	return err
}

// fresh writes a new file.
func (r *rewriter) fresh(like form) error {
	for _, b := range r.edit.added[-1] {
		if err := r.insert(b, like, nil, like.lineEnd()); err != nil {
			return err
		}
	}
	if like.json {
		return r.write([]byte(like.lineEnd()))
	}
	return nil
}

// rewriteAll writes the documents of an existing file.
func (r *rewriter) rewriteAll() error {
	docs := r.edit.file.docs
	head, err := r.from.text(0, min(64<<10, r.edit.file.info.Size()))
	if err != nil {
		return err
	}
	r.crlf = bytes.HasSuffix(nextLine(head), []byte("\r\n"))
	between := form{crlf: r.crlf}.lineEnd() // between JSON documents
	if len(docs) > 1 && docs[1].json && docs[1].start-docs[0].end < 64 {
		gap, err := r.from.text(docs[0].end, docs[1].start)
		if err != nil {
			return err
		}
		between = string(gap)
	}
	end := int64(0)
	for i, doc := range docs {
		if err := r.ctx.Err(); err != nil {
			return context.Cause(r.ctx)
		}
		gap, err := r.from.text(end, doc.start)
		if err != nil {
			return err
		}
		end = doc.end
		if err := r.document(doc, gap); err != nil {
			return fmt.Errorf("%s: %s %q: %w", r.edit.name, doc.schema, doc.name, err)
		}
		if len(r.edit.added[i]) == 0 {
			continue
		}
		f, err := r.formBehind(doc)
		if err != nil {
			return err
		}
		like, err := r.from.text(doc.start, doc.end)
		if err != nil {
			return err
		}
		for _, b := range r.edit.added[i] {
			if err := r.insert(b, f, like, between); err != nil {
				return fmt.Errorf("%s: %s %q: %w", r.edit.name, b.BlobSchema(), b.BlobName(), err)
			}
		}
	}
	tail, err := r.from.text(end, r.edit.file.info.Size())
	if err != nil {
		return err
	}
	return r.write(tail)
}

// formBehind returns the formatting of blobs inserted after a document.
func (r *rewriter) formBehind(doc *document) (form, error) {
	docs := r.edit.file.docs
	if !doc.json || !docs[len(docs)-1].json {
		return form{crlf: r.crlf}, nil // in a stream that turned from JSON to YAML, no JSON can follow
	}
	text, err := r.from.text(doc.start, doc.end)
	return formOf(text, true, r.crlf), err
}

// document writes an existing document and the gap before it, unless it is dropped.
func (r *rewriter) document(doc *document, gap []byte) error {
	if r.edit.dropped[doc.n] {
		if !doc.json {
			// Besides the separator, a gap has comments that belong to no document.
			gap = gap[:bytes.LastIndexByte(gap[:max(0, len(gap)-1)], '\n')+1]
			return r.write(gap)
		}
		return nil
	}
	if doc.json && len(r.spans) == 0 {
		// The first document has no separating white space before it.
		first, err := r.from.text(0, r.edit.file.docs[0].start)
		if err != nil {
			return err
		}
		gap = first
	}
	if !doc.json && r.behindYAML() {
		gap = bytes.TrimLeft(gap, "\r\n") // a line end after a dropped JSON document
	}
	if err := r.write(gap); err != nil {
		return err
	}
	start := r.at
	if to := r.edit.changed[doc.n]; to != nil {
		text, err := r.from.text(doc.start, doc.end)
		if err != nil {
			return err
		}
		if isReduced(to) {
			there, err := r.from.read(doc)
			if err != nil {
				return err
			}
			if to, err = (&wanted{blob: to}).restore(there); err != nil {
				return err
			}
		}
		if text, err = r.changed(text, doc.json, to); err != nil {
			return err
		}
		if err := r.write(text); err != nil {
			return err
		}
	} else if err := r.copy(doc.start, doc.end); err != nil {
		return err
	}
	r.spans = append(r.spans, span{start, r.at, doc.json})
	return nil
}

// behindYAML reports whether the last written document is YAML, whose text extends to the next separator.
func (r *rewriter) behindYAML() bool { return len(r.spans) > 0 && !r.spans[len(r.spans)-1].json }

// copy copies a range of the old file.
func (r *rewriter) copy(start, end int64) error {
	if start == end {
		return nil
	}
	n, err := io.Copy(r.out, io.NewSectionReader(r.from, start, end-start))
	if r.at += n; err != nil {
		return err
	}
	if n != end-start {
		return ErrChanged
	}
	last, err := r.from.text(end-1, end)
	if err == nil {
		r.last = last[0]
	}
	return err
}

// changed returns the new text of a document with its formatting, comments and key order.
func (r *rewriter) changed(text []byte, isJSON bool, to declcfg.Blob) ([]byte, error) {
	f := formOf(text, isJSON, r.crlf)
	encoded, err := f.encode(r.texts, to)
	if err != nil {
		return nil, err
	}
	compact := declcfg.AppendJSON(nil, to, false)
	if isJSON {
		if arranged, ok := f.arranged(text, compact); ok && r.check(arranged, true, to) == nil {
			return arranged, nil
		}
		return encoded, r.check(encoded, true, to)
	}
	lead, content, trail := comments(text)
	if patched, ok := r.patched(content, encoded, compact); ok {
		if whole := slices.Concat(lead, patched, trail); r.check(whole, false, to) == nil {
			return whole, nil
		}
	}
	// After some kinds of text, blank lines or comments would be read as content.
	for _, behind := range [][]byte{trail, bytes.TrimLeft(trail, "\r\n")} {
		if whole := slices.Concat(lead, encoded, behind); r.check(whole, false, to) == nil {
			return whole, nil
		}
	}
	return encoded, r.check(encoded, false, to)
}

// patched changes only the differing parts of a YAML document.
func (r *rewriter) patched(content, encoded, now []byte) ([]byte, bool) {
	there, err := r.parser.parse(content, false, r.edit.name)
	if err != nil {
		return nil, false
	}
	plain := func(text []byte) string { return strings.ReplaceAll(string(text), "\r\n", "\n") }
	text, ok := patch(plain(content), plain(encoded), declcfg.AppendJSON(nil, there, false), now, 0)
	if !ok {
		return nil, false
	}
	if r.crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return []byte(text), true
}

// insert writes a new document after the last written one, with its keys in the order of the document like, unless that
// is nil.
func (r *rewriter) insert(b declcfg.Blob, f form, like []byte, between string) error {
	text, err := f.encode(r.texts, b)
	if err != nil {
		return err
	}
	if ordered, ok := f.ordered(text, like, b); ok && r.check(ordered, f.json, b) == nil {
		text = ordered
	}
	if err := r.check(text, f.json, b); err != nil {
		return err
	}
	var gap string
	switch {
	case f.json && len(r.spans) > 0:
		gap = between
	case !f.json:
		gap = "---" + f.lineEnd()
		if r.at > 0 && r.last != '\n' {
			gap = f.lineEnd() + gap
			if r.behindYAML() {
				r.spans[len(r.spans)-1].end += int64(len(f.lineEnd()))
			}
		}
	}
	if err := r.write([]byte(gap)); err != nil {
		return err
	}
	start := r.at
	if err := r.write(text); err != nil {
		return err
	}
	r.spans = append(r.spans, span{start, r.at, f.json})
	return nil
}

// check parses the text of a blob, which must give the same blob.
func (r *rewriter) check(text []byte, isJSON bool, b declcfg.Blob) error {
	back, err := r.parser.parse(text, isJSON, r.edit.name)
	if err != nil {
		return fmt.Errorf("cannot be written so that it can be read again: %w", err)
	}
	if !sameBlob(b, back) {
		return errors.New("cannot be written so that it says the same when it is read again")
	}
	return nil
}

// verify checks that a written file splits into the expected documents. Their texts were copied or checked before.
func verify(r io.Reader, spans []span) error {
	s := canon.NewSplitter(r, canon.Limits{})
	for n := 0; ; n++ {
		doc, err := s.Next()
		if errors.Is(err, io.EOF) && n == len(spans) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("document %d of %d: %w", n+1, len(spans), err)
		}
		if err != nil || n >= len(spans) || spans[n] != (span{doc.Start, doc.End, doc.JSON}) {
			return fmt.Errorf("its %d documents would not be read as such", len(spans))
		}
		if n == 0 && !doc.JSON {
			// On the first line of a file the text after the separator is read as YAML; elsewhere a comment there is
			// ignored.
			if _, err := canon.AppendYAML(nil, doc.Data, canon.Limits{}, nil); err != nil {
				return fmt.Errorf("document 1 of %d: %w", len(spans), err)
			}
		}
	}
}
