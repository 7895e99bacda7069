package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// ErrPlainHTTP is the error for a registry without TLS if plain HTTP is not allowed.
var ErrPlainHTTP = errors.New("does not speak TLS, and plain HTTP was not asked for")

// Wrap makes an error one of [fault.ErrRegistry]. Its text is unchanged.
func Wrap(err error) error { return ofClass(fault.ErrRegistry, err) }

// ofClass adds a class to an error, whose text is unchanged.
func ofClass(class, err error) error { return inClass{err, class} }

type inClass struct {
	error
	class error
}

func (e inClass) Unwrap() []error { return []error{e.class, e.error} }

// remoteError gives an error the class [fault.ErrRegistry] unless it is about content.
func remoteError(err error) error {
	for _, class := range []error{fault.ErrInvalid, fault.ErrLimit, fault.ErrIntegrity, fault.ErrRegistry} {
		if errors.Is(err, class) {
			return err
		}
	}
	return Wrap(err)
}

// notFoundError is remoteError for what may be missing: the answer 404 is an [fs.ErrNotExist].
func notFoundError(err error) error {
	if hasStatus(err, http.StatusNotFound) {
		return ofClass(fs.ErrNotExist, remoteError(err))
	}
	return remoteError(err)
}

// endError is an error of a request of a client whose configuration is for one end of a copy.
type endError struct {
	error
	end string
}

func (e *endError) Unwrap() error { return e.error }

// EndOf returns [Config.End] of the client whose request failed; empty if there is none.
func EndOf(err error) string {
	var of *endError
	if errors.As(err, &of) {
		return of.end
	}
	return ""
}

// withEnd adds the end that the client is for to an error of a request.
func (r *Client) withEnd(err error) error {
	if err == nil || r.o.Registry.End == "" {
		return err
	}
	return &endError{err, r.o.Registry.End}
}

// StatusError is an answer of a registry that is no success.
type StatusError struct {
	// Status is the HTTP status, and Request the method and URL without credentials.
	Status  int
	Request string
	// Codes are the error codes in the answer (distribution specification, "Error Codes").
	Codes []string
	// Credentials is the file or helper of the credentials in the request; empty if it had none.
	Credentials string
	// NoSpace tells that the registry has no more space to write to. It is not asked again.
	NoSpace bool

	text       string
	retryAfter time.Duration
}

// Host returns the registry HOST[:PORT] that answered, as users name it; empty if it is unknown.
func (e *StatusError) Host() string {
	_, address, _ := strings.Cut(e.Request, " ")
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return ""
	case u.Host == "registry-1.docker.io":
		return "docker.io"
	}
	return u.Host
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: status %d %s%s", e.Request, e.Status, http.StatusText(e.Status), e.text)
}

// Is reports a refusal of the credentials as [store.ErrDenied], and as [store.ErrHidden] too if a tag was asked for.
func (e *StatusError) Is(class error) bool {
	switch class {
	case store.ErrDenied:
		return e.unauthorized()
	case store.ErrHidden:
		return e.unauthorized() && strings.Contains(e.Request, "/manifests/") &&
			!strings.Contains(e.Request, "/manifests/sha256:")
	}
	return false
}

// IsUnauthorized tells whether an error is a registry's refusal of the credentials, or of there being none.
func IsUnauthorized(err error) bool { return errors.Is(err, store.ErrDenied) }

// hasStatus tells whether an error is an answer of a registry with one of the statuses.
func hasStatus(err error, statuses ...int) bool {
	var status *StatusError
	return errors.As(err, &status) && slices.Contains(statuses, status.Status)
}

// hasCode tells whether an error is an answer of a registry with one of the codes.
func hasCode(err error, codes ...string) bool {
	var status *StatusError
	return errors.As(err, &status) && slices.ContainsFunc(status.Codes,
		func(c string) bool { return slices.Contains(codes, c) })
}

// unauthorized tells whether the registry refuses the credentials.
func (e *StatusError) unauthorized() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && !slices.Contains(e.Codes,
		"TOOMANYREQUESTS")
}

// statusError reads an answer that is no success. It keeps a few codes and messages of the body.
func statusError(resp *http.Response) *StatusError {
	u := *resp.Request.URL
	u.RawQuery = ""
	e := &StatusError{Status: resp.StatusCode, Request: resp.Request.Method + " " + cutURL(u.Redacted()),
		retryAfter: webclient.RetryAfter(resp.Header)}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var answer struct {
		Errors []struct{ Code, Message string }
	}
	if err == nil && json.Unmarshal(body, &answer) == nil {
		for _, one := range answer.Errors[:min(len(answer.Errors), 3)] {
			e.Codes = append(e.Codes, one.Code)
			e.text += fmt.Sprintf(": %.80q %.200q", one.Code, redact.Text(one.Message))
		}
	}
	if e.NoSpace = noSpace(resp.StatusCode, body); e.NoSpace {
		e.text += ": the registry has no more space"
	}
	return e
}

// noSpace tells whether an answer says that the registry's disk is full, or its quota used up. Docker's has the error
// of its system in the details of a status 500, as a text or as a number: ENOSPC and EDQUOT of Linux.
func noSpace(status int, body []byte) bool {
	if status < http.StatusInternalServerError || status == http.StatusInsufficientStorage {
		return status == http.StatusInsufficientStorage
	}
	return slices.ContainsFunc([]string{"no space left on device", "disk quota exceeded", `"Err":28}`, `"Err":122}`},
		func(text string) bool { return bytes.Contains(body, []byte(text)) })
}

// refusal is like [statusError], for a request that may have had credentials. If they can be the reason, the error
// names their source: known tells whether they have been looked up, and shown whether the request had them.
func refusal(resp *http.Response, known bool, creds credentials, shown bool) error {
	e := statusError(resp)
	if !e.unauthorized() {
		return e
	}
	switch {
	case !known:
		e.text += " (sent without credentials: the registry named no way to show them)"
	case creds == credentials{}:
		e.text += " (no credentials were found for it)"
	case !shown && creds.user != "":
		e.text += " (the registry refuses before it asks for credentials)"
	case !shown:
		e.text += fmt.Sprintf(" (sent without credentials: those of %s are a token, "+
			"and the registry asks for a user and a password)", creds.source)
	default:
		e.Credentials = creds.source
		e.text += fmt.Sprintf(" (with the credentials of %s)", creds.source)
	}
	return e
}

// cutURL shortens a URL for messages: a registry may choose any for an upload.
func cutURL(u string) string {
	const most = 400
	if len(u) <= most {
		return u
	}
	return u[:most] + "..."
}
