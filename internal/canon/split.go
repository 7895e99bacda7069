package canon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// Doc is one document of a stream.
type Doc struct {
	Line int    // 1-based line of the stream at which Data starts
	Data []byte // the document's text, without separators; CR LF is LF in YAML
	JSON bool   // Data is to be read as JSON, else as YAML
}

// Splitter reads the documents of a stream one by one, as opm does: a stream whose first character within 4 KiB is a
// brace is a sequence of JSON values, every other one YAML documents between lines that begin with "---". A stream that
// begins like JSON and stops being JSON with its first or second value goes on as YAML from there. YAML documents
// without content are skipped.
//
// Memory is bounded by the largest document. A Splitter is not safe for concurrent use.
type Splitter struct {
	r      io.Reader
	limits Limits
	conv   Converter

	buf     []byte
	start   int // of what has not been handed out
	line    int // of start
	eof     bool
	readErr error
	mode    mode
	first   bool // nothing has been handed out or skipped yet
	count   int  // of JSON values
}

type mode uint8

const (
	modeUnknown mode = iota
	modeJSON
	modeYAML
	modeDone
)

const (
	sniffSize = 4 << 10
	readSize  = 64 << 10
)

// NewSplitter returns a Splitter of r.
func NewSplitter(r io.Reader, l Limits) *Splitter {
	s := &Splitter{}
	s.Reset(r, l)
	return s
}

// Reset makes s read from r, keeping its buffers.
func (s *Splitter) Reset(r io.Reader, l Limits) {
	l = l.withDefaults()
	*s = Splitter{r: r, limits: l, conv: Converter{Limits: l}, buf: s.buf[:0], line: 1, first: true}
}

// Next returns the next document, [io.EOF] behind the last one. Its data are valid until the next call. An error is the
// reader's, a [*LimitError] or a [*SyntaxError]; the line of Doc is then that of the document in which it happened, from
// which the error's own line counts. Nothing follows an error.
func (s *Splitter) Next() (Doc, error) {
	d, err := s.next()
	if err != nil {
		s.mode = modeDone
	}
	return d, err
}

func (s *Splitter) next() (Doc, error) {
	if s.mode == modeUnknown {
		for len(s.window()) < sniffSize && s.fill() {
		}
		s.mode = modeYAML
		head := s.window()
		head = head[:min(len(head), sniffSize)]
		if bytes.HasPrefix(bytes.TrimLeftFunc(head, unicode.IsSpace), []byte("{")) {
			s.mode = modeJSON
		}
	}
	switch s.mode {
	case modeJSON:
		return s.nextJSON()
	case modeYAML:
		return s.nextYAML()
	}
	return Doc{}, io.EOF
}

func (s *Splitter) window() []byte { return s.buf[s.start:] }

// fill reads more of the stream behind the window. It returns false at the end or after an error.
func (s *Splitter) fill() bool {
	if s.eof {
		return false
	}
	if s.start > 0 && cap(s.buf)-len(s.buf) < readSize {
		n := copy(s.buf, s.window())
		s.buf, s.start = s.buf[:n], 0
	}
	if cap(s.buf)-len(s.buf) < readSize {
		// Twice as much, but not much more than a document may have: what is behind that is not read.
		bigger := make([]byte, len(s.buf), max(min(2*cap(s.buf), s.limits.MaxDocument+readSize), len(s.buf))+readSize+1)
		copy(bigger, s.buf)
		s.buf = bigger
	}
	for range 100 {
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		if err != nil {
			s.eof = true
			if !errors.Is(err, io.EOF) {
				s.readErr = err
			}
		}
		if n > 0 {
			return true
		}
		if s.eof {
			return false
		}
	}
	s.eof, s.readErr = true, io.ErrNoProgress
	return false
}

// consume drops n bytes from the front of the window.
func (s *Splitter) consume(n int) {
	s.line += bytes.Count(s.buf[s.start:s.start+n], []byte{'\n'})
	s.start += n
	s.first = false
}

func (s *Splitter) tooLarge() error {
	return &LimitError{What: "document size", Limit: int64(s.limits.MaxDocument)}
}

func (s *Splitter) nextJSON() (Doc, error) {
	at, err := s.skipWhite()
	if err != nil {
		return Doc{Line: s.line}, err
	}
	d := Doc{Line: s.line + bytes.Count(s.window()[:at], []byte{'\n'}), JSON: true}
	scan := jsonEnd{}
	end := 0
	for {
		var done bool
		if end, done = scan.advance(s.window()[at:], end); done {
			break
		}
		if end > s.limits.MaxDocument {
			// The end may be missing because of an error that can be told.
			var syntax *SyntaxError
			if err := s.check(s.window()[at:]); errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return d, err
			}
			return d, s.tooLarge()
		}
		if !s.fill() {
			if s.readErr != nil {
				return d, s.readErr
			}
			end = len(s.window()) - at
			break
		}
	}
	end += at
	d.Data = s.window()[at:end:end]
	if s.count <= 1 {
		if err := s.check(d.Data); err != nil {
			return s.fallBack(d.Line, err)
		}
	}
	s.count++
	s.consume(end)
	return d, nil
}

// skipWhite returns the offset in the window of what follows white space. The white space is not consumed, because YAML
// would have a use for the end of it.
func (s *Splitter) skipWhite() (int, error) {
	at := 0
	for at = skipSpace(s.window(), 0); at == len(s.window()); at = skipSpace(s.window(), at) {
		if at > readSize {
			s.consume(bytes.LastIndexByte(s.window(), '\n') + 1)
			if at = len(s.window()); at > s.limits.MaxDocument {
				return 0, s.tooLarge()
			}
		}
		if !s.fill() {
			return 0, s.end()
		}
	}
	return at, nil
}

// check returns the error of AppendJSON, but not that of a document beyond the limit.
func (s *Splitter) check(data []byte) error {
	data = data[:min(len(data), s.limits.MaxDocument)]
	out, err := s.conv.AppendJSON(s.conv.spare[:0], data)
	s.conv.spare = out[:0]
	return err
}

// fallBack goes on with YAML where JSON failed, unless that fails too: then the error is JSON's.
func (s *Splitter) fallBack(line int, jsonErr error) (Doc, error) {
	s.mode = modeYAML
	white := skipSpace(s.window(), 0)
	if i := bytes.IndexByte(s.window()[:white], '\n'); i >= 0 {
		white = i + 1
	}
	s.consume(white)
	d, err := s.nextYAML()
	if err != nil && !errors.Is(err, io.EOF) {
		return Doc{Line: line, JSON: true}, jsonErr
	}
	if err == nil {
		if _, err := s.conv.AppendYAML(nil, d.Data); err != nil {
			return Doc{Line: line, JSON: true}, jsonErr
		}
	}
	return d, err
}

func (s *Splitter) end() error {
	if s.readErr != nil {
		return s.readErr
	}
	return io.EOF
}

var separator = []byte("\n---")

func (s *Splitter) nextYAML() (Doc, error) {
	for {
		first, line := s.first, s.line
		data, err := s.readYAML()
		if err != nil {
			return Doc{Line: line}, err
		}
		if first {
			data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
		}
		if lead := leading(data); lead < len(data) {
			line += bytes.Count(data[:lead], []byte{'\n'})
			return Doc{Line: line, Data: data[lead:]}, nil
		}
	}
}

// readYAML returns the text up to the next separator and consumes it and the separator. A separator at its very start
// is part of it.
func (s *Splitter) readYAML() ([]byte, error) {
	for len(s.window()) < 4 && s.fill() {
	}
	if len(s.window()) == 0 {
		return nil, s.end()
	}
	from := 0
	if bytes.HasPrefix(s.window(), separator[1:]) {
		end, err := s.separatorEnd(0)
		if err != nil {
			return nil, err
		}
		from = max(end-1, 0) // its line end may begin the next separator
	}
	for {
		w := s.window()
		if i := bytes.Index(w[from:], separator); i >= 0 {
			at := from + i + 1
			end, err := s.separatorEnd(at)
			if err != nil {
				return nil, err
			}
			data := s.window()[:at:at]
			if len(data) > s.limits.MaxDocument {
				return nil, s.tooLarge()
			}
			s.consume(end)
			return unixLines(data), nil
		}
		from = max(from, len(w)-len(separator)+1)
		if len(w) > s.limits.MaxDocument {
			return nil, s.tooLarge()
		}
		if !s.fill() {
			break
		}
	}
	if s.readErr != nil {
		return nil, s.readErr
	}
	data := s.window()
	s.consume(len(data))
	data = unixLines(data)
	if data[len(data)-1] != '\n' {
		data = append(data, '\n')
	}
	return data, nil
}

// separatorEnd returns the end of the separator line at offset at of the window, behind which only a comment may stand.
func (s *Splitter) separatorEnd(at int) (int, error) {
	from := at
	for {
		if i := bytes.IndexByte(s.window()[from:], '\n'); i >= 0 {
			from += i + 1
			break
		}
		from = len(s.window())
		if from > s.limits.MaxDocument {
			return 0, s.tooLarge()
		}
		if !s.fill() {
			break
		}
	}
	rest := bytes.TrimSpace(s.window()[at+len(separator)-1 : from])
	if len(rest) > 0 && rest[0] != '#' {
		return 0, &SyntaxError{
			Format: "yaml",
			Line:   lineAt(s.window(), at),
			Msg:    fmt.Sprintf("invalid Yaml document separator: %s", clip(string(bytes.ToValidUTF8(rest, []byte("?"))))),
		}
	}
	return from, nil
}

// unixLines replaces CR LF by LF in place.
func unixLines(data []byte) []byte {
	i := bytes.IndexByte(data, '\r')
	if i < 0 {
		return data
	}
	out := data[:i]
	for ; i < len(data); i++ {
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			continue
		}
		out = append(out, data[i])
	}
	return out
}

// leading returns the length of what comes before the content of a YAML document: blank lines, comments and one
// separator. It is all of data if there is no content.
func leading(data []byte) int {
	i := 0
	for i < len(data) {
		line := data[i : i+bytes.IndexByte(data[i:], '\n')+1]
		text := bytes.TrimLeft(line, " ")
		if i == 0 && bytes.HasPrefix(data, separator[1:]) {
			text = bytes.TrimLeft(line[3:], " ")
			if line[3] == '#' {
				break // a comment needs a space before it
			}
		}
		if len(text) == 0 || text[0] != '\n' && (text[0] != '#' || !isYAMLText(line)) {
			break
		}
		i += len(line)
	}
	if i < len(data) && (data[i] == '%' || data[i] == '.') {
		return 0 // these mean something else without the separator
	}
	return i
}

// isYAMLText reports whether data are UTF-8 and of the characters that YAML allows.
func isYAMLText(data []byte) bool {
	for i := 0; i < len(data); {
		if c := data[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1,
			r < 0xa0 && r != 0x85,
			r == 0xfeff || r == 0xfffe || r == 0xffff:
			return false
		}
		i += size
	}
	return true
}
