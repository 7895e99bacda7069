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
	Data []byte // the document's text, without separators; CR LF is LF in YAML
	JSON bool   // Data is to be read as JSON, else as YAML
	// Start and End are offsets in the stream, as it came: of a JSON value, or of the text of a YAML document from behind
	// the separator line before it, if there is one, to the separator line after it. Comments and blank lines before the
	// content belong to that text, while they do not to Data.
	Start, End int64
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
	start   int   // of what has not been handed out
	line    int   // of start
	offset  int64 // of start, in the stream
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
	leastRead = 4 << 10 // a buffer with less room than this is made larger
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

// Next returns the next document, [io.EOF] behind the last one. Its data are valid until the next call. An error is a
// [*ReadError], a [*LimitError] or a [*SyntaxError]; the line of Doc is then that of the document in which it
// happened, from which the error's own line counts. Nothing follows an error.
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
			if err != io.EOF { // what only wraps it is not the end
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
	d.Start, d.End = s.offset+int64(at), s.offset+int64(end)
	s.consume(end)
	return d, nil
}

// skipWhite returns the offset in the window of what follows white space. The white space is not consumed, because YAML
// would have a use for the end of it.
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

// check returns the error of AppendJSON, but not that of a document beyond the limit.
func (s *Splitter) check(data []byte) error {
	return s.conv.checkJSON(data[:min(len(data), s.limits.MaxDocument)])
}

// fallBack goes on with YAML where JSON failed, unless that fails too: then the error is JSON's.
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
