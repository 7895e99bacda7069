package canon

import (
	"bytes"
	"errors"
	"io"
	"unicode"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// Doc is one document of a stream.
type Doc struct {
	Line int    // 1-based line of the stream at which Data starts
	Data []byte // the document's text without separators; in YAML, CR LF becomes LF
	JSON bool   // Data is JSON, else YAML
	// Start and End are offsets in the original stream. They delimit a JSON value, or the text of a YAML document
	// between its separator lines. Comments and blank lines before the content are inside these offsets but not part of
	// Data.
	Start, End int64
}

// Splitter reads the documents of a stream one by one, as opm does. If the first character within 4 KiB is a brace, the
// stream is a sequence of JSON values; otherwise it consists of YAML documents separated by lines that begin with
// "---". If the first or second JSON value is invalid, the stream is read as YAML from there. Empty YAML documents are
// skipped.
//
// Memory is bounded by the largest document. A Splitter is not safe for concurrent use.
type Splitter struct {
	r      io.Reader
	limits Limits
	conv   Converter

	buf     []byte
	start   int   // of the text not yet returned
	line    int   // of start
	offset  int64 // of start in the stream
	eof     bool
	readErr error
	mode    mode
	first   bool // nothing has been returned or skipped yet
	count   int  // number of JSON values
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
	leastRead = 4 << 10 // the buffer grows when it has less free space than this
)

// NewSplitter returns a Splitter of r.
func NewSplitter(r io.Reader, l Limits) *Splitter {
	s := &Splitter{}
	s.Reset(r, l)
	return s
}

// Reset makes s read from r and reuses its buffers.
func (s *Splitter) Reset(r io.Reader, l Limits) {
	l = l.withDefaults()
	*s = Splitter{r: r, limits: l, conv: Converter{Limits: l}, buf: s.buf[:0], line: 1, first: true}
}

// Next returns the next document, and [io.EOF] after the last one. Its data are valid until the next call. An error is
// a [*ReadError], a [*LimitError] or a [*SyntaxError]; Doc.Line is then the first line of the document with the error,
// and the error's own line is relative to it. After an error Next returns no more documents.
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

// fill reads more of the stream into the window. It returns false at the end or after an error.
func (s *Splitter) fill() bool {
	if s.eof {
		return false
	}
	if s.start > 0 && cap(s.buf)-len(s.buf) < readSize {
		n := copy(s.buf, s.window())
		s.buf, s.start = s.buf[:n], 0
	}
	if cap(s.buf)-len(s.buf) < leastRead {
		size := 2*cap(s.buf) + readSize
		if cap(s.buf) > 4<<20 {
			size = cap(s.buf) + cap(s.buf)/4
		}
		bigger := make([]byte, len(s.buf), size)
		copy(bigger, s.buf)
		s.buf = bigger
	}
	for range 100 {
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		if err != nil {
			s.eof = true
			if err != io.EOF { // an error that only wraps io.EOF is not the end
				s.readErr = &ReadError{err}
			}
		}
		if n > 0 {
			return true
		}
		if s.eof {
			return false
		}
	}
	s.eof, s.readErr = true, &ReadError{io.ErrNoProgress}
	return false
}

// consume drops n bytes from the front of the window.
func (s *Splitter) consume(n int) {
	s.line += bytes.Count(s.buf[s.start:s.start+n], []byte{'\n'})
	s.start += n
	s.offset += int64(n)
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
	scan := jsonscan.End{}
	end := 0
	for {
		var done bool
		if end, done = scan.Advance(s.window()[at:], end); done {
			break
		}
		if end > s.limits.MaxDocument {
			// If the document is incomplete because of a syntax error, that is the error to report.
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
	d.Start, d.End = s.offset+int64(at), s.offset+int64(end)
	s.consume(end)
	return d, nil
}

// skipWhite returns the offset in the window of the first character after white space. The white space is not consumed:
// YAML needs its last line.
func (s *Splitter) skipWhite() (int, error) {
	at := 0
	for at = jsonscan.SkipSpace(s.window(), 0); at == len(s.window()); at = jsonscan.SkipSpace(s.window(), at) {
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

// check returns the error of AppendJSON for the first MaxDocument bytes. A longer document is cut there, so that its
// error may be io.ErrUnexpectedEOF.
func (s *Splitter) check(data []byte) error {
	return s.conv.checkJSON(data[:min(len(data), s.limits.MaxDocument)])
}

// fallBack reads the document as YAML after JSON failed. If YAML fails too, it returns the JSON error.
func (s *Splitter) fallBack(line int, jsonErr error) (Doc, error) {
	s.mode = modeYAML
	white := jsonscan.SkipSpace(s.window(), 0)
	if i := bytes.IndexByte(s.window()[:white], '\n'); i >= 0 {
		white = i + 1
	}
	s.consume(white)
	d, err := s.nextYAML()
	if s.readErr != nil && err != nil {
		return d, s.readErr
	}
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
