package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/operator-bindery/bindery/serve/internal/catalogql"
)

// Limits of queries, as in catalogd.
const (
	maxQueryBody = 1 << 20
	maxQuery     = 100_000 // bytes
	queryTime    = 5 * time.Second
)

// queryKey is the key of a request's query in its context.
type queryKey struct{}

// withQuery reads the query of a request, and answers itself if there is none. Other members of the body, as variables,
// are ignored, as in catalogd.
func (s *Site) withQuery(w http.ResponseWriter, r *http.Request) *http.Request {
	size := int64(maxQueryBody)
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	read, ok := s.reserve(w, int(size))
	defer read()
	if !ok {
		answerBusy(w)
		return nil
	}
	var body struct {
		Query string `json:"query"`
	}
	switch err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQueryBody)).Decode(&body); {
	case err != nil:
		plainError(w, http.StatusBadRequest, "Invalid request body")
	case body.Query == "":
		plainError(w, http.StatusBadRequest, "Query cannot be empty")
	case len(body.Query) > maxQuery:
		plainError(w, http.StatusBadRequest, "Query too large")
	default:
		return r.WithContext(context.WithValue(r.Context(), queryKey{}, body.Query))
	}
	return nil
}

// serveQuery answers a GraphQL query. Queries share the concurrency of pages; an answer is made before any of it is
// sent, in memory or in a file, so that one that takes too long is an error and not a part.
func (s *Site) serveQuery(c *Content, w http.ResponseWriter, r *http.Request) {
	query, _ := r.Context().Value(queryKey{}).(string)
	ctx, cancel := context.WithTimeout(r.Context(), pageTime)
	defer cancel()
	service, err := c.queries(ctx, s)
	switch {
	case ctx.Err() != nil:
		answerBusy(w)
		return
	case err != nil:
		fail(w, http.StatusInternalServerError, "the catalog has no type system: "+err.Error())
		return
	}
	if !s.turn(ctx) {
		answerBusy(w)
		return
	}
	a := answerFile{sum: &s.answers}
	defer a.close()
	failure, err := s.query(ctx, service, query, &a)
	switch {
	case ctx.Err() != nil, errors.Is(err, errManyAnswers):
		answerBusy(w)
		return
	case err != nil:
		s.log.Error("a query cannot be answered", "error", err)
		fail(w, http.StatusInternalServerError, "the catalog cannot be read")
		return
	case failure != nil:
		a.close()
		a.memory = failure
	}
	sent, ok := s.reserve(w, len(a.memory))
	defer sent()
	if !ok {
		answerBusy(w)
		return
	}
	if patient, ok := w.(*patient); ok {
		patient.end = time.Now().Add(queryAnswerTime)
	}
	s.send(w, r, a.reader(), a.size())
}

// queryAnswerTime is how long a client may take to read the answer to a query.
const queryAnswerTime = 5 * time.Minute

// query executes a query and ends the turn.
func (s *Site) query(ctx context.Context, service *catalogql.Service, query string, a io.Writer) ([]byte, error) {
	defer s.next()
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	return service.Answer(ctx, query, a)
}

// send sends JSON, compressed like the lines of a catalog.
func (s *Site) send(w http.ResponseWriter, r *http.Request, text io.Reader, size int64) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if size >= smallest && acceptsGzip(r.Header) {
		if z := s.zips.try(w); z != nil {
			defer s.zips.done(z)
			h.Set("Content-Encoding", "gzip")
			if _, err := io.Copy(z, text); err != nil || z.Close() != nil {
				panic(http.ErrAbortHandler)
			}
			return
		}
	}
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	if _, err := io.Copy(w, text); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// queries returns the service for queries, which is made for the first of them.
func (c *Content) queries(ctx context.Context, s *Site) (*catalogql.Service, error) {
	return c.types.get(ctx, c, func() (*catalogql.Service, error) {
		service, err := c.discover()
		if err != nil {
			s.log.Warn("the catalog has no type system for GraphQL", "error", err)
		}
		return service, err
	})
}
